//! Commands before they are sent.

use crate::protocol::command::Command;
use crate::protocol::crypto::PrivateAuthKey;
use crate::protocol::ids::{CorrelationId, EntityId};

/// A command with what it is about and the key that authorizes it.
#[derive(Clone)]
pub struct Request {
    /// What the command is about; empty if nothing.
    pub entity_id: EntityId,
    /// The command.
    pub command: Command,
    /// The key that authorizes it, if it is to be authorized.
    pub key: Option<PrivateAuthKey>,
    /// The correlation ID; a random one if there is none.
    pub correlation_id: Option<CorrelationId>,
    /// Whether the client's service signs too; if it is not said, what the protocol demands.
    pub service_signs: Option<bool>,
}

impl Request {
    /// A command without authorization.
    pub fn new(entity_id: EntityId, command: Command) -> Self {
        Request { entity_id, command, key: None, correlation_id: None, service_signs: None }
    }

    /// A command about nothing, without authorization.
    pub fn plain(command: Command) -> Self {
        Request::new(EntityId::NONE, command)
    }

    /// The same, authorized by `key`.
    pub fn authorized_by(self, key: &PrivateAuthKey) -> Self {
        Request { key: Some(key.clone()), ..self }
    }

    /// The same, with this correlation ID.
    pub fn with_correlation_id(self, correlation_id: CorrelationId) -> Self {
        Request { correlation_id: Some(correlation_id), ..self }
    }

    /// The same, signed by the client's service or not, whatever the protocol demands.
    pub fn signed_by_service(self, signs: bool) -> Self {
        Request { service_signs: Some(signs), ..self }
    }
}
