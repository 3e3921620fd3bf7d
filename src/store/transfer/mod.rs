//! Moving everything that a store holds to another store: as a stream, in bounded memory.
//!
//! A [`Source`] yields items, a [`Sink`] takes them; both block their thread and are for commands and for what is done
//! before the server starts, never for a running one. Sources yield services first, then queues in the order of their
//! recipient IDs, and the messages of a queue in their order, either right after it (stores) or after all queues (files).
//!
//! Nothing is dropped silently: what cannot be read is a [`Damage`], which the caller counts and shows.

pub mod file;
#[cfg(test)]
pub(crate) mod testing;

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::record::{Message, NewQueue, ServiceRecord};
use crate::protocol::QueueId;

/// Something that a store holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A client service.
    Service(Box<ServiceRecord>),
    /// A queue, without its messages.
    Queue(Box<NewQueue>),
    /// A message (its sequence number means nothing elsewhere), and the recipient ID of its queue.
    Message(QueueId, Box<Message>),
}

/// A line or record that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}: {reason}", file.display(), Line(*line))]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// What is wrong, without IDs or keys.
    pub reason: String,
}

impl Damage {
    /// As it may stand in a log: paths inside a journal directory, which name queues, are cut.
    pub fn for_logs(&self) -> String {
        let mut file = PathBuf::new();
        for component in self.file.components() {
            let inside = file.file_name().is_some_and(|name| name == JOURNAL);
            file.push(if inside { std::ffi::OsStr::new("...") } else { component.as_os_str() });
            if inside {
                break;
            }
        }
        Damage { file, ..self.clone() }.to_string()
    }
}

/// The name of the Haskell server's journal directory, in which the path of a file is the recipient ID of its queue.
const JOURNAL: &str = "messages";

/// A line's number as it stands behind the name of its file.
struct Line(u64);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, ":{}", self.0) }
    }
}

/// Why a transfer cannot go on. Each text says what to do, or what failed where.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A store.
    #[error("{0}")]
    Store(String),
}

impl TransferError {
    /// For `map_err` after an operation on `path`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| TransferError::File { path, source }
    }
}

/// Where items come from.
pub trait Source {
    /// The next item; `None` at the end. What cannot be used is told to `damaged` and passed over.
    ///
    /// # Errors
    /// What is told here is the end of the transfer.
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError>;

    /// How far it is: parts done and parts in all, in whatever unit (bytes, rows); `None` if it cannot be known.
    fn progress(&self) -> Option<(u64, u64)>;
}

/// What became of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// It is there now.
    Stored,
    /// It was there already, exactly so; only while a transfer is resumed.
    Present,
    /// One of its IDs is taken by another queue or service.
    Duplicate,
    /// A message for a queue that is not there.
    NoQueue,
}

/// What a sink that writes many items at once found out too late to answer it for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rejected {
    /// Services of which an ID is taken by another one.
    pub duplicate_services: u64,
    /// Queues of which an ID is taken by another one.
    pub duplicate_queues: u64,
    /// Messages for a queue that is not there.
    pub messages_without_queue: u64,
}

/// Where items go.
pub trait Sink {
    /// Takes an item. It is there for good only after [`Self::finish`], or, in a store whose transfers can be resumed, once
    /// the sink has committed what it had.
    ///
    /// # Errors
    /// The disk or database failed; the transfer is over.
    fn put(&mut self, item: Item) -> Result<Put, TransferError>;

    /// Writes what was put and still waits to be written with others, and answers how much of that it could not take
    /// although it had been answered [`Put::Stored`].
    ///
    /// # Errors
    /// The disk or database failed; the transfer is over.
    fn settle(&mut self) -> Result<Rejected, TransferError> {
        Ok(Rejected::default())
    }

    /// Commits everything and makes it what the server will find. A sink that is dropped without leaves nothing that a
    /// server would use.
    ///
    /// # Errors
    /// The disk or database failed.
    fn finish(self: Box<Self>) -> Result<(), TransferError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_not_told_which_queue_of_a_journal_is_damaged() {
        let damage = |file: &str| Damage { file: file.into(), line: 3, reason: "is cut".into() }.for_logs();
        assert_eq!(damage("/log/messages/ab/cd/ef/gh/rest/queue_state.x.log"), "/log/messages/...:3: is cut");
        assert_eq!(damage("/log/smp-server-messages.log"), "/log/smp-server-messages.log:3: is cut");
    }
}
