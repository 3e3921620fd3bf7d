//! X25519 key agreement.

use dryoc::classic::crypto_core::{crypto_scalarmult, crypto_scalarmult_base};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::CryptoError;
use super::random::random_array;
use super::secret_box::BoxKey;
use crate::protocol::keys::PublicDhKey;

/// An X25519 secret key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SecretDhKey([u8; 32]);

impl SecretDhKey {
    /// A key made of these bytes; any 32 bytes are one.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        SecretDhKey(bytes)
    }

    /// A new random key.
    pub fn generate() -> Self {
        SecretDhKey(random_array())
    }

    /// The public key that belongs to it.
    pub fn public_key(&self) -> PublicDhKey {
        let mut public = [0; 32];
        crypto_scalarmult_base(&mut public, &self.0);
        PublicDhKey(public)
    }

    /// The secret that the owner of `public` agrees with the owner of this key.
    ///
    /// # Errors
    /// [`CryptoError::Key`] if `public` would make the secret known to everybody.
    pub fn agree(&self, public: &PublicDhKey) -> Result<SharedSecret, CryptoError> {
        let mut secret = SharedSecret([0; 32]);
        crypto_scalarmult(&mut secret.0, &self.0, &public.0).map_err(|_| CryptoError::Key)?;
        Ok(secret)
    }
}

/// An X25519 secret key with its public key.
#[derive(Clone)]
pub struct DhKeyPair {
    /// The secret half.
    pub secret: SecretDhKey,
    /// The public half.
    pub public: PublicDhKey,
}

impl DhKeyPair {
    /// A new random pair.
    pub fn generate() -> Self {
        SecretDhKey::generate().into()
    }
}

impl From<SecretDhKey> for DhKeyPair {
    fn from(secret: SecretDhKey) -> Self {
        DhKeyPair { public: secret.public_key(), secret }
    }
}

/// An X25519 shared secret, as it comes out of the curve. The queue store keeps it in this form.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SharedSecret([u8; 32]);

impl SharedSecret {
    /// A secret that was agreed before.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        SharedSecret(bytes)
    }

    /// The bytes, for the store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of crypto_box with this secret.
    pub fn box_key(&self) -> BoxKey {
        BoxKey::derive(&self.0)
    }
}

impl PartialEq for SharedSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SharedSecret {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::crypto::test_vectors::{array, vectors};

    #[test]
    fn both_sides_agree_the_same_secret() {
        let vectors = vectors("crypto.json");
        let [alice, bob] = ["alice_x25519", "bob_x25519"].map(|name| {
            let pair = DhKeyPair::from(SecretDhKey::from_bytes(array(&vectors["keys"][name]["private_raw"])));
            assert_eq!(pair.public.0, array(&vectors["keys"][name]["public_raw"]));
            pair
        });
        let expected = array(&vectors["dh"]["dh_secret"]);
        assert_eq!(alice.secret.agree(&bob.public).expect("a secret").as_bytes(), &expected);
        assert_eq!(bob.secret.agree(&alice.public).expect("a secret").as_bytes(), &expected);
    }

    #[test]
    fn keys_of_low_order_are_refused() {
        let secret = SecretDhKey::generate();
        for low in [0, 1] {
            let mut public = [0; 32];
            public[0] = low;
            assert_eq!(secret.agree(&PublicDhKey(public)).err(), Some(CryptoError::Key));
        }
    }

    /// The secret that another library agrees.
    fn agree_by_openssl(secret: &[u8; 32], public: &[u8; 32]) -> Vec<u8> {
        use openssl::derive::Deriver;
        use openssl::pkey::{Id, PKey};

        let own = PKey::private_key_from_raw_bytes(secret, Id::X25519).expect("a key");
        let peer = PKey::public_key_from_raw_bytes(public, Id::X25519).expect("a key");
        let mut deriver = Deriver::new(&own).expect("a deriver");
        deriver.set_peer(&peer).expect("a peer");
        deriver.derive_to_vec().expect("a secret")
    }

    proptest! {
        #[test]
        fn secrets_are_those_of_another_library(own: [u8; 32], peer: [u8; 32]) {
            let secret = SecretDhKey::from_bytes(own);
            let public = SecretDhKey::from_bytes(peer).public_key();
            let agreed = secret.agree(&public)?;
            prop_assert_eq!(agreed.as_bytes().as_slice(), agree_by_openssl(&own, &public.0));
            // Any 32 bytes are a public key, the highest bit of which does not count.
            let public = PublicDhKey(peer);
            if let Ok(agreed) = secret.agree(&public) {
                prop_assert_eq!(agreed.as_bytes().as_slice(), agree_by_openssl(&own, &public.0));
            }
        }
    }
}
