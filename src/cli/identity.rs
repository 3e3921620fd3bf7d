//! The identity of an installed server: certificates, key and fingerprint, read and checked against each other before
//! anything starts.

use std::fmt;
use std::path::Path;

use bytes::Bytes;
use openssl::asn1::Asn1Time;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use zeroize::Zeroizing;

use super::certificates::{self, SignAlgorithm, to_base64};
use super::error::CommandError;
use super::files;
use crate::protocol::certificate::{Credentials, Fingerprint};
use crate::protocol::crypto::SigningKey;
use crate::settings::{Password, Paths, Transport};

/// Who the server is, ready for TLS.
#[derive(Clone)]
pub struct Identity {
    /// SHA-256 of the authority's certificate.
    pub fingerprint: Fingerprint,
    /// Certificates as they are sent, in DER: the server's, then the authority's.
    pub chain: Vec<Vec<u8>>,
    /// Private key of the server's certificate, PKCS #8 in DER.
    pub private_key: Zeroizing<Vec<u8>>,
    /// Algorithm of that key.
    pub algorithm: SignAlgorithm,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, {:?})", to_base64(&self.fingerprint.0), self.algorithm)
    }
}

impl Identity {
    /// Reads and checks the files of an installation.
    ///
    /// # Errors
    /// A file is missing, unreadable or not what it should be, or the files do not belong together.
    pub fn load(paths: &Paths) -> Result<Self, CommandError> {
        let authority = read_certificate(&paths.ca_certificate())?;
        let fingerprint = certificates::fingerprint(&authority)?;
        check_fingerprint(paths, &to_base64(&fingerprint.0))?;
        let certificate = read_certificate(&paths.server_certificate())?;
        let key = read_key(&paths.server_key())?;
        check_server(paths, &certificate, &key, &authority)?;
        let algorithm = SignAlgorithm::of(&key).ok_or_else(|| {
            CommandError::refused(format!("{} is neither an Ed25519 nor an Ed448 key", paths.server_key().display()))
        })?;
        let private_key = Zeroizing::new(key.private_key_to_pkcs8()?);
        Ok(Identity { fingerprint, chain: vec![certificate.to_der()?, authority.to_der()?], private_key, algorithm })
    }

    /// Certificates and key as the transport wants them.
    ///
    /// # Errors
    /// None for an identity that was loaded; the types just cannot know.
    pub fn credentials(&self) -> Result<Credentials, CommandError> {
        let unusable =
            |why: &dyn fmt::Display| CommandError::refused(format!("the certificates cannot be used: {why}"));
        let key = SigningKey::from_der(&self.private_key).map_err(|e| unusable(&e))?;
        let chain = self.chain.iter().map(|certificate| Bytes::copy_from_slice(certificate)).collect();
        Credentials::new(chain, key).map_err(|e| unusable(&e))
    }

    /// The server's address as users give it to their clients, with the password if one is passed.
    pub fn address(&self, transport: &Transport, password: Option<&Password>) -> String {
        let port = transport.address_port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", address(self.fingerprint, &transport.host, password))
    }
}

/// `smp://fingerprint[:password]@hosts`.
pub fn address(fingerprint: Fingerprint, hosts: &str, password: Option<&Password>) -> String {
    let password = password.map(|password| format!(":{}", password.reveal())).unwrap_or_default();
    format!("smp://{}{password}@{hosts}", to_base64(&fingerprint.0))
}

/// Reads the one certificate of a PEM file.
pub fn read_certificate(path: &Path) -> Result<X509, CommandError> {
    let wrong = |what: &str| CommandError::refused(format!("{} {what}", path.display()));
    let certificates = X509::stack_from_pem(&files::read(path)?).map_err(|_| wrong("is not a PEM certificate"))?;
    let mut certificates = certificates.into_iter();
    match (certificates.next(), certificates.next()) {
        (Some(certificate), None) => Ok(certificate),
        (None, _) => Err(wrong("contains no certificate")),
        (Some(_), Some(_)) => Err(wrong("contains more than one certificate")),
    }
}

/// Reads a private key from a PEM file.
pub fn read_key(path: &Path) -> Result<PKey<Private>, CommandError> {
    let pem = Zeroizing::new(files::read(path)?);
    // The callback answers "no password", or OpenSSL would ask for one on the terminal.
    PKey::private_key_from_pem_callback(&pem, |_| Ok(0))
        .map_err(|_| CommandError::refused(format!("{} is not an unencrypted PEM private key", path.display())))
}

fn check_fingerprint(paths: &Paths, actual: &str) -> Result<(), CommandError> {
    let path = paths.fingerprint();
    let saved = files::read(&path)?;
    let saved = String::from_utf8_lossy(&saved);
    if saved.lines().next().map(str::trim_end) == Some(actual) {
        return Ok(());
    }
    Err(CommandError::refused(format!(
        "{} does not match {}: the clients of this server know it by the saved fingerprint.\n\
         Restore the certificate of the authority (its fingerprint is {actual} now) from a backup.",
        path.display(),
        paths.ca_certificate().display(),
    )))
}

fn check_server(paths: &Paths, server: &X509, key: &PKey<Private>, authority: &X509) -> Result<(), CommandError> {
    let wrong = |path: &Path, what: &str| {
        let renew = "Make a new one with `smp-server cert` (which needs the key of the authority).";
        Err(CommandError::refused(format!("{} {what}.\n{renew}", path.display())))
    };
    let path = paths.server_certificate();
    if !server.public_key()?.public_eq(key) {
        return wrong(&paths.server_key(), "is not the key of server.crt");
    }
    if !server.verify(&*authority.public_key()?).unwrap_or(false) {
        return wrong(&path, "is not signed by ca.crt");
    }
    let now = Asn1Time::days_from_now(0)?;
    if server.not_after() < now {
        return wrong(&path, "has expired");
    }
    Ok(())
}
