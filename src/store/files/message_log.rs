//! A messages log as a source of messages.

use std::path::Path;

use super::lines::Lines;
use super::message;
use crate::store::transfer::{Damage, Item, Source, TransferError};

/// The messages of a messages log, in its order.
pub struct MessageLog {
    lines: Lines,
}

impl MessageLog {
    /// Opens a log.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        Ok(MessageLog { lines: Lines::open(path)? })
    }
}

impl Source for MessageLog {
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        loop {
            let parsed = match self.lines.next()? {
                None => return Ok(None),
                Some(line) => line.whole().and_then(message::read_logged),
            };
            match parsed {
                Ok((queue, message)) => return Ok(Some(Item::Message(queue, Box::new(message)))),
                Err(reason) => damaged(self.lines.damage(reason)),
            }
        }
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some(self.lines.progress())
    }
}
