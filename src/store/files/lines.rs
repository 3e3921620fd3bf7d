//! Lines of a file, one after the other, in memory of one line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
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
    /// The file ends within it: it was cut, however good what is left may look, and what came after it is missing.
    Cut,
}

impl<'a> Line<'a> {
    /// The bytes of a whole line, or what is wrong with it.
    pub(super) fn whole(self) -> Result<&'a [u8], LineError> {
        match self {
            Line::Whole(line) => Ok(line),
            Line::TooLong => Err(LineError("the line is too long")),
            Line::Cut => Err(LineError("the file ends within this line: what came after is missing")),
        }
    }
}

/// A file that is read line by line.
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<io::Take<File>>,
    /// Wiped, also when it grows: lines hold secrets of queues.
    line: Zeroizing<Vec<u8>>,
    number: u64,
    read: u64,
    size: u64,
}

/// The largest buffer of a file, in bytes.
const BUFFER_BYTES: u64 = 64 * 1024;

impl Lines {
    /// Opens a file; lines count from 1.
    pub(super) fn open(path: &Path) -> Result<Self, TransferError> {
        let file = File::open(path).map_err(TransferError::file(path))?;
        let size = file.metadata().map_err(TransferError::file(path))?.len();
        Ok(Lines::part(path, file, size, 0))
    }

    /// `size` bytes of a file from where it stands; `before` lines stand before that.
    pub(super) fn part(path: &Path, file: File, size: u64, before: u64) -> Self {
        let buffer = usize::try_from(size.min(BUFFER_BYTES)).unwrap_or_default();
        let file = BufReader::with_capacity(buffer, file.take(size));
        Lines { path: path.to_owned(), file, line: Zeroizing::default(), number: before, read: 0, size }
    }

    /// The next line, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, TransferError> {
        self.number += 1;
        self.line.clear();
        let (before, mut long) = (self.read, false);
        let cut = loop {
            let available = self.file.fill_buf().map_err(TransferError::file(&self.path))?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            long |= self.line.len() + part.len() > MAX_LINE_BYTES;
            if !long {
                append(&mut self.line, part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.file.consume(taken);
            self.read += taken as u64;
            if end.is_some() || taken == 0 {
                break end.is_none();
            }
        };
        Ok(match (long, cut) {
            _ if self.read == before => None,
            (true, _) => Some(Line::TooLong),
            (false, true) => Some(Line::Cut),
            (false, false) => Some(Line::Whole(&self.line)),
        })
    }

    /// Why the line that was read last cannot be used.
    pub(super) fn damage(&self, reason: impl ToString) -> Damage {
        Damage { file: self.path.clone(), line: self.number, reason: reason.to_string() }
    }

    /// Number of the line that was read last, or after the end, one more.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes read, and bytes in all.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.read, self.size)
    }
}

/// Appends to a line; what it outgrows is wiped.
fn append(line: &mut Zeroizing<Vec<u8>>, part: &[u8]) {
    let length = line.len() + part.len();
    if length > line.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(length.next_power_of_two()));
        larger.extend_from_slice(line);
        *line = larger;
    }
    line.extend_from_slice(part);
}
