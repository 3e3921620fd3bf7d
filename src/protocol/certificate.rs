//! Certificate chains and the keys they sign.

use bytes::Bytes;

/// A certificate chain (DER) with a session key that its leaf has signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateChainKey {
    /// Certificates, leaf first.
    pub chain: Vec<Bytes>,
    /// The signed object: DER of the key with algorithm and signature.
    pub signed_key: Bytes,
}
