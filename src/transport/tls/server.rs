//! The server's side of the TLS handshake.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::{Acceptor, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;

use super::finished::RecordFinished;
use super::provider::{Groups, provider};
use super::signature::EdwardsKey;
use super::stream::{CountingSocket, TlsStream};
use super::verify::AnyClient;
use super::{ALPN_SMP, TlsConnection};
use crate::protocol::certificate::Credentials;

/// How a server shakes hands.
#[derive(Clone, Copy, Debug)]
pub struct TlsServerOptions {
    /// Whether the X448 shares of existing clients are accepted. Each costs 0.5 ms of CPU, refusing it costs the client
    /// a round trip.
    pub x448: bool,
    /// With more handshakes than this in progress, X448 is refused until they are fewer: CPU is then what is missing.
    pub x448_handshakes: usize,
}

impl Default for TlsServerOptions {
    fn default() -> Self {
        TlsServerOptions { x448: true, x448_handshakes: 256 }
    }
}

/// Accepts TLS connections. Cheap to clone; clones count their handshakes together.
#[derive(Clone)]
pub struct TlsServer {
    with_x448: Arc<ServerConfig>,
    without_x448: Arc<ServerConfig>,
    options: TlsServerOptions,
    handshakes: Arc<AtomicUsize>,
}

impl TlsServer {
    /// Fails if the credentials' key cannot be used.
    pub fn new(credentials: &Credentials, options: TlsServerOptions) -> Result<Self, rustls::Error> {
        let certificate = Arc::new(SingleCertAndKey::from(certified_key(credentials)?));
        Ok(TlsServer {
            with_x448: config(provider(Groups::X448First), certificate.clone())?,
            without_x448: config(provider(Groups::X25519), certificate)?,
            options,
            handshakes: Arc::default(),
        })
    }

    /// Handshakes in progress, for metrics.
    pub fn handshakes(&self) -> usize {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// Shakes hands. Has no time limit of its own. Dropping it drops the connection.
    pub async fn accept(&self, socket: TcpStream) -> io::Result<TlsConnection> {
        let _counted = HandshakeCount::new(&self.handshakes);
        let hello = LazyConfigAcceptor::new(Acceptor::default(), CountingSocket::new(socket)).await?;
        let handshake = hello.into_stream(self.config_now());
        let (stream, session_id) = RecordFinished::new(handshake).await;
        let stream = TlsStream::new(stream?);
        Ok(TlsConnection::new(stream, session_id.ok_or(io::ErrorKind::InvalidData)?))
    }

    /// The configuration for a hello that has just arrived.
    fn config_now(&self) -> Arc<ServerConfig> {
        let x448 = self.options.x448 && self.handshakes() <= self.options.x448_handshakes;
        if x448 { self.with_x448.clone() } else { self.without_x448.clone() }
    }
}

/// Counts a handshake while it lives.
struct HandshakeCount<'a>(&'a AtomicUsize);

impl<'a> HandshakeCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        HandshakeCount(count)
    }
}

impl Drop for HandshakeCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Credentials as rustls takes them.
pub(super) fn certified_key(credentials: &Credentials) -> Result<CertifiedKey, rustls::Error> {
    let key = EdwardsKey::new(credentials.key()).map_err(|error| rustls::Error::General(error.to_string()))?;
    let chain = credentials.chain().iter().map(|certificate| CertificateDer::from(certificate.to_vec())).collect();
    Ok(CertifiedKey::new(chain, Arc::new(key)))
}

fn config(
    provider: Arc<CryptoProvider>,
    certificate: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(AnyClient))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![ALPN_SMP.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
