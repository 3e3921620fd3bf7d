//! Padding that hides lengths: two bytes of length, the content, then `#` up to a fixed length. Spec: "pad".

use std::ops::Range;

use super::CryptoError;

/// What fills the space after the content.
const FILLER: u8 = b'#';
/// Bytes of the length before the content.
const LENGTH_BYTES: usize = 2;
/// The longest content that can be padded, in bytes. The reference stops two short of what the length could say.
const MAX_CONTENT: usize = u16::MAX as usize - LENGTH_BYTES;

/// Appends to `out` what `write` appends to it, padded to `padded_length` bytes.
///
/// # Errors
/// [`CryptoError::TooLarge`] when that is longer than `padded_length - 2`; nothing is appended then.
pub fn pad_with(out: &mut Vec<u8>, padded_length: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), CryptoError> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out);
    let length = out.len().saturating_sub(start + LENGTH_BYTES);
    let prefix = u16::try_from(length).ok().filter(|_| length <= MAX_CONTENT && length + LENGTH_BYTES <= padded_length);
    let (Some(prefix), Some(place)) = (prefix, out.get_mut(start..start + LENGTH_BYTES)) else {
        out.truncate(start);
        return Err(CryptoError::TooLarge);
    };
    place.copy_from_slice(&prefix.to_be_bytes());
    out.resize(start + padded_length, FILLER);
    Ok(())
}

/// Where in `padded` its content is. What fills the rest is not looked at.
///
/// # Errors
/// [`CryptoError::Padding`] when there is no length, or less content than it says.
pub fn content_range(padded: &[u8]) -> Result<Range<usize>, CryptoError> {
    let (length, rest) = padded.split_first_chunk::<LENGTH_BYTES>().ok_or(CryptoError::Padding)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length > rest.len() {
        return Err(CryptoError::Padding);
    }
    Ok(LENGTH_BYTES..LENGTH_BYTES + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::crypto::sha256;
    use crate::protocol::crypto::test_vectors::{bytes, cases, vectors};

    fn padded(content: &[u8], length: usize) -> Result<Vec<u8>, CryptoError> {
        let mut out = Vec::new();
        pad_with(&mut out, length, |out| out.extend_from_slice(content)).map(|()| out)
    }

    fn unpad(padded: &[u8]) -> Result<&[u8], CryptoError> {
        content_range(padded).map(|range| &padded[range])
    }

    #[test]
    fn content_is_padded_as_the_reference_does() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["pad"], |case| {
            let length = usize::try_from(case["padded_length"].as_u64().expect("a length")).expect("a length");
            let result = padded(&bytes(&case["message"]), length);
            match (&case["error"], &case["padded"]) {
                (error, _) if error.is_string() => assert_eq!(result, Err(CryptoError::TooLarge)),
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
