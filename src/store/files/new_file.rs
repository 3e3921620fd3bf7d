//! A file of lines that appears under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::store::transfer::{TransferError, file};

/// A file that is being written beside its place.
pub(super) struct NewFile {
    path: PathBuf,
    beside: PathBuf,
    file: BufWriter<File>,
    /// Wiped: lines hold secrets of queues.
    line: Zeroizing<Vec<u8>>,
}

impl NewFile {
    /// Begins a file, for the server's user only; what an attempt before has left is replaced.
    pub(super) fn create(path: &Path) -> Result<Self, TransferError> {
        let beside = file::with_suffix(path, ".tmp");
        file::remove(&beside)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        let file = BufWriter::with_capacity(64 * 1024, file.map_err(TransferError::file(&beside))?);
        Ok(NewFile { path: path.to_owned(), beside, file, line: Zeroizing::default() })
    }

    /// Appends the line that `write` makes.
    pub(super) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TransferError> {
        self.line.clear();
        write(&mut self.line);
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(TransferError::file(&self.beside))
    }

    /// Writes it to the disk and gives it its name.
    pub(super) fn finish(mut self) -> Result<(), TransferError> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        written.map_err(TransferError::file(&self.beside))?;
        file::rename(&self.beside, &self.path)
    }
}

/// After it was finished there is nothing under that name any more.
impl Drop for NewFile {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here; the next attempt replaces it.
        let _ = fs::remove_file(&self.beside);
    }
}
