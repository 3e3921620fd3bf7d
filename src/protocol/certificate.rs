//! Certificate chains and the session keys that they sign. Spec: "Transport handshake", "Certificate chain".
//!
//! A session key is signed by the leaf's key: SubjectPublicKeyInfo in one more SEQUENCE, and the signature covers that
//! SEQUENCE with its header. Validity of chains (dates, signatures) is the TLS layer's matter, not looked at here.

use std::fmt;

use bytes::Bytes;
use openssl::pkey::Id;
use openssl::x509::X509;
use thiserror::Error;

use super::crypto::{CryptoError, SigningKey, sha256, verify_signature};
use super::encoding::{Decode, DecodeError, Encode, Reader, put_large, put_list};
use super::keys::PublicAuthKey;

/// A certificate chain (DER) with a session key that its leaf has signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateChainKey {
    /// Certificates, leaf first.
    pub chain: Vec<Bytes>,
    /// The signed object: DER of the key with algorithm and signature.
    pub signed_key: Bytes,
}

/// Why a certificate, a chain or a signed key is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CertificateError {
    /// Not a certificate, or with a key of an algorithm that the protocol does not use.
    #[error("malformed certificate, or its key is neither Ed25519 nor Ed448")]
    Malformed,
    /// No certificate, or more than four.
    #[error("a certificate chain has 1 to 4 certificates")]
    ChainLength,
    /// Not signed by the key of the leaf.
    #[error("the session key is not signed by the certificate")]
    Signature,
    /// A secret key that does not belong to the certificate.
    #[error("the key does not belong to the certificate")]
    OtherKey,
}

/// SHA-256 of a certificate's DER: how servers and services are identified.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate.
    pub fn of(certificate: &[u8]) -> Self {
        Fingerprint(sha256(certificate))
    }

    /// The fingerprint in `bytes`, if they are as long as one is.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(..)")
    }
}

/// Which certificate of a chain plays which part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainParts<'a, C> {
    /// Its key signs session keys and is used in TLS.
    pub leaf: &'a C,
    /// Its fingerprint is the identity.
    pub identity: &'a C,
    /// The root that the chain is validated against.
    pub authority: &'a C,
}

impl<'a, C> ChainParts<'a, C> {
    /// The parts of a chain of 1 (all in one), 2 (leaf, identity and authority), 3 or 4 certificates.
    ///
    /// # Errors
    /// [`CertificateError::ChainLength`].
    pub fn of(chain: &'a [C]) -> Result<Self, CertificateError> {
        match chain {
            [only] => Ok(ChainParts { leaf: only, identity: only, authority: only }),
            [leaf, identity] => Ok(ChainParts { leaf, identity, authority: identity }),
            [leaf, identity, authority] | [leaf, identity, _, authority] => {
                Ok(ChainParts { leaf, identity, authority })
            }
            _ => Err(CertificateError::ChainLength),
        }
    }
}

/// The public key in a certificate (DER).
///
/// # Errors
/// [`CertificateError::Malformed`], also when the key is not for Ed25519 or Ed448.
pub fn certificate_key(certificate: &[u8]) -> Result<PublicAuthKey, CertificateError> {
    let key = X509::from_der(certificate).and_then(|certificate| certificate.public_key());
    let key = key.map_err(|_| CertificateError::Malformed)?;
    let raw = key.raw_public_key().map_err(|_| CertificateError::Malformed)?;
    let key = match key.id() {
        Id::ED25519 => raw.try_into().map(PublicAuthKey::Ed25519).ok(),
        Id::ED448 => raw.try_into().map(|raw| PublicAuthKey::Ed448(Box::new(raw))).ok(),
        _ => None,
    };
    key.ok_or(CertificateError::Malformed)
}

/// A certificate chain with the secret key of its leaf: what a server or a service proves its identity with.
#[derive(Clone)]
pub struct Credentials {
    chain: Vec<Bytes>,
    key: SigningKey,
    fingerprint: Fingerprint,
}

impl Credentials {
    /// Credentials of a chain (DER, leaf first) and its leaf's key.
    ///
    /// # Errors
    /// [`CertificateError`] if the chain cannot be used or the key is another's.
    pub fn new(chain: Vec<Bytes>, key: SigningKey) -> Result<Self, CertificateError> {
        let parts = ChainParts::of(&chain)?;
        let fingerprint = Fingerprint::of(parts.identity);
        if key.public_key().ok() != Some(certificate_key(parts.leaf)?) {
            return Err(CertificateError::OtherKey);
        }
        Ok(Credentials { chain, key, fingerprint })
    }

    /// The certificates (DER), leaf first.
    pub fn chain(&self) -> &[Bytes] {
        &self.chain
    }

    /// The secret key of the leaf, for TLS.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The identity.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The chain with a session key signed by its leaf.
    ///
    /// # Errors
    /// [`CryptoError::Signing`].
    pub fn sign_session_key(&self, session_key: &PublicAuthKey) -> Result<CertificateChainKey, CryptoError> {
        let signed_key = Bytes::from(sign_key(session_key, &self.key)?);
        Ok(CertificateChainKey { chain: self.chain.clone(), signed_key })
    }
}

impl CertificateChainKey {
    /// The session key, once it is certain that the owner of `leaf_key` signed it.
    ///
    /// # Errors
    /// [`CertificateError::Signature`].
    pub fn verified_key(&self, leaf_key: &PublicAuthKey) -> Result<PublicAuthKey, CertificateError> {
        let signed = SignedKey::parse(&self.signed_key).ok_or(CertificateError::Signature)?;
        let right = signed.has_algorithm_of(leaf_key) && verify_signature(leaf_key, signed.object, signed.signature);
        if right { Ok(signed.key) } else { Err(CertificateError::Signature) }
    }
}

impl Encode for CertificateChainKey {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.chain, |out, certificate| put_large(out, certificate));
        put_large(out, &self.signed_key);
    }
}

impl Decode for CertificateChainKey {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(CertificateChainKey { chain: reader.list(Reader::large)?, signed_key: reader.large()? })
    }
}

/// DER tag of SEQUENCE.
const SEQUENCE: u8 = 0x30;
/// DER tag of BIT STRING.
const BIT_STRING: u8 = 0x03;
/// AlgorithmIdentifier of Ed25519, without its header.
const ED25519_ALGORITHM: &[u8] = b"\x06\x03\x2b\x65\x70";
/// AlgorithmIdentifier of Ed448, without its header.
const ED448_ALGORITHM: &[u8] = b"\x06\x03\x2b\x65\x71";

/// A key with the signature of it, taken apart.
struct SignedKey<'a> {
    /// What is signed, header included.
    object: &'a [u8],
    key: PublicAuthKey,
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SignedKey<'a> {
    /// Takes apart SEQUENCE { SEQUENCE { SubjectPublicKeyInfo }, AlgorithmIdentifier, BIT STRING }.
    fn parse(der: &'a [u8]) -> Option<Self> {
        let (signed, rest) = der_value(SEQUENCE, der)?;
        let (key, after_object) = der_value(SEQUENCE, signed)?;
        let (algorithm, after_algorithm) = der_value(SEQUENCE, after_object)?;
        let (bits, after_signature) = der_value(BIT_STRING, after_algorithm)?;
        if !rest.is_empty() || !after_signature.is_empty() {
            return None;
        }
        Some(SignedKey {
            object: signed.strip_suffix(after_object)?,
            key: PublicAuthKey::from_der(key).ok()?,
            algorithm,
            // A bit string says first how many bits of its last byte are unused.
            signature: bits.strip_prefix(&[0])?,
        })
    }

    fn has_algorithm_of(&self, key: &PublicAuthKey) -> bool {
        algorithm(key) == Some(self.algorithm)
    }
}

/// AlgorithmIdentifier of signatures by this key; none for X25519.
fn algorithm(key: &PublicAuthKey) -> Option<&'static [u8]> {
    match key {
        PublicAuthKey::Ed25519(_) => Some(ED25519_ALGORITHM),
        PublicAuthKey::Ed448(_) => Some(ED448_ALGORITHM),
        PublicAuthKey::X25519(_) => None,
    }
}

/// Signs a session key.
fn sign_key(session_key: &PublicAuthKey, signer: &SigningKey) -> Result<Vec<u8>, CryptoError> {
    let algorithm = signer.public_key().map(|key| algorithm(&key))?.ok_or(CryptoError::Signing)?;
    let mut signed = Vec::new();
    put_der(&mut signed, SEQUENCE, &session_key.to_der());
    let signature = signer.sign(&signed)?;
    put_der(&mut signed, SEQUENCE, algorithm);
    put_der(&mut signed, BIT_STRING, &[&[0], signature.as_slice()].concat());
    let mut out = Vec::new();
    put_der(&mut out, SEQUENCE, &signed);
    Ok(out)
}

/// The value of a DER element with this tag, of less than 64 KiB, and what follows it.
fn der_value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match der.strip_prefix(&[tag])? {
        [short @ 0..=0x7f, rest @ ..] => (usize::from(*short), rest),
        // DER has one form only: the shortest.
        [0x81, length @ 0x80..=0xff, rest @ ..] => (usize::from(*length), rest),
        [0x82, high @ 1..=0xff, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Appends a DER element; all that is written here has far less than 64 KiB.
fn put_der(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    match value.len() {
        length @ 0..=0x7f => out.push(length as u8),
        length @ 0x80..=0xff => out.extend_from_slice(&[0x81, length as u8]),
        length => {
            out.push(0x82);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    fn chain(list: &Value) -> Vec<Bytes> {
        let mut chain = Vec::new();
        assert_eq!(cases(list, |case| chain.push(bytes(&case["der"]).into())), 2);
        chain
    }

    fn server(vectors: &Value) -> Credentials {
        let key = SigningKey::from_der(&bytes(&vectors["server_sign_key_private_der"])).expect("a key");
        Credentials::new(chain(&vectors["server_cert_chain"]), key).expect("credentials")
    }

    fn session_key(vectors: &Value) -> PublicAuthKey {
        PublicAuthKey::from_der(&bytes(&vectors["keys"]["server_session"]["public_der"])).expect("a key")
    }

    #[test]
    fn identities_are_those_of_the_reference() {
        let vectors = vectors("handshake.json");
        assert_eq!(server(&vectors).fingerprint().0, array(&vectors["server_key_hash"]));
        let key = SigningKey::from_der(&bytes(&vectors["service_sign_key_private_der"])).expect("a key");
        let service = Credentials::new(chain(&vectors["service_cert_chain"]), key).expect("credentials");
        assert_eq!(service.fingerprint().0, array(&vectors["service_cert_hash"]));
    }

    #[test]
    fn the_signed_session_key_is_that_of_the_reference() {
        let vectors = vectors("handshake.json");
        let (server, session_key) = (server(&vectors), session_key(&vectors));
        let signed = server.sign_session_key(&session_key).expect("signed");
        assert_eq!(signed.signed_key, bytes(&vectors["signed_server_session_key"]));
        let leaf = certificate_key(&server.chain()[0]).expect("a key");
        assert_eq!(signed.verified_key(&leaf), Ok(session_key));
    }

    #[test]
    fn ed25519_certificate_keys_sign_session_keys_too() {
        let signer = SigningKey::generate_ed25519();
        let session_key = PublicAuthKey::Ed25519([7; 32]);
        let signed_key = sign_key(&session_key, &signer).expect("signed").into();
        let signed = CertificateChainKey { chain: vec![], signed_key };
        assert_eq!(signed.verified_key(&signer.public_key().expect("a key")), Ok(session_key));
        let other = SigningKey::generate_ed448().and_then(|key| key.public_key()).expect("a key");
        assert_eq!(signed.verified_key(&other), Err(CertificateError::Signature));
    }

    #[test]
    fn a_change_of_any_byte_of_a_signed_key_is_noticed() {
        let vectors = vectors("handshake.json");
        let server = server(&vectors);
        let leaf = certificate_key(&server.chain()[0]).expect("a key");
        let signed = bytes(&vectors["signed_server_session_key"]);
        for at in 0..signed.len() {
            let mut changed = signed.clone();
            changed[at] ^= 1;
            let key = CertificateChainKey { chain: vec![], signed_key: changed.into() };
            assert_eq!(key.verified_key(&leaf), Err(CertificateError::Signature), "byte {at}");
            let cut = CertificateChainKey { chain: vec![], signed_key: signed[..at].to_vec().into() };
            assert_eq!(cut.verified_key(&leaf), Err(CertificateError::Signature), "length {at}");
        }
    }

    #[test]
    fn the_identity_is_the_first_certificate_of_one_and_the_second_of_more() {
        let parts = |chain: &[u8]| ChainParts::of(chain).map(|parts| (*parts.leaf, *parts.identity, *parts.authority));
        assert_eq!(parts(&[1]), Ok((1, 1, 1)));
        assert_eq!(parts(&[1, 2]), Ok((1, 2, 2)));
        assert_eq!(parts(&[1, 2, 3]), Ok((1, 2, 3)));
        assert_eq!(parts(&[1, 2, 3, 4]), Ok((1, 2, 4)));
        assert_eq!(parts(&[]), Err(CertificateError::ChainLength));
        assert_eq!(parts(&[1, 2, 3, 4, 5]), Err(CertificateError::ChainLength));
    }

    #[test]
    fn a_key_that_is_not_the_certificates_makes_no_credentials() {
        let chain = chain(&vectors("handshake.json")["server_cert_chain"]);
        let error = Credentials::new(chain, SigningKey::generate_ed25519()).err();
        assert_eq!(error, Some(CertificateError::OtherKey));
        let error = Credentials::new(vec![Bytes::from_static(b"x")], SigningKey::generate_ed25519()).err();
        assert_eq!(error, Some(CertificateError::Malformed));
    }

    proptest! {
        #[test]
        fn elements_come_back(value in prop::collection::vec(any::<u8>(), 0..70_000), tail: Vec<u8>) {
            prop_assume!(value.len() <= usize::from(u16::MAX));
            let mut der = Vec::new();
            put_der(&mut der, SEQUENCE, &value);
            der.extend_from_slice(&tail);
            prop_assert_eq!(der_value(SEQUENCE, &der), Some((value.as_slice(), tail.as_slice())));
        }

        #[test]
        fn no_signed_key_panics(der: Vec<u8>) {
            prop_assert!(SignedKey::parse(&der).is_none());
        }
    }
}
