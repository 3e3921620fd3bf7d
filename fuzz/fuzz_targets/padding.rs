//! Padded plaintexts: of blocks and of everything that is encrypted.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::block::pad;
use smp_server::protocol::crypto::content_range;
use smp_server_fuzz::{ALLOWANCE, frugal, written};

fuzz_target!(|data: &[u8]| {
    let padded = Bytes::copy_from_slice(data);
    let Ok(content) = frugal(&padded, ALLOWANCE, |padded| content_range(padded)) else { return };
    let again = written(|out| pad(&padded[content.clone()], padded.len(), out).expect("it was that long"));
    assert_eq!(content_range(&again), Ok(content.clone()));
    assert_eq!(again[content.clone()], padded[content]);
});
