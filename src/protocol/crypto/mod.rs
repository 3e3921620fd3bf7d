//! Cryptography of the protocol, by libraries: nothing here implements a primitive.
//!
//! Boxes ([`BoxKey`]), key agreement ([`SecretDhKey`]), signatures ([`SigningKey`]), authorization of commands
//! ([`verify_authorization`]), encryption of blocks ([`BlockKeys`]), digests and random bytes. Secrets are wiped when
//! dropped, compared in constant time, and have no `Debug` that would show them. Nothing here may log, do I/O, or let a
//! secret's value decide how long something takes.
//!
//! # Libraries
//! Chosen by measurement, in microseconds on one busy core; `cargo bench --bench crypto` repeats what needs no further
//! dependency. First the chosen one:
//!
//! | operation | libraries |
//! |---|---|
//! | XSalsa20-Poly1305 of 16 KiB | dryoc 2: 10, in the caller's buffer; libsodium 19, into a new one; RustCrypto 53 |
//! | X25519 agreement / key pair | dryoc 2: 56 / 31; libsodium 56 / 25; OpenSSL 64; dalek 86 / 27 |
//! | Ed25519 verification | ed25519-dalek 3: 62 (33 in a batch of 64); dryoc 63; ring 74; libsodium 81; OpenSSL 185 |
//! | Ed448 verification | OpenSSL 3: 358; the Rust implementation is a pre-release and took 6 times as long |
//! | a step of a key chain (HKDF-SHA512) | ring: 3.8; dryoc 5.2; libsodium 6.5 |
//! | SHA-512 of 16 KiB | ring: 42; libsodium 62 |
//!
//! dryoc is young: tests hold it against the reference's bytes and, by random inputs, against RustCrypto and OpenSSL.

mod authorization;
mod block_keys;
mod dh;
mod digest;
mod nonce;
mod padding;
mod random;
mod secret_box;
mod signature;
mod signing_key;
#[cfg(test)]
pub(crate) mod test_vectors;

use thiserror::Error;

#[cfg(test)]
pub(crate) use authorization::work;
pub use authorization::{PrivateAuthKey, verify_authorization};
pub use block_keys::{BlockKeys, KeyChain};
pub use dh::{DhKeyPair, SecretDhKey, SharedSecret};
pub use digest::{sender_id_for, sha256, sha512};
pub use nonce::Nonce;
pub use padding::{content_range, pad_with};
pub use random::{random_array, random_correlation_id, random_message_id, random_queue_id, random_service_id};
pub use secret_box::{BOX_OVERHEAD, BoxKey};
pub use signature::verify_signature;
pub use signing_key::SigningKey;

/// Why a cryptographic operation was refused. Carries no detail on purpose: a peer must not learn where it failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CryptoError {
    /// The box was not made with this key and nonce, or is shorter than its authentication code.
    #[error("decryption failed")]
    Decryption,
    /// The content does not fit the padded length.
    #[error("content is too large for its padding")]
    TooLarge,
    /// The padded content says it is longer than it is.
    #[error("padding is malformed")]
    Padding,
    /// A public key that agrees the same secret with everybody (a point of low order), or is no key at all.
    #[error("the key is not usable")]
    Key,
    /// The library refused to sign.
    #[error("signing failed")]
    Signing,
}
