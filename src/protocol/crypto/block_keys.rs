//! Encryption of transport blocks inside TLS (version 11+). Spec: "Transport encryption" of the handshake.
//!
//! Each direction has a chain of keys; each block takes the next one, also a block that turns out to be broken, so that
//! both sides stay in step whatever is in a block.

use std::ops::Range;

use ring::hkdf::{HKDF_SHA512, KeyType, Salt};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::CryptoError;
use super::dh::SharedSecret;
use super::nonce::Nonce;
use super::padding::content_range;
use super::secret_box::{BOX_OVERHEAD, BoxKey};
use crate::protocol::block::{BLOCK_SIZE, MAX_PAYLOAD};
use crate::protocol::ids::SessionId;

/// Length of the padded payload inside an encrypted block, in bytes.
const PADDED_LENGTH: usize = BLOCK_SIZE - BOX_OVERHEAD;

/// Context of the derivation of both chains from the session's secret.
const INIT_CONTEXT: &[u8] = b"SimpleXSbChainInit";
/// Context of each step of a chain.
const STEP_CONTEXT: &[u8] = b"SimpleXSbChain";

/// A chain of keys: each step gives a key and a nonce, and cannot be undone.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct KeyChain([u8; 32]);

impl KeyChain {
    /// The two chains of a session, first the server's for sending, then its for receiving.
    fn pair(session_id: &SessionId, secret: &SharedSecret) -> [KeyChain; 2] {
        let mut keys = hkdf::<64>(&session_id.0, secret.as_bytes(), INIT_CONTEXT);
        let chains = [KeyChain(part(&keys, 0)), KeyChain(part(&keys, 32))];
        keys.zeroize();
        chains
    }

    /// Takes the next key and nonce out of the chain.
    pub fn step(&mut self) -> (BoxKey, Nonce) {
        let mut keys = hkdf::<88>(&[], &self.0, STEP_CONTEXT);
        self.0 = part(&keys, 0);
        let mut key: [u8; 32] = part(&keys, 32);
        let step = (BoxKey::derive(&key), Nonce(part(&keys, 64)));
        key.zeroize();
        keys.zeroize();
        step
    }
}

/// One side's keys for the blocks of a session.
#[derive(Clone)]
pub struct BlockKeys {
    send: KeyChain,
    receive: KeyChain,
}

impl BlockKeys {
    /// The server's keys, from the secret that the two session keys agree.
    pub fn server(session_id: &SessionId, secret: &SharedSecret) -> Self {
        let [send, receive] = KeyChain::pair(session_id, secret);
        BlockKeys { send, receive }
    }

    /// The client's keys: what the server sends with, it receives with.
    pub fn client(session_id: &SessionId, secret: &SharedSecret) -> Self {
        let [receive, send] = KeyChain::pair(session_id, secret);
        BlockKeys { send, receive }
    }

    /// Appends to `out` a block of [`BLOCK_SIZE`] bytes with `payload`, padded and encrypted there without another
    /// buffer.
    ///
    /// # Errors
    /// [`CryptoError::TooLarge`] for more than [`MAX_PAYLOAD`] bytes. The chain does not move then.
    pub fn seal_block(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(CryptoError::TooLarge);
        }
        let (key, nonce) = self.send.step();
        key.seal_padded_with(&nonce, PADDED_LENGTH, out, |out| out.extend_from_slice(payload))
    }

    /// Decrypts `block` where it stands and says where in it the payload is.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`] or [`CryptoError::Padding`]; the chain has moved one step all the same, and the next
    /// block can be read.
    pub fn open_block(&mut self, block: &mut [u8]) -> Result<Range<usize>, CryptoError> {
        let (key, nonce) = self.receive.step();
        let padded = key.open_in_place(&nonce, block)?;
        content_range(padded)
    }
}

/// The length of what [`hkdf`] gives.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-SHA512 (RFC 5869).
fn hkdf<const N: usize>(salt: &[u8], secret: &[u8], context: &[u8]) -> [u8; N] {
    const { assert!(N <= 255 * 64, "more than HKDF-SHA512 can give") };
    let mut out = [0; N];
    let filled =
        Salt::new(HKDF_SHA512, salt).extract(secret).expand(&[context], Length(N)).and_then(|key| key.fill(&mut out));
    debug_assert!(filled.is_ok(), "only lengths past the limit fail");
    out
}

/// `N` bytes of `bytes` from `start`; callers stay within.
fn part<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[start..start + N]);
    part
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::protocol::crypto::sha256;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    fn session(case: &Value) -> (SessionId, SharedSecret) {
        (SessionId(array(&case["session_id"])), SharedSecret::from_bytes(array(&case["secret"])))
    }

    #[test]
    fn derivation_is_hkdf_sha512() {
        let vectors = vectors("crypto.json");
        let checked = cases(&vectors["hkdf"], |case| {
            let [salt, secret, expected] = ["salt", "ikm", "okm"].map(|name| bytes(&case[name]));
            let info = case["info"].as_str().expect("text").as_bytes();
            let derived = match expected.len() {
                32 => hkdf::<32>(&salt, &secret, info).to_vec(),
                64 => hkdf::<64>(&salt, &secret, info).to_vec(),
                88 => hkdf::<88>(&salt, &secret, info).to_vec(),
                _ => hkdf::<200>(&salt, &secret, info).to_vec(),
            };
            assert_eq!(derived, expected);
        });
        assert_eq!(checked, 4);
    }

    #[test]
    fn chains_step_as_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        let (session_id, secret) = session(&vectors["sbc_init"]);
        let [sending, receiving] = KeyChain::pair(&session_id, &secret);
        assert_eq!(sending.0, array(&vectors["sbc_init"]["server_snd_chain_key"]));
        assert_eq!(receiving.0, array(&vectors["sbc_init"]["server_rcv_chain_key"]));
        for (mut chain, name) in [(sending, "server_snd"), (receiving, "server_rcv")] {
            let checked = cases(&vectors["sbc_hkdf"][name], |case| {
                assert_eq!(chain.0, array(&case["chain_key"]));
                let (key, nonce) = chain.step();
                assert_eq!(nonce.0, array(&case["nonce"]));
                let same = BoxKey::derive(&array(&case["key"]));
                assert_eq!(key.seal(&nonce, b"the same key"), same.seal(&nonce, b"the same key"));
                assert_eq!(chain.0, array(&case["next_chain_key"]));
            });
            assert_eq!(checked, 5);
        }
    }

    #[test]
    fn blocks_are_those_of_the_reference_in_both_directions() {
        let vectors = vectors("crypto.json");
        let (session_id, secret) = session(&vectors["blocks"]);
        let (server, client) = (BlockKeys::server(&session_id, &secret), BlockKeys::client(&session_id, &secret));
        for (mut sender, mut receiver, name) in
            [(server.clone(), client.clone(), "server_to_client"), (client, server, "client_to_server")]
        {
            let checked = cases(&vectors["blocks"][name], |case| {
                let payload = bytes(&case["payload"]);
                let mut block = Vec::new();
                sender.seal_block(&payload, &mut block).expect("fits");
                assert_eq!(block.len(), BLOCK_SIZE);
                assert_eq!(sha256(&block).as_slice(), bytes(&case["block_sha256"]));
                let range = receiver.open_block(&mut block).expect("decrypts");
                assert_eq!(&block[range], payload);
            });
            assert_eq!(checked, 3);
        }
    }

    #[test]
    fn a_broken_block_costs_one_step_and_the_next_one_is_read() {
        let (session_id, secret) = (SessionId([1; 32]), SharedSecret::from_bytes([2; 32]));
        let mut server = BlockKeys::server(&session_id, &secret);
        let mut client = BlockKeys::client(&session_id, &secret);
        let mut block = Vec::new();
        client.seal_block(b"first", &mut block).expect("fits");
        block[100] ^= 1;
        assert_eq!(server.open_block(&mut block), Err(CryptoError::Decryption));
        block.clear();
        client.seal_block(b"second", &mut block).expect("fits");
        let range = server.open_block(&mut block).expect("decrypts");
        assert_eq!(&block[range], b"second");
    }

    #[test]
    fn the_largest_payload_fits_and_one_more_byte_does_not_move_the_chain() {
        let (session_id, secret) = (SessionId([1; 32]), SharedSecret::from_bytes([2; 32]));
        let mut server = BlockKeys::server(&session_id, &secret);
        let mut client = BlockKeys::client(&session_id, &secret);
        let payload = vec![b'x'; MAX_PAYLOAD + 1];
        let mut block = Vec::new();
        assert_eq!(server.seal_block(&payload, &mut block), Err(CryptoError::TooLarge));
        assert!(block.is_empty());
        server.seal_block(&payload[1..], &mut block).expect("fits");
        let range = client.open_block(&mut block).expect("decrypts");
        assert_eq!(&block[range], &payload[1..]);
    }
}
