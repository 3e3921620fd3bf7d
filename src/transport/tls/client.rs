//! The client's side of the TLS handshake.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::{IpAddr, Ipv4Addr, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::finished::RecordFinished;
use super::provider::{Groups, provider};
use super::server::certified_key;
use super::stream::{CountingSocket, TlsStream};
use super::verify::RelayWithFingerprint;
use super::{ALPN_SMP, TlsConnection};
use crate::protocol::certificate::{Credentials, Fingerprint};

/// Whom a client connects to, and how.
#[derive(Clone)]
pub struct TlsClientOptions {
    /// The relay's identity: any other is refused.
    pub fingerprint: Fingerprint,
    /// The protocol name to offer; `None` as the oldest clients do.
    pub alpn: Option<Vec<u8>>,
    /// The groups to offer.
    pub groups: Groups,
    /// The client's own certificates, for services.
    pub credentials: Option<Arc<Credentials>>,
}

impl TlsClientOptions {
    /// What a current client offers.
    pub fn new(fingerprint: Fingerprint) -> Self {
        TlsClientOptions { fingerprint, alpn: Some(ALPN_SMP.to_vec()), groups: Groups::X25519First, credentials: None }
    }
}

/// Makes TLS connections to one relay.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
}

impl TlsClient {
    /// Fails if the credentials' key cannot be used.
    pub fn new(options: &TlsClientOptions) -> Result<Self, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(provider(options.groups))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(RelayWithFingerprint(options.fingerprint)));
        let mut config = match &options.credentials {
            Some(credentials) => {
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified_key(credentials)?)))
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = options.alpn.iter().cloned().collect();
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(TlsClient { config: Arc::new(config) })
    }

    /// Shakes hands. Has no time limit of its own.
    pub async fn connect(&self, socket: TcpStream) -> io::Result<TlsConnection> {
        // A relay is known by its fingerprint. rustls wants a name nevertheless; it is neither sent nor checked.
        let nobody = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0, 0, 0, 0])));
        let handshake = TlsConnector::from(self.config.clone()).connect(nobody, CountingSocket::new(socket));
        let (stream, session_id) = RecordFinished::new(handshake).await;
        let stream = TlsStream::new(stream?);
        Ok(TlsConnection::new(stream, session_id.ok_or(io::ErrorKind::InvalidData)?))
    }
}
