//! Digests.

use md5::Md5;
use ring::digest::{Context, SHA256, SHA512, digest};
use sha3::{Digest, Sha3_384};

use crate::protocol::command::IdsHash;
use crate::protocol::ids::{CorrelationId, QueueId};

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    fixed(digest(&SHA256, bytes).as_ref())
}

/// SHA-512 of `bytes`.
pub fn sha512(bytes: &[u8]) -> [u8; 64] {
    fixed(digest(&SHA512, bytes).as_ref())
}

/// SHA-512 of the parts of a message, one after the other.
pub(super) fn sha512_of_parts(parts: &[&[u8]]) -> [u8; 64] {
    let mut context = Context::new(&SHA512);
    parts.iter().for_each(|part| context.update(part));
    fixed(context.finish().as_ref())
}

/// The sender ID that a queue with a link has: the first 24 bytes of SHA3-384 of the correlation ID of `NEW`, which the
/// recipient chose. Spec: "Create queue command".
pub fn sender_id_for(correlation_id: &CorrelationId) -> QueueId {
    let digest = Sha3_384::digest(&correlation_id.0);
    QueueId(fixed(&digest[..QueueId::LENGTH]))
}

impl IdsHash {
    /// Adds the ID of a queue, or removes it when it was added before. The order does not matter.
    pub fn toggle(&mut self, id: &[u8]) {
        for (byte, other) in self.0.iter_mut().zip(Md5::digest(id)) {
            *byte ^= other;
        }
    }

    /// The hash of all these IDs.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = IdsHash::default();
        ids.into_iter().for_each(|id| hash.toggle(id));
        hash
    }
}

/// A digest as an array; every caller asks for no more than the digest has.
fn fixed<const N: usize>(digest: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(digest);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::test_vectors::{bytes, cases, vectors};

    #[test]
    fn digests_are_the_standard_ones() {
        let vectors = vectors("crypto.json");
        let case = &vectors["digests"];
        let input = bytes(&case["input"]);
        assert_eq!(sha256(&input).as_slice(), bytes(&case["sha256"]));
        assert_eq!(sha512(&input).as_slice(), bytes(&case["sha512"]));
        assert_eq!(Md5::digest(&input).as_slice(), bytes(&case["md5"]));
        assert_eq!(Sha3_384::digest(&input).as_slice(), bytes(&case["sha3_384"]));
    }

    #[test]
    fn the_sender_id_of_a_link_comes_from_the_correlation_id() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["sender_id"], |case| {
            let id = CorrelationId(bytes(&case["corr_id"]).into());
            assert_eq!(sender_id_for(&id).0.as_slice(), bytes(&case["sender_id"]));
        });
        assert_eq!(checked, 3);
    }

    #[test]
    fn the_hash_of_ids_is_the_same_in_any_order() {
        let vectors = vectors("crypto.json");
        let ids: Vec<Vec<u8>> = vectors["ids_hash"]["ids"].as_array().expect("IDs").iter().map(bytes).collect();
        let checked = cases(&vectors["ids_hash"]["prefixes"], |case| {
            let count = usize::try_from(case["count"].as_u64().expect("a count")).expect("a count");
            let hash = IdsHash::of(ids[..count].iter().map(Vec::as_slice));
            assert_eq!(hash.0.as_slice(), bytes(&case["ids_hash"]));
            assert_eq!(IdsHash::of(ids[..count].iter().rev().map(Vec::as_slice)), hash);
        });
        assert_eq!(checked, 6);
    }

    #[test]
    fn toggling_twice_leaves_the_hash_as_it_was() {
        let mut hash = IdsHash::of([b"one".as_slice()]);
        hash.toggle(b"two");
        hash.toggle(b"two");
        assert_eq!(hash, IdsHash::of([b"one".as_slice()]));
    }
}
