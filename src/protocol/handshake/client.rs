//! The client's side of the handshake: for the proxy, `smp-server check`, the bench and the tests.

use bytes::Bytes;

use super::{ClientHello, ServerHello, ServiceHello, ServiceReply, ServiceRole, block_keys, failed, has_keys, read};
use crate::protocol::certificate::{CertificateChainKey, ChainParts, Credentials, Fingerprint};
use crate::protocol::crypto::{BlockKeys, DhKeyPair, SharedSecret, SigningKey};
use crate::protocol::encoding::Encode;
use crate::protocol::error::{HandshakeError, TransportErrorType};
use crate::protocol::ids::{EntityId, SessionId};
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::transmission::TransmissionParams;
use crate::protocol::version::{Version, VersionRange};

/// What a client brings to a handshake.
pub struct ClientHandshake<'a> {
    /// The session identifier of TLS, as the client sees it.
    pub session_id: SessionId,
    /// Versions that the client speaks.
    pub versions: VersionRange,
    /// The server that the client means to talk to.
    pub server: Fingerprint,
    /// The client's session key. Without one blocks are not encrypted.
    pub key: Option<DhKeyPair>,
    /// Whether the client is a proxy.
    pub proxy: bool,
    /// The service that the client is. Only if the server asked in TLS for its certificate.
    pub service: Option<ServiceIdentity<'a>>,
}

/// A client that is a service.
pub struct ServiceIdentity<'a> {
    /// What it does.
    pub role: ServiceRole,
    /// The certificates that were used in TLS, with their key.
    pub credentials: &'a Credentials,
    /// The Ed25519 key that is to sign commands in this session.
    pub session_key: &'a SigningKey,
}

/// What a client knows of a session after the handshake.
#[derive(Clone)]
pub struct ClientSession {
    /// The version that is spoken.
    pub version: Version,
    /// The versions that both sides speak.
    pub versions: VersionRange,
    /// The session's ID.
    pub session_id: SessionId,
    /// The server's session key, verified.
    pub server_key: Option<PublicDhKey>,
    /// The certificates and signature of that key: what a proxy passes on to its clients.
    pub server_proof: Option<CertificateChainKey>,
    /// The secret that both session keys agree.
    pub secret: Option<SharedSecret>,
    /// Keys of blocks, if they are encrypted.
    pub block_keys: Option<BlockKeys>,
    /// Whether the server now sends one more block, for [`ClientSession::service_id`].
    pub expects_service_reply: bool,
}

impl ClientHandshake<'_> {
    /// Reads the server's hello and gives the payload of the client's hello with what is agreed by it. `leaf_key` is the
    /// key of the certificate that the server proved in TLS to own.
    ///
    /// # Errors
    /// The hello is malformed, of another TLS session, has no version in common, or is not of the server that is meant; or
    /// one of the keys is of no use.
    pub fn answer(
        self,
        server_hello: &Bytes,
        leaf_key: &PublicAuthKey,
    ) -> Result<(Vec<u8>, ClientSession), TransportErrorType> {
        let hello: ServerHello = read(server_hello)?;
        if hello.session_id != self.session_id.0.as_slice() {
            return Err(TransportErrorType::Session);
        }
        let versions = self.versions_for(hello.versions).ok_or(TransportErrorType::Version)?;
        let version = versions.max();
        let server_key = hello.key.as_ref().map(|key| self.verify_server(key, leaf_key)).transpose()?;
        let secret = self.agree(server_key.as_ref())?;
        let service = self.service_hello(version)?;
        let derive = |secret: &SharedSecret| BlockKeys::client(&self.session_id, secret);
        let session = ClientSession {
            version,
            versions,
            session_id: self.session_id,
            server_key,
            server_proof: hello.key,
            block_keys: block_keys(version, self.proxy, secret.as_ref(), derive),
            secret,
            expects_service_reply: service.is_some(),
        };
        let key = self.key.map(|key| key.public).filter(|_| has_keys(version));
        let key_hash = Bytes::copy_from_slice(&self.server.0);
        Ok((ClientHello { version, key_hash, key, proxy: self.proxy, service }.encoded(), session))
    }

    /// The versions in common. A proxy talks to a relay that does not know proxies (below 14) in a version without
    /// encrypted blocks, because it could not ask for unencrypted ones.
    fn versions_for(&self, server: VersionRange) -> Option<VersionRange> {
        let own = if self.proxy && server.max() < Version::PROXY_SERVER_HELLO {
            VersionRange::new(self.versions.min(), self.versions.min().max(Version::DELETED_EVENT))?
        } else {
            self.versions
        };
        server.intersect(own)
    }

    /// The server's session key, if its certificates are those of the server that is meant.
    fn verify_server(
        &self,
        key: &CertificateChainKey,
        leaf_key: &PublicAuthKey,
    ) -> Result<PublicDhKey, TransportErrorType> {
        let parts = ChainParts::of(&key.chain).ok().filter(|_| key.chain.len() > 1);
        let is_meant = parts.is_some_and(|parts| Fingerprint::of(parts.identity) == self.server);
        match key.verified_key(leaf_key) {
            Ok(PublicAuthKey::X25519(key)) if is_meant => Ok(key),
            _ => Err(failed(HandshakeError::BadAuth)),
        }
    }

    /// The session's secret, if both sides have keys.
    fn agree(&self, server_key: Option<&PublicDhKey>) -> Result<Option<SharedSecret>, TransportErrorType> {
        let (Some(own), Some(server)) = (&self.key, server_key) else { return Ok(None) };
        own.secret.agree(server).map(Some).map_err(|_| failed(HandshakeError::BadAuth))
    }

    /// What the client says of its service, in versions that know the role.
    fn service_hello(&self, version: Version) -> Result<Option<ServiceHello>, TransportErrorType> {
        let Some(service) = self.service.as_ref().filter(|service| version >= service.role.since()) else {
            return Ok(None);
        };
        let signed = service.session_key.public_key().and_then(|key| service.credentials.sign_session_key(&key));
        let key = signed.map_err(|_| failed(HandshakeError::BadService))?;
        Ok(Some(ServiceHello { role: service.role, key }))
    }
}

impl ClientSession {
    /// What the form of transmissions depends on.
    pub fn transmission_params(&self) -> TransmissionParams {
        TransmissionParams { version: self.version, session_id: self.session_id }
    }

    /// The service's ID in the server's reply.
    ///
    /// # Errors
    /// The server's refusal, or a malformed reply.
    pub fn service_id(&self, reply: &Bytes) -> Result<EntityId, TransportErrorType> {
        match read(reply)? {
            ServiceReply::Accepted(id) => Ok(id),
            ServiceReply::Refused(error) => Err(error),
        }
    }
}
