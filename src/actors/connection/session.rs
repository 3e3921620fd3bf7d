//! What was agreed in the handshake and is needed for as long as the connection lives.

use crate::protocol::crypto::SecretDhKey;
use crate::protocol::transmission::TransmissionParams;

/// A connection's session.
pub struct Session {
    /// How transmissions are read and written: version, session ID.
    pub params: TransmissionParams,
    /// The server's secret key for authenticators of this session.
    pub secret_key: SecretDhKey,
}
