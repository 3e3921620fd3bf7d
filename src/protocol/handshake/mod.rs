//! The handshake inside TLS, before the first transmission. Spec: "Transport handshake".
//!
//! Server hello, client hello and, only for services, the server's reply: each the payload of one block that is padded
//! but never encrypted. Bytes after what is known are ignored: extensions come that way. This module decides what both
//! sides agree on ([`ServerHandshake`], [`ClientHandshake`]); it never reads or writes a connection, and it believes what
//! TLS has proved before: who owns which certificate.

mod client;
mod server;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::certificate::CertificateChainKey;
use super::crypto::{BlockKeys, SharedSecret};
use super::encoding::{Decode, DecodeError, Encode, Reader, put_bool, put_optional, put_short};
use super::error::{HandshakeError, TransportErrorType};
use super::ids::EntityId;
use super::keys::PublicDhKey;
use super::version::{Version, VersionRange};

pub use client::{ClientHandshake, ClientSession, ServiceIdentity};
pub use server::{PeerService, Rejection, ServerHandshake, ServerSession};

/// The versions that a server with these versions offers to a client: all of them if TLS has agreed on the protocol
/// (ALPN), else only version 6, and so none if the server does not speak it.
pub fn offered_versions(supported: VersionRange, alpn: bool) -> Option<VersionRange> {
    if alpn { Some(supported) } else { supported.intersect(VersionRange::ONLY_OLDEST) }
}

/// What the server says first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerHello {
    /// Versions that the server speaks.
    pub versions: VersionRange,
    /// The session identifier of TLS, as the server sees it.
    pub session_id: Bytes,
    /// The server's session key, signed (7+).
    pub key: Option<CertificateChainKey>,
}

/// What the client answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientHello {
    /// The version that is spoken from now on.
    pub version: Version,
    /// Fingerprint of the server that the client means to talk to.
    pub key_hash: Bytes,
    /// The client's session key (7+).
    pub key: Option<PublicDhKey>,
    /// Whether the client is a proxy, which has its own encryption and wants none of blocks (14+).
    pub proxy: bool,
    /// The client's service (16+).
    pub service: Option<ServiceHello>,
}

/// A client says that it is a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceHello {
    /// What the service does.
    pub role: ServiceRole,
    /// Its certificates, the same as in TLS, with its signed session key.
    pub key: CertificateChainKey,
}

/// What a service does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ServiceRole {
    /// Receives messages of many queues (19+).
    Messaging,
    /// Receives notifications.
    Notifier,
    /// Forwards transmissions.
    Proxy,
}

impl ServiceRole {
    /// The first version in which a client with this role says so.
    pub fn since(self) -> Version {
        match self {
            ServiceRole::Messaging => Version::SERVICE_HASHES,
            ServiceRole::Notifier | ServiceRole::Proxy => Version::SERVICES,
        }
    }
}

/// The server's reply to a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServiceReply {
    /// Welcome: the service's ID.
    Accepted(EntityId),
    /// The connection is closed after this.
    Refused(TransportErrorType),
}

impl Encode for ServerHello {
    fn encode(&self, out: &mut Vec<u8>) {
        self.versions.encode(out);
        put_short(out, &self.session_id);
        if let Some(key) = self.key.as_ref().filter(|_| has_keys(self.versions.max())) {
            key.encode(out);
        }
    }
}

impl Decode for ServerHello {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let versions: VersionRange = reader.get()?;
        let session_id = reader.short()?;
        let key = has_keys(versions.max()).then(|| get_if_there(reader)).flatten();
        Ok(ServerHello { versions, session_id, key })
    }
}

impl Encode for ClientHello {
    fn encode(&self, out: &mut Vec<u8>) {
        self.version.encode(out);
        put_short(out, &self.key_hash);
        if let Some(key) = self.key.filter(|_| has_keys(self.version)) {
            key.encode(out);
        }
        if self.version >= Version::PROXY_SERVER_HELLO {
            put_bool(out, self.proxy);
        }
        if self.version >= Version::SERVICES {
            put_optional(out, self.service.as_ref(), |out, service| service.encode(out));
        }
    }
}

impl Decode for ClientHello {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = reader.get()?;
        Ok(ClientHello {
            version,
            key_hash: reader.short()?,
            key: has_keys(version).then(|| get_if_there(reader)).flatten(),
            proxy: version >= Version::PROXY_SERVER_HELLO && reader.bool()?,
            service: if version >= Version::SERVICES { reader.optional(Reader::get)? } else { None },
        })
    }
}

impl Encode for ServiceHello {
    fn encode(&self, out: &mut Vec<u8>) {
        self.role.encode(out);
        self.key.encode(out);
    }
}

impl Decode for ServiceHello {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ServiceHello { role: reader.get()?, key: reader.get()? })
    }
}

impl Encode for ServiceRole {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            ServiceRole::Messaging => b'M',
            ServiceRole::Notifier => b'N',
            ServiceRole::Proxy => b'P',
        });
    }
}

impl Decode for ServiceRole {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            b'M' => Ok(ServiceRole::Messaging),
            b'N' => Ok(ServiceRole::Notifier),
            b'P' => Ok(ServiceRole::Proxy),
            _ => Err(DecodeError),
        }
    }
}

impl Encode for ServiceReply {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ServiceReply::Accepted(id) => {
                out.push(b'R');
                put_short(out, &id.0);
            }
            ServiceReply::Refused(error) => {
                out.push(b'E');
                error.encode(out);
            }
        }
    }
}

impl Decode for ServiceReply {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            b'R' => reader.short().map(EntityId).map(ServiceReply::Accepted),
            b'E' => reader.get().map(ServiceReply::Refused),
            _ => Err(DecodeError),
        }
    }
}

/// Whether hellos of this version carry session keys.
fn has_keys(version: Version) -> bool {
    version >= Version::AUTHENTICATED_COMMANDS
}

/// Whether blocks of a session are encrypted, when both sides have a session key.
fn encrypts_blocks(version: Version, proxy: bool) -> bool {
    version >= Version::ENCRYPTED_BLOCK && !proxy
}

/// The keys of blocks, if there is a secret and blocks are to be encrypted.
fn block_keys(
    version: Version,
    proxy: bool,
    secret: Option<&SharedSecret>,
    derive: impl FnOnce(&SharedSecret) -> BlockKeys,
) -> Option<BlockKeys> {
    secret.filter(|_| encrypts_blocks(version, proxy)).map(derive)
}

/// Reads a value if one can be read, else nothing: a key that is malformed counts as absent.
fn get_if_there<T: Decode>(reader: &mut Reader<'_>) -> Option<T> {
    let mut attempt = reader.clone();
    let value = T::decode(&mut attempt).ok()?;
    *reader = attempt;
    Some(value)
}

/// Reads a hello; what follows it is ignored.
fn read<T: Decode>(payload: &Bytes) -> Result<T, TransportErrorType> {
    T::decode(&mut Reader::new(payload)).map_err(|_| failed(HandshakeError::Parse))
}

fn failed(error: HandshakeError) -> TransportErrorType {
    TransportErrorType::Handshake(error)
}
