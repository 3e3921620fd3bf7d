//! The journal directory: a directory for each queue that has had messages, with files of messages and a file that says
//! where in them it stands.
//!
//! The recipient ID in Base64 names the directory, cut into four times two characters and the rest:
//! `messages/8v/JZ/qZ/1I/rbPF4ilwBfh6520SbMFKMKBw`. In it are `queue_state.ID.log`, of which the last whole line counts,
//! and one or two `messages.JOURNAL.log`, one being read and one being written.

mod reader;
mod writer;

pub use reader::JournalDirectory;
pub use writer::JournalWriter;
