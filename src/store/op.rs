//! Operations that change the store, and their outcomes.
//!
//! Each operation names its queue by recipient ID and checks its own conditions inside the transaction, so that a record
//! read before may be out of date without harm.

use bytes::Bytes;

use super::record::{Day, Message, NewQueue, Notifier, Timestamp};
use crate::protocol::command::{LinkData, MessageFlags};
use crate::protocol::error::BlockingInfo;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId};

/// Something to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Create a queue. [`OpOutcome::Duplicate`] if any of its IDs (recipient, sender, link, notifier) is taken.
    CreateQueue(Box<NewQueue>),
    /// Set the sender's key. Done when it is the same already, [`OpOutcome::Conflict`] when another is set.
    SecureQueue {
        /// Recipient ID.
        queue: QueueId,
        /// The sender's key.
        key: PublicAuthKey,
    },
    /// Replace the recipient's keys (not empty).
    SetRecipientKeys {
        /// Recipient ID.
        queue: QueueId,
        /// The new keys.
        keys: Vec<PublicAuthKey>,
    },
    /// Set a link's data. Conflict when the queue has another link ID, or its fixed data differs; [`OpOutcome::Duplicate`]
    /// when the link ID belongs to another queue.
    SetLink {
        /// Recipient ID.
        queue: QueueId,
        /// Link ID.
        link_id: QueueId,
        /// The data.
        data: LinkData,
    },
    /// Delete link ID and data; done when there is none.
    DeleteLink {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Set or replace the notifier. Answers [`OpOutcome::NotifierWas`]. [`OpOutcome::Duplicate`] if its ID is taken.
    SetNotifier {
        /// Recipient ID.
        queue: QueueId,
        /// The notifier.
        notifier: Box<Notifier>,
    },
    /// Remove the notifier. Answers [`OpOutcome::NotifierWas`].
    DeleteNotifier {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Suspend (`OFF`): status becomes Off (also when it was blocked).
    SuspendQueue {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Block, for the operator.
    BlockQueue {
        /// Recipient ID.
        queue: QueueId,
        /// Why.
        info: BlockingInfo,
    },
    /// Make active again, for the operator.
    UnblockQueue {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Delete the queue, its link, notifier and messages.
    DeleteQueue {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Note the day of last use; ignored when the queue is gone.
    Touch {
        /// Recipient ID.
        queue: QueueId,
        /// The day.
        day: Day,
    },
    /// Append a message, or the quota marker when the queue is full. Conflict when the queue is not active.
    Send(Box<SendMessage>),
    /// Delete the queue's first message if it is this one (any if `message` is `None`); answers
    /// [`OpOutcome::Acknowledged`], also when nothing was deleted.
    Acknowledge {
        /// Recipient ID.
        queue: QueueId,
        /// The message.
        message: Option<MessageId>,
        /// Whether the outcome is to carry the next message.
        with_next: bool,
    },
}

/// A message to append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendMessage {
    /// Recipient ID.
    pub queue: QueueId,
    /// Its ID.
    pub id: MessageId,
    /// When it is sent.
    pub timestamp: Timestamp,
    /// Flags.
    pub flags: MessageFlags,
    /// Body, 0 to 16088 bytes.
    pub body: Bytes,
    /// Messages of this queue older than this are deleted first.
    pub expire_before: Option<Timestamp>,
    /// Delete the queue's link in the same transaction (a secured messaging queue needs none any more).
    pub delete_link: bool,
}

/// What became of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpOutcome {
    /// Done, or was so already.
    Done,
    /// There is no such queue.
    NoQueue,
    /// An ID is taken.
    Duplicate,
    /// Its conditions are not met.
    Conflict,
    /// The notifier that was set before.
    NotifierWas(Option<Box<Notifier>>),
    /// A message was appended.
    Sent(Sent),
    /// The queue is full (a marker may have been appended).
    Quota,
    /// What `ACK` deleted, and the message that is first now (only if asked for).
    Acknowledged {
        /// The deleted message's flags and time, if it was deleted and no quota marker.
        deleted: bool,
        /// The next message.
        next: Option<Box<Message>>,
        /// Whether there is a next message (also when `next` was not asked for).
        more: bool,
    },
}

/// An appended message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its number within the queue.
    pub sequence: u64,
    /// Whether it is the queue's first message now.
    pub was_empty: bool,
    /// How many expired messages were deleted.
    pub expired: u32,
}
