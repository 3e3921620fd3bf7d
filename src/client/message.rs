//! Messages as a recipient gets them.

use bytes::Bytes;

use crate::protocol::command::MessageFlags;
use crate::protocol::encoding::{DecodeError, Reader};
use crate::protocol::ids::MessageId;

/// Length of a delivered message, padded and encrypted, in bytes: the same for all messages in all versions.
pub const DELIVERED_LENGTH: usize = 16_122;

/// A message that was delivered and decrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Its ID, for `ACK`.
    pub id: MessageId,
    /// When the relay received it, seconds since 1970.
    pub timestamp: i64,
    /// What was delivered.
    pub content: Delivered,
}

/// What is inside.
#[derive(Clone, PartialEq, Eq)]
pub enum Delivered {
    /// A message of the sender.
    Message {
        /// Its flags.
        flags: MessageFlags,
        /// Its body.
        body: Bytes,
    },
    /// The queue was full and is empty now: the sender may go on.
    Quota,
}

impl ReceivedMessage {
    /// The body, if this is a message of the sender.
    pub fn body(&self) -> Option<&[u8]> {
        match &self.content {
            Delivered::Message { body, .. } => Some(body),
            Delivered::Quota => None,
        }
    }

    /// Reads what is inside the padding.
    pub(super) fn decode(id: MessageId, content: Vec<u8>) -> Result<Self, DecodeError> {
        let content = Bytes::from(content);
        let mut reader = Reader::new(&content);
        if reader.rest().starts_with(b"QUOTA ") {
            reader.slice(6)?;
            let timestamp = reader.i64()?;
            reader.end()?;
            return Ok(ReceivedMessage { id, timestamp, content: Delivered::Quota });
        }
        let timestamp = reader.i64()?;
        let flags = MessageFlags { notification: reader.bool()? };
        reader.space()?;
        Ok(ReceivedMessage { id, timestamp, content: Delivered::Message { flags, body: reader.tail() } })
    }
}
