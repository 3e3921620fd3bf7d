//! What was agreed in the handshake and is needed for as long as the connection lives.

use crate::protocol::ServiceId;
use crate::protocol::certificate::Fingerprint;
use crate::protocol::crypto::SecretDhKey;
use crate::protocol::handshake::{PeerService, ServerSession, ServiceRole};
use crate::protocol::transmission::TransmissionParams;

/// A connection's session.
pub struct Session {
    /// How transmissions are read and written: version, session ID.
    pub params: TransmissionParams,
    /// The server's secret key for authenticators of this session.
    pub secret_key: SecretDhKey,
    /// The service that the client is. Rare, and so apart.
    pub service: Option<Box<SessionService>>,
}

/// The service of a session.
#[derive(Clone, Debug)]
pub struct SessionService {
    /// Its ID.
    pub id: ServiceId,
    /// What it does.
    pub role: ServiceRole,
    /// Its identity: queue keys sign it with their commands.
    pub fingerprint: Fingerprint,
    /// The Ed25519 key that signs its commands in this session.
    pub key: [u8; 32],
}

impl Session {
    /// What is kept of a handshake's outcome.
    pub fn new(agreed: ServerSession, service_id: Option<ServiceId>) -> Self {
        let ServerSession { version, session_id, server_key, service, .. } = agreed;
        let service = service_id.zip(service).map(|(id, PeerService { role, fingerprint, key, .. })| {
            // Its certificates are not needed any more.
            Box::new(SessionService { id, role, fingerprint, key })
        });
        Session { params: TransmissionParams { version, session_id }, secret_key: server_key, service }
    }

    /// The service's ID, if the client is one in this role.
    pub fn service_in(&self, role: ServiceRole) -> Option<ServiceId> {
        self.service.as_ref().filter(|service| service.role == role).map(|service| service.id)
    }
}
