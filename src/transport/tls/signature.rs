//! Ed25519 and Ed448 in TLS, by OpenSSL: rustls' providers have no Ed448.

use std::fmt;
use std::sync::Arc;

use openssl::error::ErrorStack;
use openssl::pkey::{HasPublic, Id, PKey, PKeyRef, Private};
use openssl::sign;
use openssl::x509::X509;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{CertificateError, Error, OtherError, SignatureAlgorithm, SignatureScheme};

/// Schemes that are offered and accepted, in the order of the reference.
pub(super) const SCHEMES: [SignatureScheme; 2] = [SignatureScheme::ED448, SignatureScheme::ED25519];

/// The scheme of a key of this type.
fn scheme_of<T: HasPublic>(key: &PKeyRef<T>) -> Option<SignatureScheme> {
    match key.id() {
        Id::ED25519 => Some(SignatureScheme::ED25519),
        Id::ED448 => Some(SignatureScheme::ED448),
        _ => None,
    }
}

/// A private key that signs handshakes.
#[derive(Clone)]
pub(super) struct EdwardsKey {
    key: Arc<PKey<Private>>,
    scheme: SignatureScheme,
    public: Vec<u8>,
}

impl EdwardsKey {
    /// `None` when the key is neither Ed25519 nor Ed448.
    pub(super) fn new(key: &PKey<Private>) -> Option<Self> {
        let scheme = scheme_of(key)?;
        let public = key.public_key_to_der().ok()?;
        Some(EdwardsKey { key: Arc::new(key.clone()), scheme, public })
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
        sign::Signer::new_without_digest(&self.key)
            .and_then(|mut signer| signer.sign_oneshot_to_vec(message))
            .map_err(|error| Error::Other(OtherError(Arc::new(error))))
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
    let key = X509::from_der(certificate)
        .and_then(|certificate| certificate.public_key())
        .map_err(|_| CertificateError::BadEncoding)?;
    let valid = scheme_of(&key) == Some(scheme) && is_valid(&key, message, signature).unwrap_or(false);
    if valid { Ok(()) } else { Err(CertificateError::BadSignature.into()) }
}

fn is_valid<T: HasPublic>(key: &PKeyRef<T>, message: &[u8], signature: &[u8]) -> Result<bool, ErrorStack> {
    sign::Verifier::new_without_digest(key)?.verify_oneshot(signature, message)
}
