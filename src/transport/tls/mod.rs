//! TLS as SMP uses it, and nothing of TLS outside this folder.
//!
//! TLS 1.3, ChaCha20-Poly1305, X25519 and X448, Ed25519 and Ed448; no resumption, no tickets, no server names. Both ends
//! yield a [`TlsConnection`]: a stream, the session identifier that the SMP handshake binds itself to, and who the peer
//! says it is. Everything else of this crate sees a [`TlsStream`] only through [`SecureStream`](super::block_stream),
//! so that another record layer can take its place.

mod chain;
mod client;
mod finished;
mod provider;
mod server;
mod signature;
mod stream;
mod verify;
mod x448;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use rustls::{CommonState, HandshakeKind};

use crate::protocol::SessionId;

pub use client::{TlsClient, TlsClientOptions};
pub use provider::Groups;
pub use server::{TlsServer, TlsServerOptions};
pub use stream::TlsStream;

/// The protocol name of SMP handshakes with a choice of versions. Without it only version 6 is spoken.
pub const ALPN_SMP: &[u8] = b"smp/1";

/// A TLS connection whose handshake is done.
#[derive(Debug)]
pub struct TlsConnection {
    /// The stream inside TLS.
    pub stream: TlsStream,
    /// The client's Finished value, the same at both ends.
    pub session_id: SessionId,
    /// Whether `smp/1` was agreed.
    pub alpn: bool,
    /// The peer's certificates (DER), leaf first; empty for a client without.
    pub peer_chain: Vec<Bytes>,
    /// Whether the handshake needed a HelloRetryRequest.
    pub retried: bool,
}

impl TlsConnection {
    fn new(stream: TlsStream, session_id: SessionId) -> Self {
        let state = stream.state();
        TlsConnection {
            session_id,
            alpn: has_alpn(state),
            peer_chain: peer_chain(state),
            retried: retried(state),
            stream,
        }
    }
}

fn has_alpn(state: &CommonState) -> bool {
    state.alpn_protocol() == Some(ALPN_SMP)
}

fn peer_chain(state: &CommonState) -> Vec<Bytes> {
    let certificates = state.peer_certificates().unwrap_or_default();
    certificates.iter().map(|certificate| Bytes::copy_from_slice(certificate)).collect()
}

fn retried(state: &CommonState) -> bool {
    state.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest)
}
