//! A client that is a service (16+): it signs beside the queues' keys, and subscribes to all of its queues at once.

use std::sync::Arc;

use super::connection::Client;
use super::error::ClientError;
use super::request::Request;
use crate::protocol::command::{Command, ServiceQueues};
use crate::protocol::crypto::{CryptoError, PrivateAuthKey};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::ids::EntityId;
use crate::protocol::response::Response;
use crate::protocol::transmission::ServiceSignature;
use crate::transport::client::ServiceCredentials;

/// The service that a client is in its session.
#[derive(Clone)]
pub struct ServiceSession {
    /// Its ID, which the relay gave it.
    pub id: EntityId,
    /// What it proves itself with.
    pub credentials: Arc<ServiceCredentials>,
}

impl ServiceSession {
    /// The service's signature of a transmission.
    pub(super) fn sign(&self, authorized: &[u8]) -> Result<ServiceSignature, CryptoError> {
        let signature = self.credentials.session_key.sign(authorized)?;
        signature.try_into().map_err(|_| CryptoError::Signing)
    }

    /// What the queue's key authorizes when the service signs too: nobody else's service can use it.
    pub(super) fn bound_to_service(&self, authorized: &[u8]) -> Vec<u8> {
        [&self.credentials.credentials.fingerprint().0, authorized].concat()
    }

    /// `SUBS` or `NSUBS`, as the service's role is, with what the client believes the service to have.
    pub fn subscription(&self, known: ServiceQueues) -> Request {
        let command = match self.credentials.role {
            ServiceRole::Notifier => Command::Nsubs(known),
            ServiceRole::Messaging | ServiceRole::Proxy => Command::Subs(known),
        };
        let key = PrivateAuthKey::Signing(self.credentials.session_key.clone());
        Request::new(self.id.clone(), command).authorized_by(&key)
    }
}

impl Client {
    /// Subscribes to all queues of the client's service (`SUBS` or `NSUBS`). Answers what the relay says they are.
    pub async fn subscribe_service(&mut self, known: ServiceQueues) -> Result<ServiceQueues, ClientError> {
        let service = self.service().ok_or(ClientError::NoService)?;
        let request = service.subscription(known);
        match self.request(request).await? {
            Response::Soks(queues) => Ok(queues),
            other => Err(ClientError::unexpected("SOKS", other)),
        }
    }
}
