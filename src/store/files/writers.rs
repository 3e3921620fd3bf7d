//! A store log and a messages log as a sink.

use std::io;
use std::path::Path;

use super::message;
use super::new_file::NewFile;
use super::queue_log::rewritten_from;
use super::store_log::StoreLogRecord;
use crate::store::transfer::{Item, Put, Sink, TransferError, file};

/// Writes a store log (services and queues), a messages log, or both. They appear under their names when the sink is
/// finished, the store log last: when it is there, so are the messages.
///
/// Services must come before the queues that belong to them, as every source yields them. Items for which there is no file
/// are passed over.
pub struct LogFiles {
    queues: Option<NewFile>,
    messages: Option<NewFile>,
}

impl LogFiles {
    /// Begins the logs for which there is a path; they replace what is there.
    ///
    /// # Errors
    /// A file cannot be made; or there is a store log that the reference did not finish to rewrite, which it would read in
    /// the place of ours.
    pub fn create(queues: Option<&Path>, messages: Option<&Path>) -> Result<Self, TransferError> {
        if let Some(older) = queues.map(rewritten_from).filter(|older| file::is_present(older)) {
            return Err(TransferError::file(&older)(io::ErrorKind::AlreadyExists.into()));
        }
        let create = |path: Option<&Path>| path.map(NewFile::create).transpose();
        Ok(LogFiles { queues: create(queues)?, messages: create(messages)? })
    }
}

impl Sink for LogFiles {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        match (item, &mut self.queues, &mut self.messages) {
            (Item::Service(service), Some(file), _) => {
                let record = StoreLogRecord::NewService(service);
                file.line(|line| record.write(line))?;
            }
            (Item::Queue(queue), Some(file), _) => {
                let record = StoreLogRecord::CreateQueue(queue);
                file.line(|line| record.write(line))?;
            }
            (Item::Message(queue, message), _, Some(file)) => {
                file.line(|line| message::write_logged(line, &queue, &message))?;
            }
            _ => {}
        }
        Ok(Put::Stored)
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        self.messages.map(NewFile::finish).transpose()?;
        self.queues.map(NewFile::finish).transpose()?;
        Ok(())
    }
}
