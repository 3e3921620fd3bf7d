//! The subscription registry: which connection is subscribed to which queue, and which one each service has.
//!
//! An index and nothing more: it never waits, never asks anyone and never sends to connections. Whoever displaces a
//! subscriber or has a message for it is told who it is, and tells it; so backpressure meets the one who causes the work,
//! and a slow connection holds up nobody here.
//!
//! Sharded by queue ID; each shard is an actor. It stops with the system.
//!
//! Invariants: at most one subscriber a queue; a connection that ends can not evict its successor
//! ([`Unsubscribe`] names the connection, and [`ConnectionId`]s are never used again); each subscription has an
//! [`Epoch`], so that a late notice about an earlier one is not taken for the one in force.

mod core;
mod handle;
mod marks;
mod services;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use actix::{Actor, Context, Handler, Message, MessageResult};

pub use self::core::{QueueMap, RandomIdHasher, Subscriptions};
pub use self::handle::{RegistryHandle, Shard};
pub use self::marks::{Mark, Marks};
pub use self::services::{
    DisplacedService, FindServices, ServiceConnections, ServiceSubscribed, SubscribeService, UnsubscribeService,
};
use super::connection::ConnectionEvent;
use super::mailbox::{Letter, Sender};
use super::supervision::Vital;
use crate::protocol::QueueId;

/// A connection's number: counts up and is never used again while the process lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// When a subscription was made, in its shard's own count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Epoch(pub u64);

/// How to reach a connection. One shared value a connection, however many subscriptions it has.
#[derive(Debug)]
pub struct ConnectionHandle {
    /// Which connection.
    pub id: ConnectionId,
    /// Its mailbox.
    pub events: Sender<ConnectionEvent>,
}

/// A shared [`ConnectionHandle`].
pub type ConnectionRef = Arc<ConnectionHandle>;

/// A subscription that ended because of another's command.
#[derive(Debug)]
pub struct Displaced {
    /// The queue.
    pub queue: QueueId,
    /// Who was subscribed.
    pub connection: ConnectionRef,
    /// Which of its subscriptions.
    pub epoch: Epoch,
}

/// Make a connection the subscriber of queues (by recipient ID).
#[derive(Message)]
#[rtype(result = "Subscribed")]
pub struct Subscribe {
    /// The new subscriber.
    pub connection: ConnectionRef,
    /// The queues, all of this shard.
    pub queues: Vec<QueueId>,
}

/// Answer to [`Subscribe`].
#[derive(Debug)]
pub struct Subscribed {
    /// Epoch of the subscriptions made.
    pub epoch: Epoch,
    /// Who lost theirs: to be told by the asker.
    pub displaced: Vec<Displaced>,
}

/// Forget a connection's subscriptions.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Unsubscribe {
    /// The connection.
    pub connection: ConnectionId,
    /// The queues, all of this shard.
    pub queues: Vec<QueueId>,
}

/// Who is subscribed to these queues?
#[derive(Message)]
#[rtype(result = "Vec<Option<ConnectionRef>>")]
pub struct FindSubscribers {
    /// The queues, all of this shard.
    pub queues: Vec<QueueId>,
}

/// Forget queues that were deleted; answers who was subscribed, to be told by the asker.
#[derive(Message)]
#[rtype(result = "Vec<Displaced>")]
pub struct RemoveQueues {
    /// The queues, all of this shard.
    pub queues: Vec<QueueId>,
}

macro_rules! debug_counts_queues {
    ($($message:ident),*) => {$(
        impl std::fmt::Debug for $message {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($message), "({} queues)"), self.queues.len())
            }
        }
    )*};
}

debug_counts_queues!(Subscribe, Unsubscribe, FindSubscribers, RemoveQueues);

/// One shard of the registry.
pub struct SubscriptionRegistry {
    subscriptions: Subscriptions,
    services: ServiceConnections,
    _vital: Vital,
}

impl Actor for SubscriptionRegistry {
    type Context = Context<Self>;
}

impl Handler<Letter<Subscribe>> for SubscriptionRegistry {
    type Result = MessageResult<Letter<Subscribe>>;

    fn handle(&mut self, letter: Letter<Subscribe>, _: &mut Self::Context) -> Self::Result {
        let (Subscribe { connection, queues }, _place) = letter.open();
        let (epoch, displaced) = self.subscriptions.subscribe(&connection, &queues);
        MessageResult(Subscribed { epoch, displaced })
    }
}

impl Handler<Letter<Unsubscribe>> for SubscriptionRegistry {
    type Result = ();

    fn handle(&mut self, letter: Letter<Unsubscribe>, _: &mut Self::Context) {
        let (Unsubscribe { connection, queues }, _place) = letter.open();
        self.subscriptions.unsubscribe(connection, &queues);
    }
}

impl Handler<Letter<FindSubscribers>> for SubscriptionRegistry {
    type Result = MessageResult<Letter<FindSubscribers>>;

    fn handle(&mut self, letter: Letter<FindSubscribers>, _: &mut Self::Context) -> Self::Result {
        let (FindSubscribers { queues }, _place) = letter.open();
        MessageResult(self.subscriptions.find(&queues))
    }
}

impl Handler<Letter<RemoveQueues>> for SubscriptionRegistry {
    type Result = MessageResult<Letter<RemoveQueues>>;

    fn handle(&mut self, letter: Letter<RemoveQueues>, _: &mut Self::Context) -> Self::Result {
        let (RemoveQueues { queues }, _place) = letter.open();
        MessageResult(self.subscriptions.remove(&queues))
    }
}
