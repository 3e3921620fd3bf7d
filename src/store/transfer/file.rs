//! Putting files in place so that a power cut finds the old or the new ones, never a mixture.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::TransferError;

/// Waits until the content of `path` is on the disk.
///
/// # Errors
/// It cannot be opened, or the disk failed.
pub fn sync(path: &Path) -> Result<(), TransferError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(TransferError::file(path))
}

/// Waits until the names in the directory of `path` are on the disk.
///
/// # Errors
/// It cannot be opened, or the disk failed.
pub fn sync_directory_of(path: &Path) -> Result<(), TransferError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(directory)
}

/// Renames for good: the new name is on the disk when this returns.
///
/// # Errors
/// As [`fs::rename`].
pub fn rename(from: &Path, to: &Path) -> Result<(), TransferError> {
    fs::rename(from, to).map_err(TransferError::file(from))?;
    sync_directory_of(to)
}

/// Whether there is something of this name, be it a link that leads nowhere (to a volume that is not mounted), or in a
/// directory that may not be looked at: who takes such for nothing goes on without what it holds.
pub fn is_present(path: &Path) -> bool {
    path.symlink_metadata().err().is_none_or(|error| error.kind() != std::io::ErrorKind::NotFound)
}

/// Deletes a file that may not be there.
///
/// # Errors
/// It is there and cannot be deleted.
pub fn remove(path: &Path) -> Result<(), TransferError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(TransferError::file(path)(source)),
        _ => Ok(()),
    }
}

/// `path` with `suffix` added to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Renames a file or directory that was imported to `NAME.bak`, or `NAME.bak.1`, ... where older ones are kept; answers
/// the new name.
///
/// # Errors
/// As [`fs::rename`].
pub fn back_up(path: &Path) -> Result<PathBuf, TransferError> {
    let numbered = (1_u32..).map(|number| with_suffix(path, &format!(".bak.{number}")));
    let mut names = std::iter::once(with_suffix(path, ".bak")).chain(numbered);
    // The names do not end.
    let free = names.find(|name| name.symlink_metadata().is_err()).unwrap_or_else(|| with_suffix(path, ".bak"));
    rename(path, &free)?;
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_backups_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        for content in ["1", "2", "3"] {
            fs::write(&path, content).unwrap();
            back_up(&path).unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!([read("a.log.bak"), read("a.log.bak.1"), read("a.log.bak.2")], ["1", "2", "3"]);
        assert!(!path.exists());
    }
}
