//! The embedded store as a [`Source`](crate::store::transfer::Source) and a [`Sink`](crate::store::transfer::Sink) of
//! transfers.
//!
//! Both hold the store's lock: they never work beside a server. A new store comes into being under another name and gets
//! its own when it is whole.

mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use sink::SqliteSink;
pub use source::SqliteSource;

use std::path::Path;

use super::{OpenError, StoreLock};
use crate::store::transfer::TransferError;

fn take_lock(path: &Path) -> Result<StoreLock, TransferError> {
    StoreLock::take(path).map_err(|error| match error {
        OpenError::InUse(_) => TransferError::Store(format!("{error}\nStop the server first.")),
        other => TransferError::Store(other.to_string()),
    })
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> TransferError {
    move |error| TransferError::Store(format!("{}: {error}", path.display()))
}
