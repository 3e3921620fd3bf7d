//! What waits to be written to the client, and the notices that are not encoded yet: pure state.

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::QueueId;

/// Block payloads in the order in which they are written. Holds at most `limit` of them, but that the answers to the
/// block being executed are always taken: who executes it waits for room before it goes on.
#[derive(Debug)]
pub struct Outbound {
    payloads: VecDeque<Vec<u8>>,
    limit: usize,
}

impl Outbound {
    /// Room for `limit` payloads.
    pub fn new(limit: usize) -> Self {
        Outbound { payloads: VecDeque::new(), limit }
    }

    /// How many more payloads may be pushed.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.payloads.len())
    }

    /// Appends a payload.
    pub fn push(&mut self, payload: Vec<u8>) {
        self.payloads.push_back(payload);
    }

    /// The next payload to be written. Gives the queue's memory back when it was the last.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let payload = self.payloads.pop_front();
        if self.payloads.is_empty() {
            self.payloads = VecDeque::new();
        }
        payload
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// Number of waiting payloads.
    pub fn len(&self) -> usize {
        self.payloads.len()
    }
}

/// A notice about a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// `END`.
    Ended,
    /// `DELD`.
    Deleted,
}

/// `END` and `DELD` that were not sent yet: one a queue, the latest. Bounded by the subscriptions that they end.
#[derive(Debug, Default)]
pub struct Notices {
    notices: BTreeMap<QueueId, Notice>,
}

impl Notices {
    /// Notes one. `DELD` after `END` stays `DELD`.
    pub fn note(&mut self, queue: QueueId, notice: Notice) {
        let noted = self.notices.entry(queue).or_insert(notice);
        if notice == Notice::Deleted {
            *noted = notice;
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.notices.is_empty()
    }

    /// Takes up to `limit` out.
    pub fn take(&mut self, limit: usize) -> Vec<(QueueId, Notice)> {
        std::iter::from_fn(|| self.notices.pop_first()).take(limit).collect()
    }

    /// Forgets the notice about a queue that is subscribed again.
    pub fn cancel(&mut self, queue: &QueueId) {
        self.notices.remove(queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_shrinks_with_what_waits_and_comes_back() {
        let mut outbound = Outbound::new(2);
        assert_eq!(outbound.room(), 2);
        outbound.push(vec![1]);
        outbound.push(vec![2]);
        outbound.push(vec![3]);
        assert_eq!(outbound.room(), 0);
        assert_eq!(outbound.pop(), Some(vec![1]));
        assert_eq!(outbound.pop(), Some(vec![2]));
        assert_eq!(outbound.room(), 1);
    }

    #[test]
    fn notices_are_one_a_queue() {
        let mut notices = Notices::default();
        let queue = QueueId([1; 24]);
        for _ in 0..1000 {
            notices.note(queue, Notice::Ended);
        }
        notices.note(queue, Notice::Deleted);
        assert_eq!(notices.take(10), [(queue, Notice::Deleted)]);
        assert!(notices.is_empty());
    }
}
