//! What was agreed in the handshake and is needed for as long as the connection lives.

use crate::protocol::crypto::SecretDhKey;
use crate::protocol::handshake::ServerSession;
use crate::protocol::transmission::TransmissionParams;

/// A connection's session.
pub struct Session {
    /// How transmissions are read and written: version, session ID.
    pub params: TransmissionParams,
    /// The server's secret key for authenticators of this session.
    pub secret_key: SecretDhKey,
}

impl Session {
    /// What is kept of a handshake's outcome.
    pub fn new(agreed: ServerSession) -> Self {
        let ServerSession { version, session_id, server_key, .. } = agreed;
        Session { params: TransmissionParams { version, session_id }, secret_key: server_key }
    }
}
