//! Boxes: XSalsa20-Poly1305 with a key that first passes through HSalsa20. Spec: "crypto_box" and "secret_box".
//!
//! NaCl does that step only to secrets of X25519; the protocol does it to symmetric keys too, so that one key type serves
//! both. A box is 16 bytes of authentication code, then the cipher text.

use std::ops::Range;

use dryoc::classic::crypto_core::crypto_core_hsalsa20;
use dryoc::classic::crypto_secretbox::{
    crypto_secretbox_detached, crypto_secretbox_easy_inplace, crypto_secretbox_open_easy,
    crypto_secretbox_open_easy_inplace,
};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::CryptoError;
use super::nonce::Nonce;
use super::padding::{content_range, pad_with};

/// What a box is longer than its content, in bytes.
pub const BOX_OVERHEAD: usize = 16;

/// The key of boxes, ready to be used.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct BoxKey([u8; 32]);

impl BoxKey {
    /// The key that boxes with this X25519 secret or symmetric key have.
    pub fn derive(secret: &[u8; 32]) -> Self {
        let mut key = BoxKey([0; 32]);
        crypto_core_hsalsa20(&mut key.0, &[0; 16], secret, None);
        key
    }

    /// A box with `content`, [`BOX_OVERHEAD`] bytes longer.
    pub fn seal(&self, nonce: &Nonce, content: &[u8]) -> Vec<u8> {
        let mut sealed = vec![0; content.len() + BOX_OVERHEAD];
        if let Some((mac, cipher_text)) = sealed.split_first_chunk_mut::<BOX_OVERHEAD>() {
            // Fails only for lengths near 2^64.
            let result = crypto_secretbox_detached(cipher_text, mac, content, &nonce.0, &self.0);
            debug_assert!(result.is_ok());
        }
        sealed
    }

    /// Appends to `out` a box with what `write` appends to it, padded to `padded_length` bytes. Padded and encrypted where
    /// it stands, without another buffer.
    ///
    /// # Errors
    /// [`CryptoError::TooLarge`] when that is longer than `padded_length - 2`; nothing is appended then.
    pub fn seal_padded_with(
        &self,
        nonce: &Nonce,
        padded_length: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), CryptoError> {
        let start = out.len();
        // All at once, so that the buffer is not moved for the last 16 bytes.
        out.reserve_exact(padded_length + BOX_OVERHEAD);
        pad_with(out, padded_length, write)?;
        out.resize(start + padded_length + BOX_OVERHEAD, 0);
        crypto_secretbox_easy_inplace(&mut out[start..], &nonce.0, &self.0).map_err(|_| CryptoError::TooLarge)
    }

    /// A box with `content` padded to `padded_length` bytes.
    ///
    /// # Errors
    /// [`CryptoError::TooLarge`] when `content` is longer than `padded_length - 2`.
    pub fn seal_padded(&self, nonce: &Nonce, content: &[u8], padded_length: usize) -> Result<Vec<u8>, CryptoError> {
        let mut sealed = Vec::new();
        self.seal_padded_with(nonce, padded_length, &mut sealed, |out| out.extend_from_slice(content))?;
        Ok(sealed)
    }

    /// The content of a box.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`] when it was made with another key or nonce, was changed, or is too short to be a box.
    pub fn open(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let length = sealed.len().checked_sub(BOX_OVERHEAD).ok_or(CryptoError::Decryption)?;
        let mut content = vec![0; length];
        crypto_secretbox_open_easy(&mut content, sealed, &nonce.0, &self.0).map_err(|_| CryptoError::Decryption)?;
        Ok(content)
    }

    /// The content of a box with padding.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`] as [`BoxKey::open`]; [`CryptoError::Padding`] when what is inside is not padded.
    pub fn open_padded(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut content = self.open(nonce, sealed)?;
        let Range { start, end } = content_range(&content)?;
        content.truncate(end);
        content.drain(..start);
        Ok(content)
    }

    /// Opens a box where it stands: the content takes its first bytes, the last [`BOX_OVERHEAD`] are left over. A box
    /// that cannot be opened stays as it was.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`] as [`BoxKey::open`].
    pub fn open_in_place<'a>(&self, nonce: &Nonce, sealed: &'a mut [u8]) -> Result<&'a mut [u8], CryptoError> {
        crypto_secretbox_open_easy_inplace(sealed, &nonce.0, &self.0).map_err(|_| CryptoError::Decryption)?;
        let length = sealed.len() - BOX_OVERHEAD;
        Ok(&mut sealed[..length])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    fn check_padded(key: &BoxKey, list: &serde_json::Value) -> usize {
        cases(list, |case| {
            let nonce = Nonce(array(&case["nonce"]));
            let length = usize::try_from(case["padded_length"].as_u64().expect("a length")).expect("a length");
            let content = bytes(&case["message"]);
            let sealed = key.seal_padded(&nonce, &content, length);
            if case["error"].is_string() {
                return assert_eq!(sealed, Err(CryptoError::TooLarge));
            }
            let sealed = sealed.expect("fits");
            match case["encrypted"].as_str() {
                Some(_) => assert_eq!(sealed, bytes(&case["encrypted"])),
                None => assert_eq!(super::super::sha256(&sealed).as_slice(), bytes(&case["encrypted_sha256"])),
            }
            assert_eq!(key.open_padded(&nonce, &sealed).as_deref(), Ok(content.as_slice()));
        })
    }

    #[test]
    fn crypto_boxes_are_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        let key = BoxKey::derive(&array(&vectors["dh"]["dh_secret"]));
        assert_eq!(check_padded(&key, &vectors["cb_encrypt"]), 5);
        let checked = cases(&vectors["cb_encrypt_no_pad"], |case| {
            let nonce = Nonce(array(&case["nonce"]));
            let sealed = key.seal(&nonce, &bytes(&case["message"]));
            assert_eq!(sealed, bytes(&case["encrypted"]));
            assert_eq!(key.open(&nonce, &sealed), Ok(bytes(&case["message"])));
        });
        assert_eq!(checked, 3);
    }

    #[test]
    fn secret_boxes_are_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        let key = BoxKey::derive(&array(&vectors["sb_key"]));
        assert_eq!(check_padded(&key, &vectors["sb_encrypt"]), 4);
        let case = &vectors["sb_encrypt_no_pad"];
        assert_eq!(key.seal(&Nonce(array(&case["nonce"])), &bytes(&case["message"])), bytes(&case["encrypted"]));
    }

    #[test]
    fn changed_and_malformed_boxes_are_refused() {
        let vectors = vectors("crypto.json");
        let key = BoxKey::derive(&array(&vectors["dh"]["dh_secret"]));
        let checked = cases(&vectors["cb_decrypt"], |case| {
            let result = key.open_padded(&Nonce(array(&case["nonce"])), &bytes(&case["encrypted"]));
            match case["result"].as_str() {
                Some("CBDecryptError") => assert_eq!(result, Err(CryptoError::Decryption)),
                Some("CryptoInvalidMsgError") => assert_eq!(result, Err(CryptoError::Padding)),
                _ => assert_eq!(result, Ok(bytes(&case["result"]))),
            }
        });
        assert_eq!(checked, 7);
    }

    /// A box made by another library.
    fn seal_by_rust_crypto(key: &BoxKey, nonce: &Nonce, content: &[u8]) -> Vec<u8> {
        use poly1305::Poly1305;
        use poly1305::universal_hash::KeyInit;
        use salsa20::XSalsa20;
        use salsa20::cipher::{KeyIvInit, StreamCipher};

        let mut cipher = XSalsa20::new(&key.0.into(), &nonce.0.into());
        let mut mac_key = [0; 32];
        cipher.apply_keystream(&mut mac_key);
        let mut cipher_text = content.to_vec();
        cipher.apply_keystream(&mut cipher_text);
        let mac = Poly1305::new(&mac_key.into()).compute_unpadded(&cipher_text);
        [mac.as_slice(), &cipher_text].concat()
    }

    proptest! {
        #[test]
        fn boxes_are_those_of_another_library(
            secret: [u8; 32], nonce: [u8; 24], content in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let (key, nonce) = (BoxKey::derive(&secret), Nonce(nonce));
            prop_assert_eq!(key.seal(&nonce, &content), seal_by_rust_crypto(&key, &nonce, &content));
        }

        #[test]
        fn boxes_open_in_place_and_apart(
            secret: [u8; 32], nonce: [u8; 24], content in prop::collection::vec(any::<u8>(), 0..2000), flip: usize,
        ) {
            let (key, nonce) = (BoxKey::derive(&secret), Nonce(nonce));
            let mut sealed = key.seal(&nonce, &content);
            prop_assert_eq!(&key.open(&nonce, &sealed)?, &content);
            let mut broken = sealed.clone();
            let at = flip % broken.len();
            broken[at] ^= 1;
            let before = broken.clone();
            prop_assert_eq!(key.open(&nonce, &broken), Err(CryptoError::Decryption));
            prop_assert!(key.open_in_place(&nonce, &mut broken).is_err());
            prop_assert_eq!(broken, before);
            prop_assert_eq!(&*key.open_in_place(&nonce, &mut sealed)?, content.as_slice());
        }
    }
}
