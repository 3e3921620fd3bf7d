//! Public keys as the protocol sends them: X.509 SubjectPublicKeyInfo in DER.
//!
//! Each algorithm has one DER form of fixed length: a constant header, then the raw key. Nothing else is accepted, so no
//! ASN.1 is parsed. Never holds private keys.

use std::fmt;

use bytes::Bytes;

use super::encoding::{Decode, DecodeError, Encode, Reader, put_short};

/// Header of an X25519 key in SubjectPublicKeyInfo.
const X25519_HEADER: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x6e\x03\x21\x00";
/// Header of an Ed25519 key in SubjectPublicKeyInfo.
const ED25519_HEADER: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// Header of an Ed448 key in SubjectPublicKeyInfo.
const ED448_HEADER: [u8; 12] = *b"\x30\x43\x30\x05\x06\x03\x2b\x65\x71\x03\x3a\x00";

/// An X25519 public key. `Debug` does not show it: a queue's keys are as telling as its IDs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicDhKey(pub [u8; 32]);

impl fmt::Debug for PublicDhKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("X25519(..)")
    }
}

impl PublicDhKey {
    /// Length of [`PublicDhKey::to_der`] in bytes.
    pub const DER_LENGTH: usize = 44;

    /// The key in SubjectPublicKeyInfo, or an error for any other bytes or algorithm.
    pub fn from_der(der: &[u8]) -> Result<Self, DecodeError> {
        raw_key(der, &X25519_HEADER).map(PublicDhKey).ok_or(DecodeError)
    }

    /// SubjectPublicKeyInfo in DER.
    pub fn to_der(&self) -> Vec<u8> {
        [&X25519_HEADER[..], &self.0].concat()
    }
}

/// A key that authorizes commands: it either verifies signatures or agrees the secret of an authenticator.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum PublicAuthKey {
    /// Ed25519 signatures.
    Ed25519([u8; 32]),
    /// Ed448 signatures.
    Ed448(Box<[u8; 57]>),
    /// X25519 authenticators (version 7+).
    X25519(PublicDhKey),
}

impl fmt::Debug for PublicAuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublicAuthKey::Ed25519(_) => f.write_str("Ed25519(..)"),
            PublicAuthKey::Ed448(_) => f.write_str("Ed448(..)"),
            PublicAuthKey::X25519(key) => key.fmt(f),
        }
    }
}

impl PublicAuthKey {
    /// The key in SubjectPublicKeyInfo, or an error for any other bytes or algorithm (X448 included).
    pub fn from_der(der: &[u8]) -> Result<Self, DecodeError> {
        raw_key(der, &ED25519_HEADER)
            .map(PublicAuthKey::Ed25519)
            .or_else(|| raw_key(der, &ED448_HEADER).map(|key| PublicAuthKey::Ed448(Box::new(key))))
            .or_else(|| PublicDhKey::from_der(der).ok().map(PublicAuthKey::X25519))
            .ok_or(DecodeError)
    }

    /// SubjectPublicKeyInfo in DER: 44 bytes, 69 for Ed448.
    pub fn to_der(&self) -> Vec<u8> {
        match self {
            PublicAuthKey::Ed25519(key) => [&ED25519_HEADER[..], key].concat(),
            PublicAuthKey::Ed448(key) => [&ED448_HEADER[..], &key[..]].concat(),
            PublicAuthKey::X25519(key) => key.to_der(),
        }
    }
}

/// What follows the header, when the header is this one and the length is right.
fn raw_key<const N: usize>(der: &[u8], header: &[u8]) -> Option<[u8; N]> {
    der.strip_prefix(header)?.try_into().ok()
}

impl Encode for PublicDhKey {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.to_der());
    }
}

impl Decode for PublicDhKey {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        PublicDhKey::from_der(reader.short_slice()?)
    }
}

impl Encode for PublicAuthKey {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.to_der());
    }
}

impl Decode for PublicAuthKey {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        PublicAuthKey::from_der(reader.short_slice()?)
    }
}

impl From<PublicDhKey> for Bytes {
    fn from(key: PublicDhKey) -> Self {
        Bytes::from(key.to_der())
    }
}
