//! Keys that sign: the server's certificate key, service keys, and queue keys on the client's side.

use ed25519_dalek::Signer as _;
use openssl::pkey::{Id, PKey, Private};
use openssl::sign::Signer;

use super::CryptoError;
use super::random::random_array;
use crate::protocol::keys::PublicAuthKey;

/// A secret key for signatures. Wiped when dropped, by the library that holds it.
#[derive(Clone)]
pub enum SigningKey {
    /// Ed25519.
    Ed25519(Box<ed25519_dalek::SigningKey>),
    /// Ed448.
    Ed448(PKey<Private>),
}

impl SigningKey {
    /// The key in a PEM file (PKCS#8), as `server.key` is.
    ///
    /// # Errors
    /// [`CryptoError::Key`] for anything else, and for other algorithms.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CryptoError> {
        PKey::private_key_from_pem(pem).map_err(|_| CryptoError::Key).and_then(Self::from_library)
    }

    /// The key in PKCS#8 DER.
    ///
    /// # Errors
    /// [`CryptoError::Key`] for anything else, and for other algorithms.
    pub fn from_der(der: &[u8]) -> Result<Self, CryptoError> {
        PKey::private_key_from_pkcs8(der).map_err(|_| CryptoError::Key).and_then(Self::from_library)
    }

    /// A new random Ed25519 key.
    pub fn generate_ed25519() -> Self {
        Self::ed25519(&random_array())
    }

    /// The Ed25519 key made of these 32 bytes.
    pub fn ed25519(seed: &[u8; 32]) -> Self {
        SigningKey::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(seed)))
    }

    /// A new random Ed448 key.
    ///
    /// # Errors
    /// [`CryptoError::Key`] if the library fails to make one.
    pub fn generate_ed448() -> Result<Self, CryptoError> {
        PKey::generate_ed448().map(SigningKey::Ed448).map_err(|_| CryptoError::Key)
    }

    /// The public key that verifies what this one signs.
    ///
    /// # Errors
    /// [`CryptoError::Key`] if the library fails to give it.
    pub fn public_key(&self) -> Result<PublicAuthKey, CryptoError> {
        match self {
            SigningKey::Ed25519(key) => Ok(PublicAuthKey::Ed25519(key.verifying_key().to_bytes())),
            SigningKey::Ed448(key) => {
                let raw = key.raw_public_key().map_err(|_| CryptoError::Key)?;
                raw.try_into().map(|raw| PublicAuthKey::Ed448(Box::new(raw))).map_err(|_| CryptoError::Key)
            }
        }
    }

    /// Signs `message`.
    ///
    /// # Errors
    /// [`CryptoError::Signing`] if the library fails.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CryptoError> {
        match self {
            SigningKey::Ed25519(key) => Ok(key.sign(message).to_bytes().to_vec()),
            SigningKey::Ed448(key) => Signer::new_without_digest(key)
                .and_then(|mut signer| signer.sign_oneshot_to_vec(message))
                .map_err(|_| CryptoError::Signing),
        }
    }

    fn from_library(key: PKey<Private>) -> Result<Self, CryptoError> {
        match key.id() {
            Id::ED448 => Ok(SigningKey::Ed448(key)),
            Id::ED25519 => {
                let raw = key.raw_private_key().map(zeroize::Zeroizing::new).map_err(|_| CryptoError::Key)?;
                raw.as_slice().try_into().map(Self::ed25519).map_err(|_| CryptoError::Key)
            }
            _ => Err(CryptoError::Key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::test_vectors::{bytes, cases, vectors};
    use crate::protocol::crypto::verify_signature;

    #[test]
    fn signatures_are_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        for name in ["ed25519", "ed448"] {
            let keys = &vectors["keys"][name];
            let key = SigningKey::from_der(&bytes(&keys["private_der"])).expect("a key");
            assert_eq!(key.public_key().expect("a key").to_der(), bytes(&keys["public_der"]));
            let checked = cases(&vectors[name], |case| {
                assert_eq!(key.sign(&bytes(&case["message"])), Ok(bytes(&case["signature"])));
            });
            assert_eq!(checked, 3);
        }
    }

    #[test]
    fn keys_of_other_algorithms_are_refused() {
        let vectors = vectors("crypto.json");
        for name in ["x448", "alice_x25519"] {
            let der = bytes(&vectors["keys"][name]["private_der"]);
            assert!(SigningKey::from_der(&der).is_err());
        }
        assert!(SigningKey::from_der(b"no key").is_err());
        assert!(SigningKey::from_pem(b"no key").is_err());
    }

    #[test]
    fn generated_keys_sign_what_their_public_keys_verify() {
        for key in [SigningKey::generate_ed25519(), SigningKey::generate_ed448().expect("a key")] {
            let signature = key.sign(b"message").expect("a signature");
            assert!(verify_signature(&key.public_key().expect("a key"), b"message", &signature));
        }
    }
}
