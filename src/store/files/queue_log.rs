//! A store log as a source of services and queues.

use std::path::Path;

use crate::protocol::QueueId;
use crate::store::transfer::{Damage, Item, Source, TransferError};

/// What is told while a log is replayed.
#[derive(Debug)]
pub enum Replay {
    /// A line that cannot be used.
    Damaged(Damage),
    /// A line that is a record, and changes nothing; the reference only logs it.
    Ineffective {
        /// The line, from 1.
        line: u64,
        /// Why it changes nothing.
        why: Ineffective,
    },
    /// Bytes read, and bytes in all; after some thousands of lines each time.
    Progress(u64, u64),
}

/// Why a record changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Ineffective {
    /// There is such a queue, or one of its IDs belongs to another.
    #[error("a queue or one of its IDs is there already")]
    Duplicate,
    /// There was never such a queue.
    #[error("there is no such queue")]
    UnknownQueue,
    /// The queue was deleted before.
    #[error("the queue was deleted before")]
    DeletedQueue,
    /// The queue's state does not allow it: another sender key or link is set, or there is no notifier.
    #[error("the queue is not in a state for it")]
    Conflict,
    /// A service that is there already with another ID or role.
    #[error("a service is there already with another ID or role")]
    ServiceConflict,
    /// A queue's link ID cannot be one: the queue is taken without its link.
    #[error("a link's ID is not 24 bytes long")]
    UnusableLink,
    /// A queue belongs to a service that is not there: it is taken without it.
    #[error("there is no such service")]
    UnknownService,
}

/// The services and queues of a store log.
pub struct QueueLog {}

impl QueueLog {
    /// Reads a log and does what its records say, in a scratch file beside it (the same name and `.tmp`), which is removed
    /// with the value.
    ///
    /// # Errors
    /// The log cannot be read, or the scratch file not be written.
    pub fn replay(_log: &Path, _tell: &mut dyn FnMut(Replay)) -> Result<Self, TransferError> {
        Ok(QueueLog {})
    }

    /// Whether there is a queue with this recipient ID.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn contains(&self, _recipient_id: &QueueId) -> Result<bool, TransferError> {
        Ok(false)
    }

    /// Services and queues that the log has led to.
    pub fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Yields services, then queues in the order of their recipient IDs; reports no damage.
impl Source for QueueLog {
    fn next(&mut self, _damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        Ok(None)
    }

    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}
