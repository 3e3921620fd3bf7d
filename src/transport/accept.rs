//! The server's side of a connection's beginning: TLS, then the exchange of hellos, under one time limit.
//! Spec: "Transport handshake".
//!
//! A client that is refused (wrong version, wrong relay, malformed hello) is closed without a word.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use thiserror::Error;
use tokio::net::TcpStream;

use super::block_io::{BlockIo, Incoming};
use super::block_stream::SmpStream;
use super::tls::{TlsConnection, TlsServer, TlsServerOptions, TlsStream};
use crate::protocol::certificate::{Credentials, Fingerprint};
use crate::protocol::crypto::CryptoError;
use crate::protocol::encoding::Encode;
use crate::protocol::error::{HandshakeError as SmpHandshakeError, TransportErrorType};
use crate::protocol::handshake::{
    PeerService, Rejection, ServerHandshake, ServerSession, ServiceReply, offered_versions,
};
use crate::protocol::{EntityId, ServiceId, VersionRange};

/// How a relay accepts connections.
#[derive(Clone, Debug)]
pub struct AcceptOptions {
    /// Versions that are offered. Clients without ALPN get version 6, if it is among them.
    pub versions: VersionRange,
    /// Time for TLS and SMP handshake together.
    pub timeout: Duration,
    /// TLS settings.
    pub tls: TlsServerOptions,
}

impl Default for AcceptOptions {
    fn default() -> Self {
        AcceptOptions {
            versions: VersionRange::SUPPORTED,
            timeout: Duration::from_secs(60),
            tls: TlsServerOptions::default(),
        }
    }
}

/// Knows the services that clients are.
pub trait ServiceDirectory: Send + Sync + 'static {
    /// The ID of a service that has proved who it is; `None` if it is not served.
    fn enrol<'a>(&'a self, service: &'a PeerService) -> BoxFuture<'a, Option<ServiceId>>;
}

/// Why there is no connection. But for [`HandshakeError::Signing`] it is the client's doing, or the network's.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// TLS failed: what the other side speaks may not even be TLS.
    #[error("TLS: {0}")]
    Tls(io::Error),
    /// The connection broke after TLS.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The client closed before its hello was there.
    #[error("closed by the client")]
    Closed,
    /// The time is over.
    #[error("timed out")]
    Timeout,
    /// The client chose no protocol in TLS, and so needs version 6, which is not offered.
    #[error("the client needs version 6, which is not offered")]
    NoAlpn,
    /// The client's hello is not accepted.
    #[error("hello: {0:?}")]
    Refused(TransportErrorType),
    /// The session key could not be signed.
    #[error("signing the session key: {0}")]
    Signing(#[from] CryptoError),
}

/// A connection that may be used.
pub struct Accepted {
    /// Its blocks, encrypted as agreed.
    pub stream: SmpStream<TlsStream>,
    /// What was agreed. Its `block_keys` have gone to the stream.
    pub session: ServerSession,
    /// The ID of the service that the client is.
    pub service_id: Option<ServiceId>,
}

/// Accepts connections with one identity. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor {
    credentials: Arc<Credentials>,
    tls: TlsServer,
    options: Arc<AcceptOptions>,
    /// Without it services are refused.
    services: Option<Arc<dyn ServiceDirectory>>,
}

impl Acceptor {
    /// Fails if the credentials' key cannot be used.
    pub fn new(credentials: Arc<Credentials>, options: AcceptOptions) -> Result<Self, rustls::Error> {
        let tls = TlsServer::new(&credentials, options.tls)?;
        Ok(Acceptor { credentials, tls, options: Arc::new(options), services: None })
    }

    /// The same, for services too.
    #[must_use]
    pub fn with_services(self, services: Arc<dyn ServiceDirectory>) -> Self {
        Acceptor { services: Some(services), ..self }
    }

    /// The relay's identity.
    pub fn fingerprint(&self) -> Fingerprint {
        self.credentials.fingerprint()
    }

    /// TLS handshakes in progress.
    pub fn handshakes(&self) -> usize {
        self.tls.handshakes()
    }

    /// Shakes hands with a client. Dropping the future drops the connection.
    pub async fn accept(&self, socket: TcpStream) -> Result<Accepted, HandshakeError> {
        // Boxed, so that what a handshake needs is not kept in the connection's own task afterwards.
        let handshake = Box::pin(self.handshake(socket));
        tokio::time::timeout(self.options.timeout, handshake).await.unwrap_or(Err(HandshakeError::Timeout))
    }

    async fn handshake(&self, socket: TcpStream) -> Result<Accepted, HandshakeError> {
        let TlsConnection { stream, session_id, alpn, peer_chain, .. } =
            self.tls.accept(socket).await.map_err(HandshakeError::Tls)?;
        let versions = offered_versions(self.options.versions, alpn).ok_or(HandshakeError::NoAlpn)?;
        let (handshake, hello) = ServerHandshake::start(&self.credentials, session_id, versions)?;
        let mut stream = SmpStream::new(stream);
        stream.write(&hello).await?;
        let answer = read_hello(&mut stream).await?;
        let mut session = match handshake.accept(&answer, &peer_chain) {
            Ok(session) => session,
            Err(rejection) => return Err(reject(stream, rejection).await),
        };
        let mut service_id = None;
        if let Some(service) = &session.service {
            let Some(id) = self.enrol(service).await else { return Err(reject(stream, bad_service()).await) };
            stream.write(&ServiceReply::Accepted(EntityId(id.into())).encoded()).await?;
            service_id = Some(id);
        }
        // The reply to a service is still part of the handshake.
        if let Some(keys) = session.block_keys.take() {
            stream.encrypt(keys);
        }
        Ok(Accepted { stream, session, service_id })
    }

    async fn enrol(&self, service: &PeerService) -> Option<ServiceId> {
        self.services.as_ref()?.enrol(service).await
    }
}

fn bad_service() -> Rejection {
    Rejection::Service(TransportErrorType::Handshake(SmpHandshakeError::BadService))
}

async fn read_hello(stream: &mut SmpStream<TlsStream>) -> Result<Bytes, HandshakeError> {
    match stream.read().await? {
        Incoming::Payload(payload) => Ok(payload),
        Incoming::BadBlock => Err(HandshakeError::Refused(TransportErrorType::Handshake(SmpHandshakeError::Parse))),
        Incoming::Closed => Err(HandshakeError::Closed),
    }
}

/// Closes the connection, after the word that a service waits for.
async fn reject(mut stream: SmpStream<TlsStream>, rejection: Rejection) -> HandshakeError {
    let error = match rejection {
        Rejection::Silent(error) => error,
        Rejection::Service(error) => {
            let reply = ServiceReply::Refused(error.clone()).encoded();
            if let Err(error) = stream.write(&reply).await {
                return error.into();
            }
            error
        }
    };
    stream.close();
    HandshakeError::Refused(error)
}
