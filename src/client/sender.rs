//! The sender's side of a queue.

use bytes::Bytes;

use super::connection::Client;
use super::error::ClientError;
use super::request::Request;
use crate::protocol::command::{Command, MessageFlags};
use crate::protocol::crypto::{CryptoError, PrivateAuthKey};
use crate::protocol::ids::EntityId;
use crate::protocol::response::Response;

/// Who sends to a queue.
#[derive(Clone)]
pub struct Sender {
    /// The queue for its sender.
    pub id: EntityId,
    /// The sender's key; without it nothing that is sent is authorized.
    pub key: Option<PrivateAuthKey>,
}

impl Sender {
    /// A sender without a key, as the first message of an unsecured queue needs none.
    pub fn unsecured(id: EntityId) -> Self {
        Sender { id, key: None }
    }

    /// A sender with a key.
    pub fn with_key(id: EntityId, key: PrivateAuthKey) -> Self {
        Sender { id, key: Some(key) }
    }

    /// A command of this sender.
    pub fn request(&self, command: Command) -> Request {
        Request { key: self.key.clone(), ..Request::new(self.id.clone(), command) }
    }

    /// `SEND` with these flags and body.
    pub fn message(&self, flags: MessageFlags, body: &[u8]) -> Request {
        self.request(Command::Send(flags, Bytes::copy_from_slice(body)))
    }

    /// Secures the queue with the sender's key (`SKEY`, 9+).
    pub async fn secure(&self, client: &mut Client) -> Result<(), ClientError> {
        let Some(key) = &self.key else { return Err(ClientError::Crypto(CryptoError::Key)) };
        let command = Command::Skey(key.public_key()?);
        expect_ok(client.request(self.request(command)).await?)
    }

    /// Sends a message of which the notifier is to be told.
    pub async fn send_notified(&self, client: &mut Client, body: &[u8]) -> Result<(), ClientError> {
        expect_ok(client.request(self.message(MessageFlags { notification: true }, body)).await?)
    }

    /// Sends a message.
    pub async fn send(&self, client: &mut Client, body: &[u8]) -> Result<(), ClientError> {
        expect_ok(client.request(self.message(MessageFlags::default(), body)).await?)
    }
}

pub(super) fn expect_ok(answer: Response) -> Result<(), ClientError> {
    match answer {
        Response::Ok => Ok(()),
        other => Err(ClientError::unexpected("OK", other)),
    }
}
