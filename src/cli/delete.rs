//! `smp-server delete`: the end of a server. Its queues cannot be reached ever after.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::console::Console;
use super::error::CommandError;
use crate::settings::Paths;
use crate::store::sqlite::{OpenError, StoreLock};

/// Deletes the configuration and log directories of an installation, if the operator confirms it.
pub fn delete(paths: &Paths, console: &mut Console<'_>) -> Result<(), CommandError> {
    // Also a guard: a mistyped path names a directory without an INI file, and nothing is deleted.
    super::require_installation(paths)?;
    let _lock = lock_store(&paths.store())?;
    let warning = format!(
        "WARNING: this deletes {} and {} with everything in them.\n\
         The identity of the server and all its queues will be lost for ever. THIS CANNOT BE UNDONE!",
        paths.config.display(),
        paths.log.display()
    );
    if !console.confirm(warning)? {
        return Err(CommandError::refused("the server was NOT deleted: only a capital Y is a yes."));
    }
    delete_directory(&paths.config)?;
    delete_directory(&paths.log)?;
    console.say("Deleted configuration and log files")?;
    Ok(())
}

/// A server that runs would go on answering, and what it answered would be lost.
fn lock_store(store: &Path) -> Result<Option<StoreLock>, CommandError> {
    if !store.exists() {
        return Ok(None);
    }
    let stop_first = |error: OpenError| CommandError::refused(format!("{error}\nStop the server first."));
    StoreLock::take(store).map(Some).map_err(stop_first)
}

/// Deletes what is in `path`, then `path` itself, which stays if it is the mount point of a volume or its parent is not ours.
fn delete_directory(path: &Path) -> Result<(), CommandError> {
    if !path.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(CommandError::file("read", path))? {
        let entry = entry.map_err(CommandError::file("read", path))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let child = entry.path();
        let deleted = if is_directory { fs::remove_dir_all(&child) } else { fs::remove_file(&child) };
        deleted.map_err(CommandError::file("delete", &child))?;
    }
    match fs::remove_dir(path) {
        Err(e) if matches!(e.kind(), ErrorKind::ResourceBusy | ErrorKind::PermissionDenied) => Ok(()),
        other => other.map_err(CommandError::file("delete", path)),
    }
}
