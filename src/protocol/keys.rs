//! Public keys as the protocol sends them: X.509 SubjectPublicKeyInfo in DER.

/// An X25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PublicDhKey(pub [u8; 32]);

/// A key that authorizes commands: it either verifies signatures or agrees the secret of an authenticator.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum PublicAuthKey {
    /// Ed25519 signatures.
    Ed25519([u8; 32]),
    /// Ed448 signatures.
    Ed448(Box<[u8; 57]>),
    /// X25519 authenticators (version 7+).
    X25519(PublicDhKey),
}
