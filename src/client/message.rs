//! Messages as a recipient gets them.

use super::error::ClientError;
use crate::protocol::crypto::{Nonce, SharedSecret};
use crate::protocol::ids::MessageId;
use crate::protocol::message::{ENCRYPTED_BODY, MessageBody};

/// A message that was delivered and decrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedMessage {
    /// Its ID, for `ACK`.
    pub id: MessageId,
    /// What it says.
    pub content: MessageBody,
}

impl ReceivedMessage {
    /// Decrypts a delivered message: its nonce is its ID, and its size is always the same.
    pub(super) fn open(secret: &SharedSecret, id: &[u8], body: &[u8]) -> Result<Self, ClientError> {
        let id = MessageId::from_slice(id).ok_or(ClientError::BadMessage("has an ID of another length"))?;
        if body.len() != ENCRYPTED_BODY {
            return Err(ClientError::BadMessage("has another length"));
        }
        let content = MessageBody::open(secret, &Nonce(id.0), body);
        content.map(|content| ReceivedMessage { id, content }).map_err(|_| ClientError::BadMessage("does not decrypt"))
    }

    /// The body, if this is a message of the sender.
    pub fn body(&self) -> Option<&[u8]> {
        match &self.content {
            MessageBody::Sent { body, .. } => Some(body),
            MessageBody::Quota { .. } => None,
        }
    }
}
