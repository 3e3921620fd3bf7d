//! Files of an installation: written whole, private where they are secret, and never over something that was there unless
//! that is what the command is for.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::CommandError;

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The owner: mode 0600.
    Private,
    /// Everybody: mode 0644.
    Public,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Access::Private => 0o600,
            Access::Public => 0o644,
        }
    }
}

/// Creates files that must not exist, and removes them again unless all of them were written.
#[derive(Default)]
pub struct NewFiles {
    created: Vec<PathBuf>,
}

impl NewFiles {
    /// Creates `path` with `content`.
    pub fn create(&mut self, path: &Path, content: &[u8], access: Access) -> Result<(), CommandError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(access.mode()).open(path);
        let mut file = file.map_err(CommandError::file("create", path))?;
        self.created.push(path.to_owned());
        file.write_all(content).and_then(|()| file.sync_all()).map_err(CommandError::file("write", path))
    }

    /// Keeps what was created.
    pub fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for path in &self.created {
            // Nothing better can be done about a failure here; the command already reports one.
            let _ = fs::remove_file(path);
        }
    }
}

/// Files that are replaced together: all are written beside the old ones first, then renamed.
#[derive(Default)]
pub struct Replacement {
    new: NewFiles,
    renames: Vec<(PathBuf, PathBuf)>,
}

impl Replacement {
    /// Writes the new content of `path` beside it.
    pub fn prepare(&mut self, path: &Path, content: &[u8], access: Access) -> Result<(), CommandError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        remove_if_exists(&beside).map_err(CommandError::file("remove", &beside))?;
        self.new.create(&beside, content, access)?;
        self.renames.push((beside, path.to_owned()));
        Ok(())
    }

    /// Puts everything that was prepared in the place of the old files.
    pub fn commit(self) -> Result<(), CommandError> {
        for (beside, path) in &self.renames {
            fs::rename(beside, path).map_err(CommandError::file("replace", path))?;
        }
        self.new.keep();
        Ok(())
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(CommandError::file("read", path))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_files_are_removed_again_when_one_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&b, "there").unwrap();
        let mut files = NewFiles::default();
        files.create(&a, b"1", Access::Private).unwrap();
        assert_eq!(fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(files.create(&b, b"2", Access::Public).is_err());
        drop(files);
        assert!(!a.exists());
        assert_eq!(fs::read(&b).unwrap(), b"there");
    }

    #[test]
    fn a_replacement_that_is_not_committed_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut replacement = Replacement::default();
        replacement.prepare(&path, b"new", Access::Private).unwrap();
        drop(replacement);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut replacement = Replacement::default();
        replacement.prepare(&path, b"new", Access::Private).unwrap();
        replacement.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
