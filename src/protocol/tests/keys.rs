//! Keys of `crypto.json`, and its padding.

use bytes::Bytes;

use super::vectors::{bytes, list, load, number, optional_bytes, text};
use crate::protocol::block::{TooLarge, pad};
use crate::protocol::crypto::sha256;
use crate::protocol::encoding::{Decode, Encode};
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};

#[test]
fn keys_of_every_algorithm_are_read_and_written() {
    let mut keys = 0;
    for file in ["crypto.json", "commands.json", "responses.json", "transmissions.json"] {
        for key in load(file)["keys"].as_object().expect("keys").values() {
            let der = bytes(key, "public_der");
            let Some(raw) = optional_bytes(key, "public_raw") else { continue };
            match text(key, "alg") {
                "X448" => assert!(PublicAuthKey::from_der(&der).is_err()),
                algorithm => check_auth_key(algorithm, &raw, &der),
            }
            keys += 1;
        }
    }
    assert_eq!(keys, 23);
}

fn check_auth_key(algorithm: &str, raw: &[u8], der: &Bytes) {
    let key = PublicAuthKey::from_der(der).expect("a key");
    let same = match &key {
        PublicAuthKey::Ed25519(key) => algorithm == "Ed25519" && key[..] == *raw,
        PublicAuthKey::Ed448(key) => algorithm == "Ed448" && key[..] == *raw,
        PublicAuthKey::X25519(key) => algorithm == "X25519" && key.0[..] == *raw,
    };
    assert!(same, "{algorithm}");
    assert_eq!(key.to_der(), *der);
    assert_eq!(PublicAuthKey::decode_all(&Bytes::from(key.encoded())), Ok(key));
    assert_eq!(PublicDhKey::from_der(der).is_ok(), algorithm == "X25519");
}

#[test]
fn anything_but_the_one_form_of_a_key_is_refused() {
    let der = PublicDhKey([7; 32]).to_der();
    assert_eq!(der.len(), PublicDhKey::DER_LENGTH);
    for wrong in [&der[..43], &[&der[..], b"x"].concat(), b"", &[0; 44]] {
        assert!(PublicAuthKey::from_der(wrong).is_err());
    }
}

#[test]
fn padding_is_that_of_the_reference() {
    let file = load("crypto.json");
    let mut cases = 0;
    for case in list(&file, "pad") {
        let mut padded = Vec::new();
        let result = pad(&bytes(case, "message"), number(case, "padded_length"), &mut padded);
        if case["error"].is_string() {
            assert_eq!((result, padded.len()), (Err(TooLarge), 0));
        } else {
            assert_eq!((result, padded.len()), (Ok(()), number(case, "padded_length")));
            let expected = optional_bytes(case, "padded").map(|padded| sha256(&padded).to_vec());
            assert_eq!(sha256(&padded).to_vec(), expected.unwrap_or_else(|| bytes(case, "padded_sha256").to_vec()));
        }
        cases += 1;
    }
    assert_eq!(cases, 10);
}
