//! The journal directory: a directory for each queue that has had messages, with files of messages and a file that says
//! where in them it stands.
//!
//! The recipient ID in Base64 names the directory, cut into four times two characters and the rest, as in
//! `messages/AA/BB/CC/DD/EE...`. In it are `queue_state.ID.log`, of which the last whole line counts, and one or two
//! `messages.JOURNAL.log`, one being read and one being written; what lies outside the range that the state names is read
//! already, or was never acknowledged.

mod reader;
pub(super) mod state;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use std::path::{Path, PathBuf};

pub use reader::JournalDirectory;
pub use writer::JournalWriter;

use super::text::put_base64;
use crate::protocol::QueueId;

/// Characters of the name of each directory above a queue's own.
const PART: usize = 2;

/// Directories above a queue's own, the root not counted.
const PARTS: usize = 4;

/// A queue's ID as the names have it: 32 characters of the URL alphabet, no padding.
fn id_text(queue: &QueueId) -> String {
    let mut text = Vec::with_capacity(32);
    put_base64(&mut text, &queue.0);
    String::from_utf8(text).unwrap_or_default()
}

/// The directory of a queue.
fn queue_directory(root: &Path, id: &str) -> PathBuf {
    let (parts, rest) = id.split_at_checked(PART * PARTS).unwrap_or(("", id));
    let mut path = root.to_owned();
    path.extend(parts.as_bytes().chunks(PART).filter_map(|part| std::str::from_utf8(part).ok()));
    path.join(rest)
}

/// The file of a queue's state.
fn state_path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("queue_state.{id}.log"))
}

/// A file of messages.
fn journal_path(directory: &Path, journal: &str) -> PathBuf {
    directory.join(format!("messages.{journal}.log"))
}
