//! A file of lines that appears under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::store::transfer::TransferError;

/// `path` with `suffix` behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the names in the directory of `path` outlive a power cut.
pub(super) fn sync_directory_of(path: &Path) -> Result<(), TransferError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(TransferError::file(directory))
}

/// Deletes a file if it is there.
pub(super) fn remove_if_there(path: &Path) -> Result<(), TransferError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TransferError::file(path)(error)),
        _ => Ok(()),
    }
}

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
        let beside = with_suffix(path, ".tmp");
        remove_if_there(&beside)?;
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
        fs::rename(&self.beside, &self.path).map_err(TransferError::file(&self.path))?;
        sync_directory_of(&self.path)
    }
}

/// After it was finished there is nothing under that name any more.
impl Drop for NewFile {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here; the next attempt replaces it.
        let _ = fs::remove_file(&self.beside);
    }
}
