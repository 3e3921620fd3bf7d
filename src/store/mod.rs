//! What the server keeps: the [`Store`] trait, its records and errors.
//!
//! Batch first: a block of 100 `SUB`s is one call of [`Store::queues`] and one of [`Store::first_messages`]; everything
//! that changes something is an [`Op`], and a batch of them is one call of [`Store::apply`], committed before it answers.
//! A store groups the batches of many connections into one commit.

#[cfg(test)]
#[macro_use]
pub(crate) mod conformance;
pub mod files;
mod line;
pub mod metrics;
pub mod op;
pub mod postgres;
pub mod record;
pub mod service;
pub mod sqlite;
pub mod transfer;

use async_trait::async_trait;

pub use metrics::{LineMetrics, StoreMetrics};
pub use op::{Audience, Op, OpOutcome, Sent};
pub use record::{
    Day, DhSecret, Message, MessageContent, NewQueue, Notifier, Party, QueueRecord, QueueStatus, ServiceRecord,
    Timestamp,
};
pub use service::{Enrolled, ServiceCheck};

use crate::protocol::command::{LinkData, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{MessageId, QueueId, ServiceId};

/// Why a store could not do what it was asked. Nothing of the batch was done.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk or database failed (full, gone, damaged): the text is for the log and for `ERR STORE`, free of IDs and
    /// keys.
    #[error("store failed: {0}")]
    Failed(String),
    /// Some of what was asked for is there and cannot be read. Nothing is answered; the rest can be asked for without them.
    #[error("store failed: {reason}")]
    Unreadable {
        /// Their places in what was asked for, from 0.
        places: Vec<usize>,
        /// Why, free of IDs and keys.
        reason: String,
    },
    /// The bounded line of waiting batches is full and stayed full.
    #[error("store is overloaded")]
    Overloaded,
    /// The store was closed.
    #[error("store is closed")]
    Closed,
}

/// A queue's first message with what is needed to deliver it.
#[derive(Clone, Debug)]
pub struct FirstMessage {
    /// The message.
    pub message: Message,
    /// The secret that encrypts it to the recipient.
    pub dh_secret: DhSecret,
}

/// What a store tells of a queue without looking at its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// It has none.
    Empty,
    /// It may have some.
    Unknown,
}

/// What stands first in a queue.
#[derive(Clone, Debug)]
pub enum Peeked {
    /// Nothing: there is no such queue.
    Absent,
    /// Nothing: the queue is empty.
    Empty,
    /// A message, not read because the limit was reached.
    Waiting,
    /// This message.
    Message(Box<FirstMessage>),
    /// A message that cannot be read.
    Unreadable(StoreError),
}

/// What stands first in a queue, and whose queue it is, both at the same moment.
#[derive(Clone, Debug)]
pub struct Looked {
    /// The service that the recipient is associated with; `None` also for an absent queue.
    pub service: Option<ServiceId>,
    /// What stands first.
    pub first: Peeked,
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// Messages, quota markers included.
    pub size: u64,
    /// The first of them.
    pub first: Option<MessageSummary>,
}

/// A message without its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageSummary {
    /// Its ID.
    pub id: MessageId,
    /// When it was sent.
    pub timestamp: Timestamp,
    /// Whether it is a quota marker.
    pub quota: bool,
}

/// How many of everything the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queues.
    pub queues: u64,
    /// Messages, quota markers included.
    pub messages: u64,
}

/// What a step of [`Store::expire_messages`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryStep {
    /// Messages that it deleted.
    pub deleted: u32,
    /// Whether there are more to be looked at.
    pub more: bool,
}

/// A store of queues and messages.
///
/// Every call may be dropped at any point by its caller: what it had handed over is then done wholly or not at all.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The queues that `ids` name for `party`, in the order of `ids`; `None` for those that name none. One that another
    /// server left as we cannot read it is told by [`StoreError::Unreadable`].
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError>;

    /// The queues with these recipient IDs, in the order of `ids`, and whether each was empty at the same moment, as far as
    /// the store can tell without looking at messages. A store that a call takes a round trip to should be able to: queues
    /// that are subscribed are empty most of the time, and need not be looked at then.
    async fn queues_to_subscribe(&self, ids: &[QueueId]) -> Result<Vec<Option<(QueueRecord, Contents)>>, StoreError> {
        let records = self.queues(Party::Recipient, ids).await?;
        Ok(records.into_iter().map(|record| Some((record?, Contents::Unknown))).collect())
    }

    /// The first message of each queue (by recipient ID), in the order of `ids`. At most `limit` messages are read, those
    /// of the first queues that have one: of the others it is only said whether they have one. Each with the service that
    /// the queue is associated with.
    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError>;

    /// Size and first message of each queue (by recipient ID), in the order of `ids`, without bodies; absent queues are
    /// empty.
    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError>;

    /// The link data stored under each link ID.
    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError>;

    /// Does all of `ops` in their order in one transaction and answers after its commit, with one outcome an operation.
    /// An operation that finds its conditions not met ([`OpOutcome`]) changes nothing and does not hinder the others.
    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError>;

    /// Takes one step in deleting the messages that were sent before `before` (in whole seconds): deletes about `limit` of
    /// them at most, or looks at as many queues. To be called until it says that nothing is left. Each step is one
    /// transaction, and what is written meanwhile may wait: some hundred are a good `limit`.
    ///
    /// Quota markers do not expire: they tell the recipient that messages were refused, and the sender may send again once
    /// the recipient has acknowledged them.
    async fn expire_messages(&self, before: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError>;

    /// Removes what is left of queues that were deleted longer ago than the store keeps them; answers how many.
    async fn purge_deleted_queues(&self, _now: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Finds the service with this certificate, or keeps `service` as a new one. One certificate is one service, in one
    /// role, for ever, however many ask at the same time.
    async fn enrol(&self, service: ServiceRecord) -> Result<Enrolled, StoreError>;

    /// How many queues are associated with a service in this role, and the XOR of the MD5 of their IDs (recipient IDs of a
    /// messaging service, notifier IDs of a notifier): kept with each change, not counted. None for an unknown service.
    async fn service_queues(&self, service: ServiceId, role: ServiceRole) -> Result<ServiceQueues, StoreError>;

    /// Recipient IDs of queues that are associated with a messaging service and have a message, in the order of their IDs:
    /// at most `limit` behind `after`, from the first on if there is none. Less than `limit` are the last.
    async fn waiting_queues(
        &self,
        service: ServiceId,
        after: Option<QueueId>,
        limit: usize,
    ) -> Result<Vec<QueueId>, StoreError>;

    /// Counts the queues of every service and computes the XOR of the MD5 of their IDs anew, to be compared with what is
    /// kept; with `repair`, puts what was counted in its place. Looks at all queues: for the operator, not for a client.
    async fn check_services(&self, repair: bool) -> Result<Vec<ServiceCheck>, StoreError>;

    /// How many of everything. Counts rows, so it is for statistics, not for every command.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Finishes what was handed over, commits it and closes. Later calls answer [`StoreError::Closed`], as do calls that
    /// still wait for a place in the line.
    async fn close(&self) -> Result<(), StoreError>;

    /// The counters of its load; all zero for a store that has none.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}
