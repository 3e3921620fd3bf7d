//! Which connection is subscribed to which queue: the pure part.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::{ConnectionId, ConnectionRef, Displaced, Epoch};
use crate::protocol::QueueId;

/// Hashes queue IDs by their first bytes: the server drew them at random, so nobody can choose colliding ones.
#[derive(Default)]
pub struct RandomIdHasher(u64);

impl Hasher for RandomIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            self.0 ^= u64::from_ne_bytes(*first);
        }
    }

    /// The length of the array, which `Hash` writes before its bytes, is the same for all.
    fn write_usize(&mut self, _: usize) {}
}

/// A map keyed by IDs that the server drew at random.
pub type QueueMap<V> = HashMap<QueueId, V, BuildHasherDefault<RandomIdHasher>>;

/// A subscriber and when it subscribed.
#[derive(Debug)]
struct Entry {
    connection: ConnectionRef,
    epoch: Epoch,
}

/// One shard's subscriptions. Keeps at most one subscriber a queue.
#[derive(Debug, Default)]
pub struct Subscriptions {
    entries: QueueMap<Entry>,
    last_epoch: u64,
}

impl Subscriptions {
    /// Makes `connection` the subscriber of `queues`. Answers the epoch of the new subscriptions and whom they displace;
    /// subscribing again displaces nobody.
    pub fn subscribe(&mut self, connection: &ConnectionRef, queues: &[QueueId]) -> (Epoch, Vec<Displaced>) {
        self.last_epoch += 1;
        let epoch = Epoch(self.last_epoch);
        let displaced = queues.iter().filter_map(|queue| self.replace(*queue, connection, epoch)).collect();
        (epoch, displaced)
    }

    fn replace(&mut self, queue: QueueId, connection: &ConnectionRef, epoch: Epoch) -> Option<Displaced> {
        let old = self.entries.insert(queue, Entry { connection: Arc::clone(connection), epoch })?;
        (old.connection.id != connection.id).then_some(Displaced {
            queue,
            connection: old.connection,
            epoch: old.epoch,
        })
    }

    /// Forgets the subscriptions of `connection` to `queues`; those that went to another connection stay.
    pub fn unsubscribe(&mut self, connection: ConnectionId, queues: &[QueueId]) {
        for queue in queues {
            if self.entries.get(queue).is_some_and(|entry| entry.connection.id == connection) {
                self.entries.remove(queue);
            }
        }
        self.shrink();
    }

    /// Forgets `queues`, which were deleted, and answers who was subscribed.
    pub fn remove(&mut self, queues: &[QueueId]) -> Vec<Displaced> {
        let removed = queues
            .iter()
            .filter_map(|queue| {
                let entry = self.entries.remove(queue)?;
                Some(Displaced { queue: *queue, connection: entry.connection, epoch: entry.epoch })
            })
            .collect();
        self.shrink();
        removed
    }

    /// The subscribers of `queues`, in their order.
    pub fn find(&self, queues: &[QueueId]) -> Vec<Option<ConnectionRef>> {
        queues.iter().map(|queue| self.entries.get(queue).map(|entry| Arc::clone(&entry.connection))).collect()
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives memory back when three quarters of the table are unused.
    fn shrink(&mut self) {
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}
