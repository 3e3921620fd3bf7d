//! Reads the reference's test vectors.

use std::path::Path;

use serde_json::Value;

/// The whole file `name` of the vectors.
pub(crate) fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    serde_json::from_slice(&std::fs::read(path).expect("the vectors")).expect("JSON")
}

/// The bytes of a hex string.
pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// The bytes of a hex string.
pub(crate) fn bytes(hex: &Value) -> Vec<u8> {
    unhex(hex.as_str().expect("a hex string"))
}

/// The bytes of a hex string of known length.
pub(crate) fn array<const N: usize>(hex: &Value) -> [u8; N] {
    bytes(hex).try_into().expect("the length of an array")
}

/// Checks every element of a list and says how many there were.
pub(crate) fn cases(list: &Value, check: impl FnMut(&Value)) -> usize {
    let list = list.as_array().expect("a list");
    list.iter().for_each(check);
    list.len()
}
