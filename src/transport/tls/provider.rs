//! The cryptography that TLS is allowed to use here: one version, one suite, two groups.

use std::sync::{Arc, LazyLock};

use rustls::crypto::ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
use rustls::crypto::ring::{default_provider, kx_group};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, SupportedKxGroup};
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

use super::finished::RecordingHkdf;
use super::x448::X448;

/// ring's suite. The pattern has no other variant as long as rustls is built without TLS 1.2.
static RING: &Tls13CipherSuite = {
    let SupportedCipherSuite::Tls13(suite) = TLS13_CHACHA20_POLY1305_SHA256;
    suite
};

static HKDF: LazyLock<RecordingHkdf> = LazyLock::new(|| RecordingHkdf(RING.hkdf_provider));

/// ring's suite with an HKDF that lets us see the Finished messages.
static SUITE: LazyLock<Tls13CipherSuite> = LazyLock::new(|| Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: RING.common.suite,
        hash_provider: RING.common.hash_provider,
        confidentiality_limit: RING.common.confidentiality_limit,
    },
    hkdf_provider: &*HKDF,
    aead_alg: RING.aead_alg,
    quic: None,
});

/// Groups of a key exchange, the preferred one first. A client sends a share of the first one only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Groups {
    /// X25519 alone.
    X25519,
    /// X25519, then X448: what our clients offer.
    X25519First,
    /// X448, then X25519: what existing clients offer, and what a server accepts.
    X448First,
}

impl Groups {
    fn list(self) -> Vec<&'static dyn SupportedKxGroup> {
        match self {
            Groups::X25519 => vec![kx_group::X25519],
            Groups::X25519First => vec![kx_group::X25519, &X448],
            Groups::X448First => vec![&X448, kx_group::X25519],
        }
    }
}

/// A provider with these groups.
pub(super) fn provider(groups: Groups) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { cipher_suites: vec![(&*SUITE).into()], kx_groups: groups.list(), ..default_provider() })
}
