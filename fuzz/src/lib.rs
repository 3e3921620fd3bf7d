//! What the fuzz targets share: the version of an input, and the properties that every decoder has.
//!
//! A decoder never panics, never takes long (libFuzzer's `-timeout`), never allocates more than a small multiple of its
//! input ([`frugal`]), and what it has read it reads again from what is written of it ([`assert_round_trip`],
//! [`assert_canonical`]).

use std::alloc::System;
use std::fmt::Debug;

use bytes::Bytes;
use smp_server::protocol::transmission::TransmissionParams;
use smp_server::protocol::{SessionId, Version, VersionRange};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that a decoder may allocate for each byte of its input, all allocations added up. Lists cost most: an element
/// of one byte may become a value of some tens, and a vector that grows is allocated anew at each doubling.
const FACTOR: usize = 128;

/// Bytes that a decoder may allocate whatever its input, if nothing else is said.
pub const ALLOWANCE: usize = 4096;

/// The session of the test vectors, so that those of version 6, which carry its ID, get further than that.
const SESSION_ID: SessionId = SessionId([
    0x1a, 0x1b, 0xea, 0xa8, 0x73, 0x0d, 0xe9, 0xf6, 0x44, 0x26, 0x40, 0x46, 0xab, 0x92, 0xd0, 0x6f, 0x3a, 0x04, 0x28,
    0xba, 0xb0, 0xd0, 0x1c, 0xee, 0x4b, 0xc4, 0x58, 0xc7, 0x67, 0x39, 0x93, 0xab,
]);

/// Splits `data` into the version that its first byte chooses and the input.
pub fn versioned(data: &[u8]) -> Option<(Version, Bytes)> {
    let (first, rest) = data.split_first()?;
    let (low, high) = (VersionRange::SUPPORTED.min().0, VersionRange::SUPPORTED.max().0);
    Some((Version(low + u16::from(*first) % (high - low + 1)), Bytes::copy_from_slice(rest)))
}

/// The same, with the session in which the input arrives.
pub fn in_session(data: &[u8]) -> Option<(TransmissionParams, Bytes)> {
    versioned(data).map(|(version, input)| (TransmissionParams { version, session_id: SESSION_ID }, input))
}

/// Runs `decode` on `input`, and fails if it allocates more than a small multiple of the input and the allowance.
pub fn frugal<T>(input: &Bytes, allowance: usize, decode: impl FnOnce(&Bytes) -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let value = decode(input);
    let allocated = region.change().bytes_allocated;
    let allowed = FACTOR * input.len() + allowance;
    assert!(allocated <= allowed, "{allocated} bytes allocated for {} bytes of input", input.len());
    value
}

/// Decodes `input`; what was read has to be the same when it is written and read again.
pub fn assert_round_trip<T: PartialEq + Debug, E: Debug>(
    input: &Bytes,
    decode: impl Fn(&Bytes) -> Result<T, E>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(value) = frugal(input, ALLOWANCE, &decode) else { return };
    let again = decode(&Bytes::from(encode(&value))).expect("what was written can be read");
    assert_eq!(value, again);
}

/// The same where reading is more lenient than writing, or an older version can not carry all of the value: what was
/// written has to be the same when it is read and written again.
pub fn assert_canonical<T, E: Debug>(
    input: &Bytes,
    decode: impl Fn(&Bytes) -> Result<T, E>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(value) = frugal(input, ALLOWANCE, &decode) else { return };
    let written = Bytes::from(encode(&value));
    let again = decode(&written).expect("what was written can be read");
    assert_eq!(written, encode(&again));
}

/// What `write` appends.
pub fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}
