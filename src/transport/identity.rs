//! A relay's identity: its certificates, the key that signs its handshakes, and the fingerprint that addresses name.
//!
//! Loads what `smp-server init` wrote; never makes or changes a file.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKey, Private};
use openssl::sha::sha256;
use openssl::x509::X509;

/// The SHA-256 of an identity certificate's DER: how addresses name a relay.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate (DER).
    pub fn of(certificate: &[u8]) -> Self {
        Fingerprint(sha256(certificate))
    }

    /// The fingerprint with these bytes, if they are 32.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Fingerprint)
    }
}

/// As in addresses and in the file `fingerprint`: base64url with padding.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The identity certificate of a chain, leaf first: the leaf itself when it is alone, else the second of up to four.
pub fn identity_certificate<T>(chain: &[T]) -> Option<&T> {
    match chain {
        [leaf] => Some(leaf),
        [_, identity] | [_, identity, _] | [_, identity, _, _] => Some(identity),
        _ => None,
    }
}

/// Why an identity could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{what} is not valid PEM: {error}")]
    Pem {
        /// What was expected.
        what: &'static str,
        /// OpenSSL's words.
        error: ErrorStack,
    },
    /// No certificate in a file that should have one.
    #[error("{0} holds no certificate")]
    Empty(&'static str),
    /// The key is of a kind that the protocol does not know.
    #[error("the server's key is neither Ed25519 nor Ed448")]
    KeyType,
    /// The key belongs to another certificate.
    #[error("the server's key does not belong to its certificate")]
    KeyMismatch,
    /// More certificates than clients accept.
    #[error("the chain has {0} certificates, clients accept 2 to 4")]
    ChainLength(usize),
}

/// The files of an identity.
#[derive(Clone, Debug)]
pub struct IdentityFiles {
    /// Certificate of the authority, whose fingerprint is the relay's identity.
    pub ca_certificate: PathBuf,
    /// The server's certificate, signed by the authority.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
}

impl IdentityFiles {
    /// `ca.crt`, `server.crt` and `server.key` in the configuration folder.
    pub fn in_folder(folder: &Path) -> Self {
        IdentityFiles {
            ca_certificate: folder.join("ca.crt"),
            certificate: folder.join("server.crt"),
            key: folder.join("server.key"),
        }
    }
}

/// Certificates and key of a relay (or of a service that connects to one).
#[derive(Clone)]
pub struct Identity {
    chain: Vec<Bytes>,
    key: PKey<Private>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Reads the files.
    pub fn load(files: &IdentityFiles) -> Result<Self, IdentityError> {
        let key = zeroize::Zeroizing::new(read(&files.key)?);
        Self::from_pem(&read(&files.ca_certificate)?, &read(&files.certificate)?, &key)
    }

    /// The identity in these PEM texts. The chain that is sent is the server's certificates, then the authority's.
    pub fn from_pem(ca_certificate: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let authority = certificates(ca_certificate, "the authority's certificate")?;
        let server = certificates(certificate, "the server's certificate")?;
        let key =
            PKey::private_key_from_pem(key).map_err(|error| IdentityError::Pem { what: "the server's key", error })?;
        check_key(&server, &key)?;
        let chain = encode(server.iter().chain(&authority))?;
        if !(2..=4).contains(&chain.len()) {
            return Err(IdentityError::ChainLength(chain.len()));
        }
        let fingerprint = encode(authority.iter().take(1))?.first().map(|ca| Fingerprint::of(ca));
        let fingerprint = fingerprint.ok_or(IdentityError::Empty("the authority's certificate"))?;
        Ok(Identity { chain, key, fingerprint })
    }

    /// Certificates (DER) as sent, the server's first.
    pub fn chain(&self) -> &[Bytes] {
        &self.chain
    }

    /// The key that signs handshakes.
    pub fn key(&self) -> &PKey<Private> {
        &self.key
    }

    /// The fingerprint of the authority's certificate: the relay's identity in addresses.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    std::fs::read(path).map_err(|error| IdentityError::Read { path: path.to_owned(), error })
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<X509>, IdentityError> {
    let certificates = X509::stack_from_pem(pem).map_err(|error| IdentityError::Pem { what, error })?;
    if certificates.is_empty() { Err(IdentityError::Empty(what)) } else { Ok(certificates) }
}

fn check_key(server: &[X509], key: &PKey<Private>) -> Result<(), IdentityError> {
    if ![Id::ED25519, Id::ED448].contains(&key.id()) {
        return Err(IdentityError::KeyType);
    }
    let leaf_key = server.first().and_then(|leaf| leaf.public_key().ok());
    if leaf_key.is_some_and(|leaf_key| leaf_key.public_eq(key)) { Ok(()) } else { Err(IdentityError::KeyMismatch) }
}

fn encode<'a>(certificates: impl Iterator<Item = &'a X509>) -> Result<Vec<Bytes>, IdentityError> {
    certificates
        .map(|certificate| certificate.to_der().map(Bytes::from))
        .collect::<Result<_, _>>()
        .map_err(|error| IdentityError::Pem { what: "a certificate", error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::testing::{KeyKind, Template};

    fn pems(kind: KeyKind) -> [Vec<u8>; 3] {
        let ca = Template::new("CA", None).make();
        let server = Template { kind, ..Template::new("localhost", Some(&ca)) }.make();
        let key = server.key.private_key_to_pem_pkcs8().unwrap();
        [ca.certificate.to_pem().unwrap(), server.certificate.to_pem().unwrap(), key]
    }

    #[test]
    fn is_loaded_from_the_files_of_init_and_known_by_the_authoritys_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let [ca, server, key] = pems(KeyKind::Ed448);
        for (name, pem) in [("ca.crt", &ca), ("server.crt", &server), ("server.key", &key)] {
            std::fs::write(folder.path().join(name), pem).unwrap();
        }
        let identity = Identity::load(&IdentityFiles::in_folder(folder.path())).unwrap();
        let authority = X509::from_pem(&ca).unwrap().to_der().unwrap();
        assert_eq!(identity.chain().len(), 2);
        assert_eq!(identity.chain()[1], authority);
        assert_eq!(identity.fingerprint(), Fingerprint::of(&authority));
        assert_eq!(identity.fingerprint().to_string().len(), 44);
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Identity::load(&IdentityFiles::in_folder(folder.path())).unwrap_err();
        assert!(error.to_string().contains("server.key"), "{error}");
    }

    #[test]
    fn refuses_keys_of_other_kinds_and_of_other_certificates_and_files_without_certificates() {
        let [ca, server, key] = pems(KeyKind::Ed25519);
        let [_, _, other_key] = pems(KeyKind::Ed25519);
        let [other_ca, p256, p256_key] = pems(KeyKind::P256);
        assert!(matches!(Identity::from_pem(&ca, &server, &other_key), Err(IdentityError::KeyMismatch)));
        assert!(matches!(Identity::from_pem(&other_ca, &p256, &p256_key), Err(IdentityError::KeyType)));
        assert!(matches!(Identity::from_pem(&ca, b"", &key), Err(IdentityError::Empty(_))));
        assert!(matches!(Identity::from_pem(&ca, &server, b"no key"), Err(IdentityError::Pem { .. })));
        let long = ca.repeat(4);
        assert!(matches!(Identity::from_pem(&long, &server, &key), Err(IdentityError::ChainLength(5))));
    }
}
