//! Lines of a file, one after the other, in memory of one line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::text::LineError;
use crate::store::transfer::{Damage, TransferError};

/// The longest line that is read, in bytes; a longer one is damage. A message with the largest body has about 22 KB, a
/// queue with the largest link data about 50 KB, a service with a chain of four large certificates about as much.
pub const MAX_LINE_BYTES: usize = 256 * 1024;

/// What the next line is.
pub(super) enum Line<'a> {
    /// Its bytes, without the end of line.
    Whole(&'a [u8]),
    /// It is longer than allowed.
    TooLong,
}

impl Line<'_> {
    /// What is wrong with [`Line::TooLong`].
    pub(super) const TOO_LONG: LineError = LineError("the line is too long");
}

/// A file that is read line by line.
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    /// Wiped, and never moved to grow: lines hold secrets of queues.
    line: Zeroizing<Vec<u8>>,
    number: u64,
    read: u64,
    size: u64,
}

impl Lines {
    /// Opens a file; lines count from 1.
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        let file = File::open(path).map_err(TransferError::file(path))?;
        Lines::of(path, file, 0)
    }

    /// The lines of a file that is open, from where it stands; `before` lines stand before that.
    pub(super) fn of(path: &Path, file: File, before: u64) -> Result<Self, TransferError> {
        let size = file.metadata().map_err(TransferError::file(path))?.len();
        let file = BufReader::with_capacity(64 * 1024, file);
        Ok(Lines {
            path: path.to_owned(),
            file,
            line: Zeroizing::new(Vec::with_capacity(MAX_LINE_BYTES)),
            number: before,
            read: 0,
            size,
        })
    }

    /// The next line, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, TransferError> {
        self.number += 1;
        self.line.clear();
        let (mut any, mut long) = (false, false);
        loop {
            let available = self.file.fill_buf().map_err(TransferError::file(&self.path))?;
            if available.is_empty() {
                break;
            }
            any = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            long |= self.line.len() + part.len() > MAX_LINE_BYTES;
            if !long {
                self.line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.file.consume(taken);
            self.read += taken as u64;
            if end.is_some() {
                break;
            }
        }
        Ok(match (any, long) {
            (false, _) => None,
            (true, true) => Some(Line::TooLong),
            (true, false) => Some(Line::Whole(&self.line)),
        })
    }

    /// Why the line that was read last cannot be used.
    pub(super) fn damage(&self, reason: impl ToString) -> Damage {
        Damage { file: self.path.clone(), line: self.number, reason: reason.to_string() }
    }

    /// Number of the line that was read last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes read, and bytes in all.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.read, self.size.max(self.read))
    }
}
