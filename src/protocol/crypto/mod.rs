//! Cryptography of the protocol, by libraries: nothing here implements a primitive.
//!
//! Boxes ([`BoxKey`]), key agreement ([`SecretDhKey`]), signatures ([`SigningKey`]), authorization of commands
//! ([`verify_authorization`]), encryption of blocks ([`BlockKeys`]), digests and random bytes. Secrets are wiped when
//! dropped, compared in constant time, and have no `Debug` that would show them. Nothing here may log, do I/O, or let a
//! secret's value decide how long something takes.
//!
//! # Libraries
//! Chosen by measurement (`cargo bench --bench crypto` repeats it); microseconds on one core of a small cloud machine:
//!
//! LIBRARY_TABLE

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

pub use authorization::{PrivateAuthKey, verify_authorization};
pub use block_keys::{BlockKeys, KeyChain};
pub use dh::{DhKeyPair, SecretDhKey, SharedSecret};
pub use digest::{sender_id_for, sha256, sha512};
pub use nonce::Nonce;
pub use padding::pad_with;
pub use random::{random_array, random_message_id, random_queue_id, random_service_id};
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
