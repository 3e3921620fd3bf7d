//! Verification of signatures: Ed25519 and Ed448.

use ed25519_dalek::ed25519::signature::MultipartVerifier;
use ed25519_dalek::{Signature, VerifyingKey};
use openssl::pkey::{Id, PKey};
use openssl::sign::Verifier;

use crate::protocol::keys::PublicAuthKey;
use crate::protocol::transmission::ED25519_SIGNATURE;

/// Whether `signature` is the signature of `message` by the owner of `key`; never for an X25519 key.
///
/// What it costs is no secret here: for commands see [`super::verify_authorization`].
pub fn verify_signature(key: &PublicAuthKey, message: &[u8], signature: &[u8]) -> bool {
    match key {
        PublicAuthKey::Ed25519(key) => {
            signature.try_into().is_ok_and(|signature| verify_ed25519(key, &[message], signature) == Some(true))
        }
        PublicAuthKey::Ed448(key) => verify_ed448(key, &[message], signature) == Some(true),
        PublicAuthKey::X25519(_) => false,
    }
}

/// Verifies an Ed25519 signature of the parts of a message, one after the other; `None`, and next to no work, if `key` is
/// no point of the curve.
pub(super) fn verify_ed25519(key: &[u8; 32], message: &[&[u8]], signature: &[u8; ED25519_SIGNATURE]) -> Option<bool> {
    let key = VerifyingKey::from_bytes(key).ok()?;
    Some(key.multipart_verify(message, &Signature::from_bytes(signature)).is_ok())
}

/// Verifies an Ed448 signature of the parts of a message; `None` if the library refuses the key.
pub(super) fn verify_ed448(key: &[u8; 57], message: &[&[u8]], signature: &[u8]) -> Option<bool> {
    let key = PKey::public_key_from_raw_bytes(key, Id::ED448).ok()?;
    let mut verifier = Verifier::new_without_digest(&key).ok()?;
    // The library takes no parts. An error here is a signature that cannot be read, after the work of verifying it.
    Some(verifier.verify_oneshot(signature, &message.concat()).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    fn check(key: &PublicAuthKey, list: &serde_json::Value) -> usize {
        cases(list, |case| {
            let (message, mut signature) = (bytes(&case["message"]), bytes(&case["signature"]));
            assert!(verify_signature(key, &message, &signature));
            assert!(!verify_signature(key, b"another message", &signature));
            signature[10] ^= 1;
            assert!(!verify_signature(key, &message, &signature));
            assert!(!verify_signature(key, &message, &signature[1..]));
            assert!(!verify_signature(key, &message, &[]));
        })
    }

    #[test]
    fn ed25519_signatures_of_the_reference_verify() {
        let vectors = vectors("crypto.json");
        let key = PublicAuthKey::Ed25519(array(&vectors["keys"]["ed25519"]["public_raw"]));
        assert_eq!(check(&key, &vectors["ed25519"]), 3);
    }

    #[test]
    fn ed448_signatures_of_the_reference_verify() {
        let vectors = vectors("crypto.json");
        let key = PublicAuthKey::Ed448(Box::new(array(&vectors["keys"]["ed448"]["public_raw"])));
        assert_eq!(check(&key, &vectors["ed448"]), 3);
    }

    #[test]
    fn keys_that_are_no_points_verify_nothing() {
        let key = PublicAuthKey::Ed25519([2; 32]);
        assert!(VerifyingKey::from_bytes(&[2; 32]).is_err());
        assert!(!verify_signature(&key, b"message", &[0; 64]));
        assert!(!verify_signature(&PublicAuthKey::Ed448(Box::new([0xff; 57])), b"message", &[0; 114]));
    }
}
