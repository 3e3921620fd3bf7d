//! The notifications log: what waits for notifiers that are not connected, oldest first for each.

use std::path::Path;

use bytes::Bytes;

use super::lines::Lines;
use super::new_file::NewFile;
use super::text::{Fields, LineError, Put, put_base64};
use crate::protocol::crypto::Nonce;
use crate::protocol::{MessageId, QueueId};
use crate::store::record::Timestamp;
use crate::store::transfer::{Damage, TransferError};

/// A notification that waits for its notifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// The notifier's ID of the queue.
    pub notifier: QueueId,
    /// The message.
    pub message: MessageId,
    /// When the message was sent.
    pub timestamp: Timestamp,
    /// Of the encryption of the metadata.
    pub nonce: Nonce,
    /// Metadata of the message, encrypted to the recipient.
    pub metadata: Bytes,
}

impl Notification {
    /// Reads a line: `v1 NOTIFIER MESSAGE SECONDS NONCE METADATA`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, LineError> {
        let mut fields = Fields::of(line);
        fields.expect(b"v1 ", "not a notification of a known version")?;
        let notifier = fields.queue_id()?;
        let message = fields.spaced(Fields::message_id)?;
        let timestamp = fields.spaced(Fields::time)?;
        fields.space()?;
        let nonce = Nonce::from_bytes(&fields.base64("a nonce is not in Base64")?);
        fields.space()?;
        let metadata = Bytes::copy_from_slice(&fields.base64("the metadata is not in Base64")?);
        fields.end()?;
        Ok(Notification { notifier, message, timestamp, nonce, metadata })
    }

    /// Appends the line, without its end.
    pub fn write(&self, line: &mut Vec<u8>) {
        line.extend_from_slice(b"v1 ");
        self.notifier.put(line);
        line.push(b' ');
        self.message.put(line);
        line.push(b' ');
        self.timestamp.put(line);
        line.push(b' ');
        put_base64(line, &self.nonce.0);
        line.push(b' ');
        put_base64(line, &self.metadata);
    }
}

/// A notifications log that is read.
pub struct NotificationLog {
    lines: Lines,
}

impl NotificationLog {
    /// Opens a log.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        Ok(NotificationLog { lines: Lines::open(path)? })
    }

    /// The next notification; `None` at the end. What cannot be used is told to `damaged` and passed over.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Notification>, TransferError> {
        loop {
            let parsed = match self.lines.next()? {
                None => return Ok(None),
                Some(line) => line.whole().and_then(Notification::read),
            };
            match parsed {
                Ok(notification) => return Ok(Some(notification)),
                Err(reason) => damaged(self.lines.damage(reason)),
            }
        }
    }
}

/// Writes a notifications log. Dropped before it is finished, it leaves nothing.
pub struct NotificationLogWriter {
    file: NewFile,
}

impl NotificationLogWriter {
    /// Begins a log that will replace the one that is there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<Self, TransferError> {
        Ok(NotificationLogWriter { file: NewFile::create(path)? })
    }

    /// Appends a notification; those of a notifier oldest first.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, notification: &Notification) -> Result<(), TransferError> {
        self.file.line(|line| notification.write(line))
    }

    /// Puts the log in its place.
    ///
    /// # Errors
    /// It cannot be written or renamed.
    pub fn finish(self) -> Result<(), TransferError> {
        self.file.finish()
    }
}
