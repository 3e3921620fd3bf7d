//! The registry as its askers see it: one value that knows the shards.

use std::sync::Arc;

use actix::Actor;
use actix_rt::ArbiterHandle;
use futures_util::future::try_join_all;

use super::{
    ConnectionId, ConnectionRef, Displaced, Epoch, FindServices, FindSubscribers, Mark, Marks, RemoveQueues,
    ServiceConnections, ServiceSubscribed, Subscribe, SubscribeService, SubscriptionRegistry, Subscriptions,
    Unsubscribe, UnsubscribeService,
};
use crate::actors::mailbox::{Gate, MailboxMetrics, SendError, Sender};
use crate::actors::supervision::Alarm;
use crate::protocol::{QueueId, ServiceId};

/// Handles to one shard.
#[derive(Clone, Debug)]
pub struct Shard {
    /// To subscribe.
    pub subscribe: Sender<Subscribe>,
    /// To forget a connection.
    pub unsubscribe: Sender<Unsubscribe>,
    /// To find subscribers.
    pub find: Sender<FindSubscribers>,
    /// To forget queues.
    pub remove: Sender<RemoveQueues>,
    /// To subscribe a service.
    pub subscribe_service: Sender<SubscribeService>,
    /// To forget a service's connection.
    pub unsubscribe_service: Sender<UnsubscribeService>,
    /// To find services' connections.
    pub find_services: Sender<FindServices>,
}

impl Shard {
    /// Starts a shard on `arbiter` with room for `capacity` messages.
    pub fn start(arbiter: &ArbiterHandle, capacity: usize, metrics: Arc<MailboxMetrics>, alarm: &Arc<Alarm>) -> Self {
        let vital = alarm.vital("registry");
        let shard = move |_: &mut _| SubscriptionRegistry {
            subscriptions: Subscriptions::default(),
            services: ServiceConnections::default(),
            _vital: vital,
        };
        let actor = SubscriptionRegistry::start_in_arbiter(arbiter, shard);
        let gate = Gate::new(capacity, metrics);
        Shard {
            subscribe: Sender::new(&actor, Arc::clone(&gate)),
            unsubscribe: Sender::new(&actor, Arc::clone(&gate)),
            find: Sender::new(&actor, Arc::clone(&gate)),
            remove: Sender::new(&actor, Arc::clone(&gate)),
            subscribe_service: Sender::new(&actor, Arc::clone(&gate)),
            unsubscribe_service: Sender::new(&actor, Arc::clone(&gate)),
            find_services: Sender::new(&actor, gate),
        }
    }
}

/// All shards. A queue always belongs to the same one.
#[derive(Clone, Debug)]
pub struct RegistryHandle {
    shards: Arc<[Shard]>,
    marks: Arc<Marks>,
}

impl RegistryHandle {
    /// A registry of these shards, at least one.
    pub fn new(shards: Vec<Shard>) -> Self {
        debug_assert!(!shards.is_empty(), "a registry has at least one shard");
        RegistryHandle { shards: shards.into(), marks: Arc::default() }
    }

    /// Where the mark of `queue` stands: to be asked before the queue is looked at, and again when it is subscribed.
    pub fn mark(&self, queue: &QueueId) -> Mark {
        self.marks.of(queue)
    }

    /// Makes `connection` the subscriber of `queues`. Answers the epoch of each subscription, in the order of `queues`,
    /// and who lost theirs.
    pub async fn subscribe(
        &self,
        connection: &ConnectionRef,
        queues: &[QueueId],
    ) -> Result<(Vec<Epoch>, Vec<Displaced>), SendError> {
        let asked = self.split(queues).map(|(shard, part)| async move {
            let message = Subscribe { connection: Arc::clone(connection), queues: part.queues };
            Ok((part.positions, shard.subscribe.send(message).await?))
        });
        let mut epochs = vec![Epoch(0); queues.len()];
        let mut displaced = Vec::new();
        for (positions, subscribed) in try_join_all(asked).await? {
            place(&mut epochs, &positions, std::iter::repeat(subscribed.epoch));
            displaced.extend(subscribed.displaced);
        }
        Ok((epochs, displaced))
    }

    /// Forgets the subscriptions of a connection that has ended.
    pub async fn unsubscribe(&self, connection: ConnectionId, queues: &[QueueId]) -> Result<(), SendError> {
        let asked = self.split(queues).map(|(shard, part)| async move {
            shard.unsubscribe.send(Unsubscribe { connection, queues: part.queues }).await
        });
        try_join_all(asked).await.map(drop)
    }

    /// The subscribers of `queues`, in their order, for the first messages of queues that were empty.
    pub async fn find(&self, queues: &[QueueId]) -> Result<Vec<Option<ConnectionRef>>, SendError> {
        queues.iter().for_each(|queue| self.marks.note(queue));
        let asked = self.split(queues).map(|(shard, part)| async move {
            Ok((part.positions, shard.find.send(FindSubscribers { queues: part.queues }).await?))
        });
        let mut found = vec![None; queues.len()];
        for (positions, subscribers) in try_join_all(asked).await? {
            place(&mut found, &positions, subscribers);
        }
        Ok(found)
    }

    /// Forgets deleted queues; answers who was subscribed.
    pub async fn remove(&self, queues: &[QueueId]) -> Result<Vec<Displaced>, SendError> {
        queues.iter().for_each(|queue| self.marks.note(queue));
        let asked = self
            .split(queues)
            .map(|(shard, part)| async move { shard.remove.send(RemoveQueues { queues: part.queues }).await });
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// Makes `connection` the one of its service. The answer says who was it, to be told by the asker.
    pub async fn subscribe_service(
        &self,
        connection: &ConnectionRef,
        service: ServiceId,
    ) -> Result<ServiceSubscribed, SendError> {
        let message = SubscribeService { connection: Arc::clone(connection), service };
        self.services().subscribe_service.send(message).await
    }

    /// Forgets the connection of a service that has ended.
    pub async fn unsubscribe_service(&self, connection: ConnectionId, service: ServiceId) -> Result<(), SendError> {
        self.services().unsubscribe_service.send(UnsubscribeService { connection, service }).await
    }

    /// The connections of `services`, in their order.
    pub async fn find_services(&self, services: Vec<ServiceId>) -> Result<Vec<Option<ConnectionRef>>, SendError> {
        match services.is_empty() {
            true => Ok(Vec::new()),
            false => self.services().find_services.send(FindServices { services }).await,
        }
    }

    /// Notes that what was known of `queues` may be known no longer: whoever was about to subscribe looks again.
    pub fn note(&self, queues: &[QueueId]) {
        queues.iter().for_each(|queue| self.marks.note(queue));
    }

    /// Services are few: one shard has them all.
    fn services(&self) -> &Shard {
        &self.shards[0]
    }

    fn shard_of(&self, queue: &QueueId) -> usize {
        usize::from(queue.0[QueueId::LENGTH - 1]) % self.shards.len()
    }

    /// The queues of each shard with their positions in `queues`; shards without any are left out.
    fn split(&self, queues: &[QueueId]) -> impl Iterator<Item = (&Shard, Part)> {
        let mut parts: Vec<Part> = self.shards.iter().map(|_| Part::default()).collect();
        for (position, queue) in queues.iter().enumerate() {
            if let Some(part) = parts.get_mut(self.shard_of(queue)) {
                part.positions.push(position);
                part.queues.push(*queue);
            }
        }
        self.shards.iter().zip(parts).filter(|(_, part)| !part.queues.is_empty())
    }
}

/// What one shard is asked about.
#[derive(Default)]
struct Part {
    positions: Vec<usize>,
    queues: Vec<QueueId>,
}

fn place<T>(all: &mut [T], positions: &[usize], values: impl IntoIterator<Item = T>) {
    for (position, value) in positions.iter().zip(values) {
        if let Some(slot) = all.get_mut(*position) {
            *slot = value;
        }
    }
}
