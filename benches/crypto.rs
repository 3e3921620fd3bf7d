//! How long the cryptography of the protocol takes, and what other libraries at hand would need:
//! `cargo bench --bench crypto`.
//!
//! A plain program without a framework: each line is the best of several rounds, in microseconds, so that what else the
//! machine does matters little.

use std::hint::black_box;
use std::time::{Duration, Instant};

use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};
use smp_server::protocol::crypto::{
    BlockKeys, BoxKey, CryptoError, DhKeyPair, Nonce, PrivateAuthKey, SecretDhKey, SharedSecret, SigningKey, sha512,
    verify_authorization,
};
use smp_server::protocol::ids::{CorrelationId, SessionId};
use smp_server::protocol::keys::PublicAuthKey;

/// Rounds of which the best counts.
const ROUNDS: u32 = 7;
/// How long a round takes about.
const ROUND: Duration = Duration::from_millis(30);
/// Content of a full block, in bytes.
const CONTENT: usize = 16_368;
/// Length of what is authorized by a typical command other than SEND, in bytes.
const AUTHORIZED: usize = 120;

fn main() -> Result<(), CryptoError> {
    boxes();
    blocks();
    key_agreement();
    authorizations()?;
    println!("\ndigests");
    let content = vec![b'#'; CONTENT];
    measure("SHA-512 of 16 KiB, ring", || sha512(black_box(&content)));
    Ok(())
}

fn boxes() {
    println!("boxes of 16 KiB");
    let (key, nonce) = (BoxKey::derive(&[7; 32]), Nonce([9; 24]));
    let content = vec![b'#'; CONTENT];
    let sealed = key.seal(&nonce, &content);
    let mut buffer = Vec::with_capacity(CONTENT + 18);
    measure("seal in the caller's buffer, dryoc", || {
        buffer.clear();
        key.seal_padded_with(&nonce, CONTENT, &mut buffer, |out| out.extend_from_slice(&content[2..]))
    });
    measure("seal into a new buffer, dryoc", || key.seal(&nonce, black_box(&content)));
    measure("open into a new buffer, dryoc", || key.open(&nonce, black_box(&sealed)));
    let mut buffer = content.clone();
    measure("seal in place, RustCrypto", || {
        let mut cipher = XSalsa20::new(&[7; 32].into(), &nonce.0.into());
        let mut mac_key = [0; 32];
        cipher.apply_keystream(&mut mac_key);
        cipher.apply_keystream(&mut buffer);
        Poly1305::new(&mac_key.into()).compute_unpadded(&buffer)
    });
}

fn blocks() {
    println!("\nblocks");
    let session = (SessionId([1; 32]), SharedSecret::from_bytes([2; 32]));
    let mut server = BlockKeys::server(&session.0, &session.1);
    let mut block = Vec::with_capacity(16_384);
    measure("encrypt a block, key chain included", || {
        block.clear();
        server.seal_block(black_box(b"payload"), &mut block)
    });
}

fn key_agreement() {
    println!("\nX25519");
    let (own, peer) = (SecretDhKey::generate(), DhKeyPair::generate());
    measure("agree a secret, dryoc", || own.agree(black_box(&peer.public)));
    measure("public key of a secret one, dryoc", || black_box(&own).public_key());
    measure("agree a secret, OpenSSL", || agree_by_openssl(&[5; 32], &peer.public.0));
}

fn agree_by_openssl(own: &[u8; 32], peer: &[u8; 32]) -> Result<Vec<u8>, openssl::error::ErrorStack> {
    use openssl::pkey::{Id, PKey};
    let own = PKey::private_key_from_raw_bytes(own, Id::X25519)?;
    let peer = PKey::public_key_from_raw_bytes(peer, Id::X25519)?;
    let mut deriver = openssl::derive::Deriver::new(&own)?;
    deriver.set_peer(&peer)?;
    deriver.derive_to_vec()
}

fn authorizations() -> Result<(), CryptoError> {
    println!("\nauthorization of a command");
    let session = DhKeyPair::generate();
    let id = CorrelationId(vec![3; 24].into());
    let authorized = [4; AUTHORIZED];
    let keys = [
        ("Ed25519, dalek", PrivateAuthKey::Signing(SigningKey::generate_ed25519())),
        ("Ed448, OpenSSL", PrivateAuthKey::Signing(SigningKey::generate_ed448()?)),
        ("X25519 authenticator, dryoc", PrivateAuthKey::Dh(SecretDhKey::generate())),
    ];
    for (name, key) in keys {
        let public = key.public_key()?;
        let authorization = key.authorize(&authorized, &id, Some(&session.public))?;
        let verify = |key: Option<&PublicAuthKey>| {
            verify_authorization(key, &authorization, &[&authorized], &id, &session.secret)
        };
        measure(&format!("authorize, {name}"), || key.authorize(&authorized, &id, Some(&session.public)));
        measure(&format!("verify, {name}"), || verify(black_box(Some(&public))));
        measure(&format!("refuse without a queue, {name}"), || verify(black_box(None)));
        // These three have to be alike, or the time of a refusal would tell whether a queue exists.
        let (same_kind, other_kind) = (another_key(&public)?, another_kind(&public)?);
        measure(&format!("refuse by a key of the kind, {name}"), || verify(black_box(Some(&same_kind))));
        measure(&format!("refuse by another kind, {name}"), || verify(black_box(Some(&other_kind))));
        if let PublicAuthKey::Ed25519(public) = &public {
            let public = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public);
            measure("verify, Ed25519, ring", || public.verify(&authorized, authorization.as_bytes()));
        }
    }
    Ok(())
}

/// Another key of the same kind.
fn another_key(key: &PublicAuthKey) -> Result<PublicAuthKey, CryptoError> {
    match key {
        PublicAuthKey::Ed25519(_) => SigningKey::generate_ed25519().public_key(),
        PublicAuthKey::Ed448(_) => SigningKey::generate_ed448()?.public_key(),
        PublicAuthKey::X25519(_) => Ok(PublicAuthKey::X25519(SecretDhKey::generate().public_key())),
    }
}

/// A key of another kind.
fn another_kind(key: &PublicAuthKey) -> Result<PublicAuthKey, CryptoError> {
    match key {
        PublicAuthKey::Ed25519(_) => SigningKey::generate_ed448()?.public_key(),
        _ => SigningKey::generate_ed25519().public_key(),
    }
}

/// Prints how long `work` takes.
fn measure<T>(name: &str, mut work: impl FnMut() -> T) {
    let started = Instant::now();
    black_box(work());
    let once = started.elapsed().max(Duration::from_nanos(20));
    let times = u32::try_from(ROUND.as_nanos() / once.as_nanos()).unwrap_or(u32::MAX).clamp(1, 1_000_000);
    let best = (0..ROUNDS).map(|_| round(times, &mut work)).min().unwrap_or_default();
    println!("  {name:45} {:9.2} us", best.as_secs_f64() * 1e6 / f64::from(times));
}

/// How long `work` takes that many times.
fn round<T>(times: u32, work: &mut impl FnMut() -> T) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        black_box(work());
    }
    started.elapsed()
}
