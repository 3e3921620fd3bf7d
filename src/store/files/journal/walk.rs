//! Finds the directories of queues, in memory of the names in five directories.

use std::fs;
use std::path::{Path, PathBuf};

use super::{PART, PARTS};
use crate::protocol::QueueId;
use crate::store::files::text::Fields;
use crate::store::transfer::{Damage, TransferError};

/// A queue's directory.
pub(super) struct Found {
    pub(super) queue: QueueId,
    /// Its recipient ID as the names have it.
    pub(super) id: String,
    pub(super) path: PathBuf,
}

/// Goes through a journal directory in the order of the names.
pub(super) struct Walk {
    /// What is left in each open directory, the root first.
    levels: Vec<std::vec::IntoIter<PathBuf>>,
    /// Entries of the root.
    entries: usize,
}

impl Walk {
    pub(super) fn of(root: &Path) -> Result<Self, TransferError> {
        let level = list(root)?;
        Ok(Walk { entries: level.len(), levels: vec![level] })
    }

    /// The next queue's directory. What is not part of a journal is told to `damaged`.
    pub(super) fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Found>, TransferError> {
        loop {
            let depth = self.levels.len();
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            let Some(path) = level.next() else {
                self.levels.pop();
                continue;
            };
            match place(&path, depth) {
                Place::Above => self.levels.push(list(&path)?),
                Place::Queue(queue, id) => return Ok(Some(Found { queue, id, path })),
                Place::Foreign => {
                    damaged(Damage { file: path, line: 0, reason: "this is no part of a journal directory".to_owned() })
                }
            }
        }
    }

    /// Entries of the root that are done, and all of them.
    pub(super) fn progress(&self) -> (u64, u64) {
        let left = self.levels.first().map_or(0, ExactSizeIterator::len);
        ((self.entries - left) as u64, self.entries as u64)
    }
}

enum Place {
    /// A directory of directories.
    Above,
    Queue(QueueId, String),
    Foreign,
}

/// What `path` is, `depth` names below the root.
fn place(path: &Path, depth: usize) -> Place {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|_| path.is_dir()) else { return Place::Foreign };
    if depth <= PARTS {
        return if name.len() == PART { Place::Above } else { Place::Foreign };
    }
    let mut names: Vec<_> = path.ancestors().take(depth).filter_map(|path| path.file_name()?.to_str()).collect();
    names.reverse();
    let id = names.concat();
    let mut fields = Fields::of(id.as_bytes());
    match fields.queue_id() {
        Ok(queue) if fields.end().is_ok() => Place::Queue(queue, id),
        _ => Place::Foreign,
    }
}

fn list(directory: &Path) -> Result<std::vec::IntoIter<PathBuf>, TransferError> {
    let entries = fs::read_dir(directory).map_err(TransferError::file(directory))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(TransferError::file(directory))?;
    paths.sort_unstable();
    Ok(paths.into_iter())
}
