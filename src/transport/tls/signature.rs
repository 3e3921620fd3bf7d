//! Ed25519 and Ed448 in TLS: rustls' providers have no Ed448.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{CertificateError, Error, OtherError, SignatureAlgorithm, SignatureScheme};

use crate::protocol::certificate::certificate_key;
use crate::protocol::crypto::{self, CryptoError, verify_signature};
use crate::protocol::keys::PublicAuthKey;

/// Schemes that are offered and accepted, in the order of the reference.
pub(super) const SCHEMES: [SignatureScheme; 2] = [SignatureScheme::ED448, SignatureScheme::ED25519];

/// The scheme of signatures by a key of this kind.
fn scheme_of(key: &PublicAuthKey) -> Option<SignatureScheme> {
    match key {
        PublicAuthKey::Ed25519(_) => Some(SignatureScheme::ED25519),
        PublicAuthKey::Ed448(_) => Some(SignatureScheme::ED448),
        PublicAuthKey::X25519(_) => None,
    }
}

/// A private key that signs handshakes.
#[derive(Clone)]
pub(super) struct EdwardsKey {
    key: crypto::SigningKey,
    scheme: SignatureScheme,
    public: Vec<u8>,
}

impl EdwardsKey {
    pub(super) fn new(key: &crypto::SigningKey) -> Result<Self, CryptoError> {
        let public = key.public_key()?;
        let scheme = scheme_of(&public).ok_or(CryptoError::Key)?;
        Ok(EdwardsKey { key: key.clone(), scheme, public: public.to_der() })
    }
}

impl fmt::Debug for EdwardsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EdwardsKey({:?})", self.scheme)
    }
}

impl SigningKey for EdwardsKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let offered = offered.contains(&self.scheme);
        offered.then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(SubjectPublicKeyInfoDer::from(self.public.as_slice()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.scheme {
            SignatureScheme::ED448 => SignatureAlgorithm::ED448,
            _ => SignatureAlgorithm::ED25519,
        }
    }
}

impl Signer for EdwardsKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.key.sign(message).map_err(|error| Error::Other(OtherError(Arc::new(error))))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

/// Checks a handshake signature by the certificate's key, which must be of the kind that the scheme names.
pub(super) fn verify(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    scheme: SignatureScheme,
    signature: &[u8],
) -> Result<(), Error> {
    let key = certificate_key(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let valid = scheme_of(&key) == Some(scheme) && verify_signature(&key, message, signature);
    if valid { Ok(()) } else { Err(CertificateError::BadSignature.into()) }
}
