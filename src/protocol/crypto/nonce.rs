//! Nonces of boxes.

use std::fmt;

use super::random::random_array;
use crate::protocol::ids::{CorrelationId, MessageId};

/// A nonce of 24 bytes. Not secret, but never to be used twice with one key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; Nonce::LENGTH]);

impl Nonce {
    /// Length in bytes.
    pub const LENGTH: usize = 24;

    /// A random nonce.
    pub fn random() -> Self {
        Nonce(random_array())
    }

    /// The nonce that `bytes` stand for, whatever their length: zeros are added at the end, or what is past 24 bytes cut.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut nonce = [0; Self::LENGTH];
        let length = bytes.len().min(Self::LENGTH);
        nonce[..length].copy_from_slice(&bytes[..length]);
        Nonce(nonce)
    }

    /// The nonce for answers: the same bytes from last to first.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }
}

impl From<&CorrelationId> for Nonce {
    fn from(id: &CorrelationId) -> Self {
        Nonce::from_bytes(&id.0)
    }
}

impl From<&MessageId> for Nonce {
    fn from(id: &MessageId) -> Self {
        Nonce(id.0)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::test_vectors::{bytes, cases, vectors};

    #[test]
    fn correlation_ids_of_any_length_make_nonces() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["cb_nonce"], |case| {
            let id = CorrelationId(bytes(&case["from"]).into());
            assert_eq!(Nonce::from(&id).0.as_slice(), bytes(&case["nonce"]));
        });
        assert_eq!(checked, 4);
    }

    #[test]
    fn answers_use_the_reversed_nonce() {
        let vectors = vectors("crypto.json");
        let case = &vectors["reverse_nonce"];
        let nonce = Nonce::from_bytes(&bytes(&case["nonce"]));
        assert_eq!(nonce.reversed().0.as_slice(), bytes(&case["reversed"]));
        assert_eq!(nonce.reversed().reversed(), nonce);
    }
}
