//! Payloads of blocks: as a server reads commands from them, and as a client reads responses.
#![no_main]

use std::mem::size_of;

use libfuzzer_sys::fuzz_target;
use smp_server::protocol::block::{BatchWriter, MAX_PAYLOAD, MAX_TRANSMISSIONS, split_batch};
use smp_server::protocol::transmission::{
    ClientTransmission, Refused, ServerTransmission, decode_commands, decode_responses,
};
use smp_server_fuzz::{ALLOWANCE, frugal, in_session};

/// A block of 255 empty transmissions is 511 bytes and 255 results.
const RESULTS: usize = ALLOWANCE
    + MAX_TRANSMISSIONS * (size_of::<Result<ClientTransmission, Refused>>() + size_of::<ServerTransmission>());

fuzz_target!(|data: &[u8]| {
    let Some((params, payload)) = in_session(data) else { return };
    let commands = frugal(&payload, RESULTS, |payload| decode_commands(&params, payload));
    let responses = frugal(&payload, RESULTS, |payload| decode_responses(&params, payload));
    assert!((1..=MAX_TRANSMISSIONS).contains(&commands.len()));
    assert_eq!(commands.len(), responses.len());

    let Ok(transmissions) = split_batch(&payload) else { return };
    if payload.len() > MAX_PAYLOAD {
        return;
    }
    let mut writer = BatchWriter::new();
    for transmission in &transmissions {
        writer.push(|out| out.extend_from_slice(transmission)).expect("it came in a block");
    }
    assert_eq!(writer.finish(), [payload.to_vec()], "what was split is put together again");
});
