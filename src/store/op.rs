//! Operations that change the store, and their outcomes.
//!
//! Each operation names its queue by recipient ID and checks its own conditions inside the transaction, so that a record
//! read before may be out of date without harm.

use bytes::Bytes;

use super::record::{Day, Message, NewQueue, Notifier, Timestamp};
use crate::protocol::command::{LinkData, MessageFlags};
use crate::protocol::error::BlockingInfo;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};

/// Something to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Create a queue. [`OpOutcome::Duplicate`] if any of its IDs (recipient, sender, link, notifier) is taken by a queue
    /// in the same role; [`OpOutcome::Conflict`] for a record without recipient keys or with a link ID without its data.
    CreateQueue(Box<NewQueue>),
    /// Set the sender's key. Done when it is the same already, [`OpOutcome::Conflict`] when another is set.
    SecureQueue {
        /// Recipient ID.
        queue: QueueId,
        /// The sender's key.
        key: PublicAuthKey,
    },
    /// Replace the recipient's keys; [`OpOutcome::Conflict`] when there are none.
    SetRecipientKeys {
        /// Recipient ID.
        queue: QueueId,
        /// The new keys.
        keys: Vec<PublicAuthKey>,
    },
    /// Set a link's data, or replace its user data. [`OpOutcome::Conflict`] when the queue has another link ID, or its fixed
    /// data differs; [`OpOutcome::Duplicate`] when the link ID belongs to another queue.
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
    /// Associate the recipient with a service, or release it from its service. Answers [`OpOutcome::Associated`]. [`OpOutcome::Conflict`] for a
    /// service that is not kept.
    AssociateRecipient {
        /// Recipient ID.
        queue: QueueId,
        /// The service.
        service: Option<ServiceId>,
    },
    /// The same for the queue's notifier. [`OpOutcome::Conflict`] also when the queue has another notifier or none.
    AssociateNotifier {
        /// Recipient ID.
        queue: QueueId,
        /// The notifier's ID of the queue.
        notifier: QueueId,
        /// The service.
        service: Option<ServiceId>,
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
    /// Delete the queue, its link, notifier and messages. Its IDs are free again. Answers [`OpOutcome::Deleted`].
    DeleteQueue {
        /// Recipient ID.
        queue: QueueId,
    },
    /// Note the day of last use.
    Touch {
        /// Recipient ID.
        queue: QueueId,
        /// The day.
        day: Day,
    },
    /// Append a message. [`OpOutcome::Conflict`] when the queue is not active.
    ///
    /// A queue that holds as many messages as the store's quota allows is full: the first message that finds it so leaves
    /// a quota marker with its own ID and time in its place, and from then on nothing is appended until the queue is
    /// empty. Both answer [`OpOutcome::Quota`].
    Send(Box<SendMessage>),
    /// Delete the queue's first message (or quota marker) if it is this one (any if `message` is `None`); answers
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

impl Op {
    /// The recipient ID of the queue that it is about.
    pub fn queue(&self) -> &QueueId {
        match self {
            Op::CreateQueue(new) => &new.record.recipient_id,
            Op::Send(message) => &message.queue,
            Op::SecureQueue { queue, .. }
            | Op::SetRecipientKeys { queue, .. }
            | Op::SetLink { queue, .. }
            | Op::DeleteLink { queue }
            | Op::AssociateRecipient { queue, .. }
            | Op::AssociateNotifier { queue, .. }
            | Op::SetNotifier { queue, .. }
            | Op::DeleteNotifier { queue }
            | Op::SuspendQueue { queue }
            | Op::BlockQueue { queue, .. }
            | Op::UnblockQueue { queue }
            | Op::DeleteQueue { queue }
            | Op::Touch { queue, .. }
            | Op::Acknowledge { queue, .. } => queue,
        }
    }
}

/// About how many bytes a batch occupies while it waits.
pub(super) fn weight(ops: &[Op]) -> usize {
    ops.iter().map(|op| OP_BYTES + content(op)).sum()
}

/// About how many bytes an operation occupies without its content.
const OP_BYTES: usize = 256;

fn content(op: &Op) -> usize {
    match op {
        Op::Send(message) => message.body.len(),
        Op::SetLink { data, .. } => data.fixed.len() + data.user.len(),
        Op::CreateQueue(new) => new.link_data.as_ref().map_or(0, |data| data.fixed.len() + data.user.len()),
        _ => 0,
    }
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
    /// Messages of this queue sent before this are deleted first; a quota marker is not.
    pub expire_before: Option<Timestamp>,
    /// Delete the queue's link in the same transaction, also when the queue is full (a secured messaging queue needs none
    /// any more).
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
    /// The service that the queue, or its notifier, was associated with before.
    Associated {
        /// Which.
        was: Option<ServiceId>,
    },
    /// The queue was deleted.
    Deleted(Audience),
    /// A message was appended.
    Sent(Sent),
    /// The queue is full (a marker may have been appended).
    Quota,
    /// What `ACK` deleted, and the message that is first now: the second one before, or the same one if it was not the
    /// acknowledged one.
    Acknowledged {
        /// Whether a message was deleted that its recipient has received now. A deleted quota marker does not count.
        deleted: bool,
        /// The message that is first now, if it was asked for.
        next: Option<Box<Message>>,
        /// Whether there is a message now (also when `next` was not asked for).
        more: bool,
    },
}

/// Who else has to do with a queue, as of the operation's transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Audience {
    /// The service that the recipient is associated with.
    pub service: Option<ServiceId>,
    /// The notifier. Of a message only if its flags ask for a notification.
    pub notifier: Option<Box<Notifier>>,
}

/// An appended message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its number within the queue.
    pub sequence: u64,
    /// Whether it is the queue's first message now.
    pub was_empty: bool,
    /// How many expired messages were deleted.
    pub expired: u32,
    /// Who is to be told of it.
    pub audience: Audience,
}
