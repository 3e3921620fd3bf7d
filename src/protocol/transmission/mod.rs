//! Transmissions: authorization, session, correlation and entity IDs, command. Spec: "SMP transmission structure".
//!
//! Checks form only: whether an authorization is right is decided by those who know the queue's key. Fields of variable
//! length, and the bytes that are signed, are slices of the block.

mod client;
mod server;

use std::fmt;

use bytes::Bytes;

use super::encoding::{Decode, DecodeError, Reader, put_optional, put_short};
use super::ids::{CorrelationId, EntityId, SessionId};
use super::version::Version;

pub use client::{ServerTransmission, decode_responses, encode_command};
pub use server::{ClientTransmission, Refused, decode_command, decode_commands, encode_response};

/// Length of an Ed25519 signature in bytes.
pub const ED25519_SIGNATURE: usize = 64;
/// Length of an Ed448 signature in bytes.
pub const ED448_SIGNATURE: usize = 114;
/// Length of an X25519 authenticator in bytes: an encrypted SHA-512 digest with its tag.
pub const AUTHENTICATOR: usize = 80;

/// What both sides of a session agreed on, as far as the form of transmissions depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransmissionParams {
    /// The session's version.
    pub version: Version,
    /// The session's ID.
    pub session_id: SessionId,
}

impl TransmissionParams {
    /// Whether the session ID is authorized without being sent (7+).
    pub fn implies_session_id(&self) -> bool {
        self.version >= Version::AUTHENTICATED_COMMANDS
    }

    /// Whether an authorization is followed by an optional signature of the client's service (16+).
    pub fn has_service_signature(&self) -> bool {
        self.version >= Version::SERVICES
    }

    fn session_prefix(&self) -> SessionPrefix {
        SessionPrefix::new(&self.session_id)
    }
}

/// A signature by a service's Ed25519 key.
pub type ServiceSignature = [u8; ED25519_SIGNATURE];

/// A signature by a queue's key.
#[derive(Clone, PartialEq, Eq)]
pub enum Signature {
    /// By an Ed25519 key.
    Ed25519([u8; ED25519_SIGNATURE]),
    /// By an Ed448 key.
    Ed448(Box<[u8; ED448_SIGNATURE]>),
}

/// How a command is authorized. The length tells the kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Authorization {
    /// Not at all.
    None,
    /// By a signature of the authorized bytes.
    Signature(Signature),
    /// By an X25519 authenticator of the authorized bytes (7+, but accepted in all versions).
    Authenticator([u8; AUTHENTICATOR]),
}

impl Authorization {
    /// Tells the kind by the length; any other length is an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Ok(Authorization::None);
        }
        if let Ok(signature) = bytes.try_into() {
            return Ok(Authorization::Signature(Signature::Ed25519(signature)));
        }
        if let Ok(authenticator) = bytes.try_into() {
            return Ok(Authorization::Authenticator(authenticator));
        }
        let signature = bytes.try_into().map_err(|_| DecodeError)?;
        Ok(Authorization::Signature(Signature::Ed448(Box::new(signature))))
    }

    /// The bytes as sent, without length.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Authorization::None => &[],
            Authorization::Signature(Signature::Ed25519(signature)) => signature,
            Authorization::Signature(Signature::Ed448(signature)) => &signature[..],
            Authorization::Authenticator(authenticator) => authenticator,
        }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Authorization::None)
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Authorization::None => "none",
            Authorization::Signature(Signature::Ed25519(_)) => "signature 64",
            Authorization::Signature(Signature::Ed448(_)) => "signature 114",
            Authorization::Authenticator(_) => "authenticator",
        })
    }
}

/// A session ID after its length: what authorized bytes begin with.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SessionPrefix([u8; SessionId::LENGTH + 1]);

impl SessionPrefix {
    fn new(session_id: &SessionId) -> Self {
        let mut prefix = [0; SessionId::LENGTH + 1];
        let (length, id) = prefix.split_at_mut(1);
        // The assertion below keeps the cast exact.
        length.copy_from_slice(&[SessionId::LENGTH as u8]);
        id.copy_from_slice(&session_id.0);
        SessionPrefix(prefix)
    }
}

const _: () = assert!(SessionId::LENGTH <= u8::MAX as usize);

/// The bytes that an authorization is about: session ID after its length, then correlation ID, entity ID and command as
/// they were sent. In two parts, so that the second stays in the block.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizedBytes {
    session: SessionPrefix,
    transmission: Bytes,
}

impl AuthorizedBytes {
    /// The two parts, for algorithms that take their input in pieces.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.session.0, &self.transmission]
    }

    /// Both parts joined, for libraries that sign and verify in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// Length of both parts in bytes.
    pub fn len(&self) -> usize {
        self.session.0.len() + self.transmission.len()
    }

    /// Never: the session ID is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for AuthorizedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorizedBytes({} bytes)", self.len())
    }
}

/// A transmission cut into its fields, the command not yet read.
#[derive(Clone, PartialEq, Eq)]
pub struct RawTransmission {
    /// The authorization, of any length.
    pub authorization: Bytes,
    /// A service's signature (16+).
    pub service_signature: Option<ServiceSignature>,
    /// The session ID as it was sent (version 6 only), of any length.
    pub session_id: Option<Bytes>,
    /// The correlation ID.
    pub correlation_id: CorrelationId,
    /// The entity ID.
    pub entity_id: EntityId,
    /// The command or response, to the end of the transmission.
    pub command: Bytes,
    /// Correlation ID, entity ID and command as sent.
    authorized: Bytes,
}

impl RawTransmission {
    /// Cuts up one transmission.
    pub fn decode(params: &TransmissionParams, transmission: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(transmission);
        let authorization = reader.short()?;
        let service_signature = if params.has_service_signature() && !authorization.is_empty() {
            reader.optional(service_signature)?
        } else {
            None
        };
        let session_id = if params.implies_session_id() { None } else { Some(reader.short()?) };
        let authorized = transmission.slice(reader.position()..);
        let correlation_id = CorrelationId::decode(&mut reader)?;
        let entity_id = EntityId::decode(&mut reader)?;
        let command = reader.tail();
        Ok(RawTransmission {
            authorization,
            service_signature,
            session_id,
            correlation_id,
            entity_id,
            command,
            authorized,
        })
    }

    /// Whether the session ID is this session's, or is not sent.
    pub fn belongs_to(&self, params: &TransmissionParams) -> bool {
        self.session_id.as_ref().is_none_or(|id| **id == params.session_id.0)
    }

    /// What the authorization is about, given that the transmission belongs to the session.
    pub fn authorized_bytes(&self, params: &TransmissionParams) -> AuthorizedBytes {
        AuthorizedBytes { session: params.session_prefix(), transmission: self.authorized.clone() }
    }
}

impl fmt::Debug for RawTransmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawTransmission").field("command", &self.command.len()).finish_non_exhaustive()
    }
}

fn service_signature(reader: &mut Reader<'_>) -> Result<ServiceSignature, DecodeError> {
    reader.short_slice()?.try_into().map_err(|_| DecodeError)
}

/// Authorization and service signature, as every transmission begins.
fn put_authorization(
    out: &mut Vec<u8>,
    params: &TransmissionParams,
    authorization: &Authorization,
    service_signature: Option<&ServiceSignature>,
) {
    put_short(out, authorization.as_bytes());
    if params.has_service_signature() && !authorization.is_none() {
        put_optional(out, service_signature, |out, signature| put_short(out, signature));
    }
}
