//! The records of a store log: each is a line that says what became of one queue or service. Pure.

mod read;
#[cfg(test)]
mod tests;
mod write;

use super::text::LineError;
use crate::protocol::command::LinkData;
use crate::protocol::error::BlockingInfo;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{QueueId, ServiceId};
use crate::store::record::{Day, NewQueue, Notifier, ServiceRecord};

/// A line of a store log. `queue` is the recipient ID everywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreLogRecord {
    /// `CREATE`: a queue as it is when the record is written.
    CreateQueue(Box<NewQueue>),
    /// `CREATE` with a link whose ID is none of ours: the queue without its link. Never written.
    CreateQueueWithoutLink(Box<NewQueue>),
    /// `LINK`.
    SetLink {
        /// The queue.
        queue: QueueId,
        /// Link ID.
        link_id: QueueId,
        /// The data.
        data: LinkData,
    },
    /// `LINK` with an ID that is none of ours. Never written.
    SetUnusableLink {
        /// The queue.
        queue: QueueId,
    },
    /// `LDELETE`.
    DeleteLink {
        /// The queue.
        queue: QueueId,
    },
    /// `SECURE`.
    SecureQueue {
        /// The queue.
        queue: QueueId,
        /// The sender's key.
        key: PublicAuthKey,
    },
    /// `KEYS`.
    SetRecipientKeys {
        /// The queue.
        queue: QueueId,
        /// One at least.
        keys: Vec<PublicAuthKey>,
    },
    /// `NOTIFIER`.
    SetNotifier {
        /// The queue.
        queue: QueueId,
        /// The notifier.
        notifier: Box<Notifier>,
    },
    /// `NDELETE`.
    DeleteNotifier {
        /// The queue.
        queue: QueueId,
    },
    /// `SUSPEND`.
    SuspendQueue {
        /// The queue.
        queue: QueueId,
    },
    /// `BLOCK`.
    BlockQueue {
        /// The queue.
        queue: QueueId,
        /// Why.
        info: BlockingInfo,
    },
    /// `UNBLOCK`.
    UnblockQueue {
        /// The queue.
        queue: QueueId,
    },
    /// `DELETE`.
    DeleteQueue {
        /// The queue.
        queue: QueueId,
    },
    /// `TIME`: the day of last use.
    Touch {
        /// The queue.
        queue: QueueId,
        /// The day.
        day: Day,
    },
    /// `NEW_SERVICE`.
    NewService(Box<ServiceRecord>),
    /// `QUEUE_SERVICE`.
    SetQueueService {
        /// The queue.
        queue: QueueId,
        /// Whose service it is.
        party: ServiceParty,
        /// The service; `None` when the queue belongs to none any more.
        service: Option<ServiceId>,
    },
}

/// A party of a queue that may be a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceParty {
    /// The recipient.
    Recipient,
    /// The notifier.
    Notifier,
}

impl StoreLogRecord {
    /// Reads a line, without its end; in the current form or any older one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, LineError> {
        read::record(line)
    }

    /// Appends the line, without its end.
    pub fn write(&self, line: &mut Vec<u8>) {
        write::record(self, line);
    }
}
