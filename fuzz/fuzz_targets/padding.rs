//! Padded plaintexts: of blocks and of everything that is encrypted.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::block::{pad, unpad};
use smp_server_fuzz::{ALLOWANCE, frugal, written};

fuzz_target!(|data: &[u8]| {
    let padded = Bytes::copy_from_slice(data);
    let Ok(content) = frugal(&padded, ALLOWANCE, unpad) else { return };
    let again = Bytes::from(written(|out| pad(&content, padded.len(), out).expect("it was that long")));
    assert_eq!(unpad(&again), Ok(content));
});
