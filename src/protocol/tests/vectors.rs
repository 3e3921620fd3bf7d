//! Fields of the vector files.

use bytes::Bytes;
use serde_json::Value;

pub(crate) use crate::protocol::crypto::test_vectors::{unhex, vectors as load};
use crate::protocol::version::Version;

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

pub fn version(value: &Value) -> Version {
    Version(u16::try_from(number(value, "version")).expect("a version"))
}

/// All versions that a case holds for.
pub fn versions(case: &Value) -> impl Iterator<Item = Version> {
    let bound = |key| u16::try_from(number(case, key)).expect("a version");
    (bound("from")..=bound("to")).map(Version)
}
