//! A journal directory as a source of messages.

use std::path::Path;

use crate::store::transfer::{Damage, Item, Source, TransferError};

/// The messages of a journal directory, queue by queue.
pub struct JournalDirectory {}

impl JournalDirectory {
    /// Opens a directory.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(_path: &Path) -> Result<Self, TransferError> {
        Ok(JournalDirectory {})
    }
}

impl Source for JournalDirectory {
    fn next(&mut self, _damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        Ok(None)
    }

    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}
