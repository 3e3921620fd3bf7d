//! Blocks encrypted inside TLS: whatever arrives, opening it only says yes or no, and costs one step of the key chain.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smp_server::protocol::SessionId;
use smp_server::protocol::block::MAX_PAYLOAD;
use smp_server::protocol::crypto::{BlockKeys, SharedSecret};

fuzz_target!(|data: &[u8]| {
    let secret = SharedSecret::from_bytes([7; 32]);
    let session_id = SessionId([9; 32]);
    let (mut server, mut client) = (BlockKeys::server(&session_id, &secret), BlockKeys::client(&session_id, &secret));

    let mut hostile = data.to_vec();
    assert!(server.open_block(&mut hostile).is_err(), "nobody can forge a block");

    // The chain of the other side makes the same step, and the next block is read.
    let payload = &data[..data.len().min(MAX_PAYLOAD)];
    let mut lost = Vec::new();
    client.seal_block(payload, &mut lost).expect("it fits");
    let mut block = Vec::new();
    client.seal_block(payload, &mut block).expect("it fits");
    let content = server.open_block(&mut block).expect("the chains are in step");
    assert_eq!(&block[content], payload);
});
