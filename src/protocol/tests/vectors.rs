//! Reading of the vector files.

use bytes::Bytes;
use serde_json::Value;

use crate::protocol::version::Version;

/// A file of `tests/vectors`.
pub fn load(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("vectors are JSON")
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is not a list"))
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is not a text in {value}"))
}

pub fn number(value: &Value, key: &str) -> usize {
    usize::try_from(value[key].as_u64().unwrap_or_else(|| panic!("{key} is not a number"))).expect("fits")
}

pub fn bytes(value: &Value, key: &str) -> Bytes {
    Bytes::from(unhex(text(value, key)))
}

pub fn optional_bytes(value: &Value, key: &str) -> Option<Bytes> {
    value[key].as_str().map(|hex| Bytes::from(unhex(hex)))
}

pub fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

pub fn version(value: &Value) -> Version {
    Version(u16::try_from(number(value, "version")).expect("a version"))
}

/// All versions that a case holds for.
pub fn versions(case: &Value) -> impl Iterator<Item = Version> {
    let bound = |key| u16::try_from(number(case, key)).expect("a version");
    (bound("from")..=bound("to")).map(Version)
}

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().to_vec()
}
