//! The server's side of the handshake.

use bytes::Bytes;
use subtle::ConstantTimeEq;

use super::{ClientHello, ServerHello, ServiceHello, ServiceRole, block_keys, failed, has_keys, read};
use crate::protocol::certificate::{ChainParts, Credentials, Fingerprint, certificate_key};
use crate::protocol::crypto::{BlockKeys, CryptoError, DhKeyPair, SecretDhKey, SharedSecret};
use crate::protocol::encoding::Encode;
use crate::protocol::error::{HandshakeError, TransportErrorType};
use crate::protocol::ids::SessionId;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::transmission::TransmissionParams;
use crate::protocol::version::{Version, VersionRange};

/// A handshake between the server's hello and the client's.
pub struct ServerHandshake {
    session_id: SessionId,
    versions: VersionRange,
    fingerprint: Fingerprint,
    key: SecretDhKey,
}

/// What a server knows of a session after the handshake.
#[derive(Clone)]
pub struct ServerSession {
    /// The version that is spoken.
    pub version: Version,
    /// The session's ID.
    pub session_id: SessionId,
    /// The server's secret key in this session: authenticators are made for it, and forwarded commands encrypted to it.
    pub server_key: SecretDhKey,
    /// The secret that both session keys agree, if the client sent one: what `RFWD` is encrypted with.
    pub secret: Option<SharedSecret>,
    /// Keys of blocks, if they are encrypted.
    pub block_keys: Option<BlockKeys>,
    /// Whether the client is a proxy.
    pub proxy: bool,
    /// The service that the client is. The client waits for a [`super::ServiceReply`] then.
    pub service: Option<PeerService>,
}

/// A service that has proved who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerService {
    /// What it does.
    pub role: ServiceRole,
    /// Its identity.
    pub fingerprint: Fingerprint,
    /// The Ed25519 key that signs its commands in this session.
    pub key: [u8; 32],
    /// Its certificates (DER), leaf first.
    pub chain: Vec<Bytes>,
}

/// Why the server closes the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// Without a word.
    Silent(TransportErrorType),
    /// After a [`super::ServiceReply::Refused`] with this error, for which the client waits.
    Service(TransportErrorType),
}

impl ServerHandshake {
    /// Begins a handshake with a new session key. The second value is the payload of the server's hello.
    ///
    /// `versions` are those of [`super::offered_versions`].
    ///
    /// # Errors
    /// [`CryptoError`] if the certificate's key cannot sign.
    pub fn start(
        credentials: &Credentials,
        session_id: SessionId,
        versions: VersionRange,
    ) -> Result<(Self, Vec<u8>), CryptoError> {
        Self::start_with_key(credentials, session_id, versions, DhKeyPair::generate())
    }

    /// [`ServerHandshake::start`] with this session key.
    pub(super) fn start_with_key(
        credentials: &Credentials,
        session_id: SessionId,
        versions: VersionRange,
        key: DhKeyPair,
    ) -> Result<(Self, Vec<u8>), CryptoError> {
        // Signing is not free, so not for those who would not look at it.
        let signed_key = has_keys(versions.max())
            .then(|| credentials.sign_session_key(&PublicAuthKey::X25519(key.public)))
            .transpose()?;
        let session = Bytes::copy_from_slice(&session_id.0);
        let hello = ServerHello { versions, session_id: session, key: signed_key }.encoded();
        let handshake =
            ServerHandshake { session_id, versions, fingerprint: credentials.fingerprint(), key: key.secret };
        Ok((handshake, hello))
    }

    /// Reads the client's hello and says what was agreed. `peer_chain` is what the client proved in TLS to be its
    /// certificates (DER, leaf first), empty if it sent none.
    ///
    /// # Errors
    /// [`Rejection`]: malformed; for another server; in a version that was not offered; with a key of no use; as a service
    /// that it is not.
    pub fn accept<C: AsRef<[u8]>>(self, client_hello: &Bytes, peer_chain: &[C]) -> Result<ServerSession, Rejection> {
        let hello: ClientHello = read(client_hello).map_err(Rejection::Silent)?;
        if !bool::from(hello.key_hash.ct_eq(&self.fingerprint.0)) {
            return Err(Rejection::Silent(failed(HandshakeError::Identity)));
        }
        if !self.versions.contains(hello.version) {
            return Err(Rejection::Silent(TransportErrorType::Version));
        }
        let service = hello.service.map(|service| verify_service(service, peer_chain)).transpose();
        let service = service.map_err(Rejection::Service)?;
        let secret = hello.key.map(|key| self.key.agree(&key)).transpose();
        let secret = secret.map_err(|_| Rejection::Silent(failed(HandshakeError::BadAuth)))?;
        let derive = |secret: &SharedSecret| BlockKeys::server(&self.session_id, secret);
        Ok(ServerSession {
            version: hello.version,
            session_id: self.session_id,
            block_keys: block_keys(hello.version, hello.proxy, secret.as_ref(), derive),
            server_key: self.key,
            secret,
            proxy: hello.proxy,
            service,
        })
    }
}

impl ServerSession {
    /// What the form of transmissions depends on.
    pub fn transmission_params(&self) -> TransmissionParams {
        TransmissionParams { version: self.version, session_id: self.session_id }
    }
}

/// A service is who it says if its certificates are those of TLS and its session key is signed by the leaf.
fn verify_service<C: AsRef<[u8]>>(hello: ServiceHello, peer_chain: &[C]) -> Result<PeerService, TransportErrorType> {
    let bad_auth = || failed(HandshakeError::BadAuth);
    let ServiceHello { role, key: signed } = hello;
    if !signed.chain.iter().map(AsRef::as_ref).eq(peer_chain.iter().map(AsRef::as_ref)) {
        return Err(bad_auth());
    }
    let parts = ChainParts::of(&signed.chain).map_err(|_| bad_auth())?;
    let leaf_key = certificate_key(parts.leaf).map_err(|_| bad_auth())?;
    let fingerprint = Fingerprint::of(parts.identity);
    match signed.verified_key(&leaf_key) {
        Ok(PublicAuthKey::Ed25519(key)) => Ok(PeerService { role, fingerprint, key, chain: signed.chain }),
        _ => Err(bad_auth()),
    }
}
