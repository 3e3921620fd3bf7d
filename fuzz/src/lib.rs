//! What the fuzz targets share: the version of an input, and the two properties that every decoder has.
//!
//! A decoder never panics, and never takes long (libFuzzer's own `-timeout`), never allocates more than a small multiple
//! of its input ([`frugal`]), and what it has read it reads again from what it writes ([`assert_round_trip`]).

use std::alloc::System;
use std::fmt::Debug;

use bytes::Bytes;
use smp_server::protocol::{Version, VersionRange};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that a decoder may allocate for each byte of its input, all allocations added up. Lists cost most: an element
/// of one byte may become a value of some tens, and a vector that grows is allocated anew at each doubling.
const FACTOR: usize = 128;

/// Bytes that a decoder may allocate besides.
const ALLOWANCE: usize = 4096;

/// Splits `data` into the version that its first byte chooses and the input.
pub fn versioned(data: &[u8]) -> Option<(Version, Bytes)> {
    let (first, rest) = data.split_first()?;
    let (low, high) = (VersionRange::SUPPORTED.min().0, VersionRange::SUPPORTED.max().0);
    Some((Version(low + u16::from(*first) % (high - low + 1)), Bytes::copy_from_slice(rest)))
}

/// Runs `decode` on `input`, and fails if it allocates more than a small multiple of the input.
pub fn frugal<T>(input: &Bytes, decode: impl FnOnce(&Bytes) -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let value = decode(input);
    let allocated = region.change().bytes_allocated;
    let allowed = FACTOR * input.len() + ALLOWANCE;
    assert!(allocated <= allowed, "{allocated} bytes allocated for {} bytes of input", input.len());
    value
}

/// Decodes `input`; what was read has to be the same when it is written and read again.
pub fn assert_round_trip<T: PartialEq + Debug, E: Debug>(
    input: &Bytes,
    decode: impl Fn(&Bytes) -> Result<T, E>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(value) = frugal(input, &decode) else { return };
    let encoded = Bytes::from(encode(&value));
    let again = decode(&encoded).expect("what was written can be read");
    assert_eq!(value, again);
}
