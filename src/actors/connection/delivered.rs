//! What is offered to a subscription, and what becomes of it.

use crate::protocol::MessageId;

/// A delivered message that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Its ID.
    pub id: MessageId,
    /// Its number within the queue.
    pub sequence: u64,
}

/// Where a message that is offered comes from.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Source {
    /// Its sender's connection, which may have taken its time.
    Pushed,
    /// The store, which had it as the queue's first: read by the command that is being answered.
    Read,
    /// The store, likewise: asked because something was to be fetched.
    Fetched,
}

/// What to do with a message that is offered for delivery.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Offer {
    /// Send it: it is noted as delivered.
    Deliver,
    /// Not now: ask the store again when the connection can take it.
    Later,
    /// Not at all: not subscribed, another message is unacknowledged, or it was acknowledged before.
    Drop,
}

/// Outcome of a confirmed subscription.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Confirmed {
    /// In force.
    InForce,
    /// It was taken over before it was confirmed: `END` follows its `SOK`.
    Ended,
}

/// What `ACK` acknowledges.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Acknowledging {
    /// The message.
    pub message: Delivered,
    /// It was got by `GET`: the next message is not sent in the answer.
    pub got: bool,
}

/// A queue is used by both `SUB` and `GET` on one connection.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Prohibited;

/// How a queue is used, for `QUE`.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Use {
    /// By `GET`.
    pub got: bool,
    /// A message waits for room in the outbound queue.
    pub waiting: bool,
    /// The unacknowledged message.
    pub delivered: Option<MessageId>,
}
