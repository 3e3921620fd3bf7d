//! The reference's files: its store log, messages log, notifications log and journal directory, read and written.
//!
//! ```text
//!   QueueLog, MessageLog, JournalDirectory: sources      LogFiles, JournalWriter: sinks
//!   store_log::StoreLogRecord, message, notification: the codecs of single lines, pure
//!   text, lines, new_file: what they share
//! ```
//!
//! What is written is byte for byte what the reference writes. What is read is all that the reference reads, in its current
//! and older forms, and the lines that it writes and cannot read back: messages with empty bodies, blocked queues with a
//! notice and a service, and queues with an empty link ID (which lose it: nobody can ask for it).
//!
//! Everything streams: no file is ever in memory, a line at most ([`MAX_LINE_BYTES`]). A reader changes nothing of what it
//! reads; a writer works under another name until it is finished. Reasons of [`Damage`](super::transfer::Damage) never carry
//! what stands in a line.

pub mod journal;
mod lines;
pub mod message;
mod message_log;
mod new_file;
pub mod notification;
pub mod notification_journal;
mod queue_log;
pub mod store_log;
#[cfg(test)]
mod tests;
mod text;
mod writers;

pub use journal::{JournalDirectory, JournalWriter};
pub use lines::MAX_LINE_BYTES;
pub use message_log::MessageLog;
pub use notification::{NotificationLog, NotificationLogWriter};
pub use notification_journal::{NotificationJournal, read_notification_journal};
pub use queue_log::{Ineffective, QueueLog, Replay, is_store_log_present};
pub use text::LineError;
pub use writers::LogFiles;

/// Name of the log of queues and services in the log directory.
pub const STORE_LOG: &str = "smp-server-store.log";

/// Name of the log of messages in the log directory.
pub const MESSAGE_LOG: &str = "smp-server-messages.log";

/// Name of the log of notifications in the log directory.
pub const NOTIFICATION_LOG: &str = "smp-server-ntfs.log";

/// The name of the notifications journal, which only this server has.
pub const NOTIFICATION_JOURNAL: &str = "smp-server-ntfs.journal";

/// Name of the journal directory in the log directory.
pub const JOURNAL_DIRECTORY: &str = "messages";
