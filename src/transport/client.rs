//! The client's side of a connection's beginning. Spec: "Transport handshake".
//!
//! A relay is known by the fingerprint of its identity certificate, whatever its host is called: the chain of TLS, the
//! chain in its hello and the signature of its session key must all say so.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::net::TcpStream;

use super::block_io::Incoming;
use super::block_stream::SmpStream;
use super::dial::dial;
use super::tls::{ALPN_SMP, Groups, TlsClient, TlsClientOptions, TlsConnection, TlsStream};
use crate::protocol::address::ServerAddress;
use crate::protocol::certificate::{CertificateError, Credentials, Fingerprint, certificate_key};
use crate::protocol::crypto::{DhKeyPair, SigningKey};
use crate::protocol::error::TransportErrorType;
use crate::protocol::handshake::{ClientHandshake, ClientSession, ServiceIdentity, ServiceRole};
use crate::protocol::ids::EntityId;
use crate::protocol::{Version, VersionRange};

/// How to connect.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Versions to choose from; the newest that the relay offers too is taken.
    pub versions: VersionRange,
    /// Whether to offer `smp/1`; without it a relay offers version 6 only.
    pub alpn: bool,
    /// Whether to say that this is a proxy.
    pub proxy: bool,
    /// Whether to send a key of this connection (7+): without it blocks are not encrypted.
    pub session_key: bool,
    /// Groups of TLS.
    pub groups: Groups,
    /// The service that this client is.
    pub service: Option<Arc<ServiceCredentials>>,
    /// Time for TCP, TLS and SMP handshake together.
    pub timeout: Duration,
    /// Local address to connect from.
    pub local_address: Option<IpAddr>,
}

/// A client that is a service (16+).
#[derive(Clone)]
pub struct ServiceCredentials {
    /// What it does.
    pub role: ServiceRole,
    /// Its certificates, shown in TLS and in the hello.
    pub credentials: Arc<Credentials>,
    /// The Ed25519 key that signs its commands.
    pub session_key: SigningKey,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            versions: VersionRange::SUPPORTED,
            alpn: true,
            proxy: false,
            session_key: true,
            groups: Groups::X25519First,
            service: None,
            timeout: Duration::from_secs(25),
            local_address: None,
        }
    }
}

impl ConnectOptions {
    /// The same, with this version only.
    #[must_use]
    pub fn with_version(self, version: Version) -> Self {
        ConnectOptions { versions: VersionRange::new(version, version).unwrap_or(self.versions), ..self }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address has no fingerprint of 32 bytes.
    #[error("the fingerprint in the address is not one")]
    Fingerprint,
    /// TCP: resolving or connecting.
    #[error("cannot connect: {0}")]
    Tcp(io::Error),
    /// The service's key cannot be used.
    #[error("credentials: {0}")]
    Credentials(rustls::Error),
    /// TLS; also if the relay's chain has another identity.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The relay's certificate has a key of a kind that the protocol does not know.
    #[error("the relay's certificate: {0}")]
    Certificate(#[from] CertificateError),
    /// The connection broke in the SMP handshake.
    #[error("connection in the handshake: {0}")]
    Io(#[from] io::Error),
    /// The relay closed in the SMP handshake.
    #[error("closed by the relay in the handshake")]
    Closed,
    /// A block of the relay's is not padded as it should be.
    #[error("the relay sent a malformed block in the handshake")]
    BadBlock,
    /// The relay's hello is not accepted, or it refuses the service.
    #[error("handshake: {0:?}")]
    Handshake(TransportErrorType),
    /// The time is over.
    #[error("timed out")]
    Timeout,
}

/// A connection to a relay.
pub struct ClientConnection {
    /// Its blocks, encrypted as agreed.
    pub stream: SmpStream<TlsStream>,
    /// What was agreed. Its `block_keys` have gone to the stream.
    pub session: ClientSession,
    /// The ID of the service that this client is, if it said so.
    pub service_id: Option<EntityId>,
}

/// Connects to the relay at `address` and shakes hands.
pub async fn connect(address: &ServerAddress, options: &ConnectOptions) -> Result<ClientConnection, ConnectError> {
    let fingerprint = Fingerprint::from_slice(&address.fingerprint).ok_or(ConnectError::Fingerprint)?;
    let connected = Box::pin(async {
        let socket = dial(address, options.local_address).await.map_err(ConnectError::Tcp)?;
        handshake(socket, fingerprint, options).await
    });
    tokio::time::timeout(options.timeout, connected).await.unwrap_or(Err(ConnectError::Timeout))
}

/// Shakes hands over a socket that is connected. Has no time limit of its own.
pub async fn handshake(
    socket: TcpStream,
    fingerprint: Fingerprint,
    options: &ConnectOptions,
) -> Result<ClientConnection, ConnectError> {
    let TlsConnection { stream, session_id, peer_chain, .. } = tls(fingerprint, options, socket).await?;
    let leaf_key = certificate_key(peer_chain.first().map(Bytes::as_ref).unwrap_or_default())?;
    let mut stream = SmpStream::new(stream);
    let relay_hello = read_block(&mut stream).await?;
    let handshake = ClientHandshake {
        session_id,
        versions: options.versions,
        server: fingerprint,
        key: options.session_key.then(DhKeyPair::generate),
        proxy: options.proxy,
        service: options.service.as_deref().map(service_identity),
    };
    let (hello, mut session) = handshake.answer(&relay_hello, &leaf_key).map_err(ConnectError::Handshake)?;
    stream.write(&hello).await?;
    let service_id = if session.expects_service_reply {
        let reply = read_block(&mut stream).await?;
        Some(session.service_id(&reply).map_err(ConnectError::Handshake)?)
    } else {
        None
    };
    if let Some(keys) = session.block_keys.take() {
        stream.encrypt(keys);
    }
    Ok(ClientConnection { stream, session, service_id })
}

async fn tls(
    fingerprint: Fingerprint,
    options: &ConnectOptions,
    socket: TcpStream,
) -> Result<TlsConnection, ConnectError> {
    let client = TlsClient::new(&TlsClientOptions {
        fingerprint,
        alpn: options.alpn.then(|| ALPN_SMP.to_vec()),
        groups: options.groups,
        credentials: options.service.as_ref().map(|service| service.credentials.clone()),
    });
    client.map_err(ConnectError::Credentials)?.connect(socket).await.map_err(ConnectError::Tls)
}

fn service_identity(service: &ServiceCredentials) -> ServiceIdentity<'_> {
    ServiceIdentity { role: service.role, credentials: &service.credentials, session_key: &service.session_key }
}

async fn read_block(stream: &mut SmpStream<TlsStream>) -> Result<Bytes, ConnectError> {
    match stream.read().await? {
        Incoming::Payload(payload) => Ok(payload),
        Incoming::BadBlock => Err(ConnectError::BadBlock),
        Incoming::Closed => Err(ConnectError::Closed),
    }
}
