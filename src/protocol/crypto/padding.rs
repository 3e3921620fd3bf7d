//! Removal of the padding that hides lengths; `block::pad` adds it.

use super::CryptoError;

/// Bytes of the length before the content.
pub(super) const LENGTH_BYTES: usize = 2;

/// The content of `padded`. What fills the rest is not looked at.
///
/// # Errors
/// [`CryptoError::Padding`] when there is no length, or less content than it says.
pub fn unpad(padded: &[u8]) -> Result<&[u8], CryptoError> {
    let (length, rest) = padded.split_first_chunk::<LENGTH_BYTES>().ok_or(CryptoError::Padding)?;
    rest.get(..usize::from(u16::from_be_bytes(*length))).ok_or(CryptoError::Padding)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::block::{TooLarge, pad};
    use crate::protocol::crypto::sha256;
    use crate::protocol::crypto::test_vectors::{bytes, cases, vectors};

    fn padded(content: &[u8], length: usize) -> Result<Vec<u8>, TooLarge> {
        let mut out = Vec::new();
        pad(content, length, &mut out).map(|()| out)
    }

    #[test]
    fn content_is_padded_as_the_reference_does() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["pad"], |case| {
            let length = usize::try_from(case["padded_length"].as_u64().expect("a length")).expect("a length");
            let result = padded(&bytes(&case["message"]), length);
            match (&case["error"], &case["padded"]) {
                (error, _) if error.is_string() => assert_eq!(result, Err(TooLarge)),
                (_, expected) if expected.is_string() => assert_eq!(result, Ok(bytes(expected))),
                _ => assert_eq!(sha256(&result.expect("padded")).as_slice(), bytes(&case["padded_sha256"])),
            }
        });
        assert_eq!(checked, 10);
    }

    #[test]
    fn padding_is_removed_as_the_reference_does() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["unpad"], |case| {
            let padded = bytes(&case["padded"]);
            match case["message"].as_str() {
                Some(_) => assert_eq!(unpad(&padded), Ok(bytes(&case["message"]).as_slice())),
                None => assert_eq!(unpad(&padded), Err(CryptoError::Padding)),
            }
        });
        assert_eq!(checked, 9);
    }

    proptest! {
        #[test]
        fn what_is_padded_has_the_length_asked_for_and_comes_back(
            content in prop::collection::vec(any::<u8>(), 0..300), spare in 0usize..50,
        ) {
            let length = content.len() + LENGTH_BYTES + spare;
            let padded = padded(&content, length)?;
            prop_assert_eq!(padded.len(), length);
            prop_assert_eq!(unpad(&padded)?, content.as_slice());
        }

        #[test]
        fn no_padded_bytes_panic(padded in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = unpad(&padded);
        }
    }
}
