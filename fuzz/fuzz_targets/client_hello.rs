//! The client's hello, with and without a service.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::encoding::{Decode, Encode, Reader};
use smp_server::protocol::handshake::ClientHello;
use smp_server_fuzz::assert_round_trip;

fuzz_target!(|data: &[u8]| {
    // What follows is ignored: extensions come that way.
    let input = Bytes::copy_from_slice(data);
    assert_round_trip(&input, |hello| ClientHello::decode(&mut Reader::new(hello)), Encode::encoded);
});
