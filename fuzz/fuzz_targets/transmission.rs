//! Single transmissions, as a server reads them, and written as a client does.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::transmission::{ClientTransmission, TransmissionParams, decode_command, encode_command};
use smp_server_fuzz::{assert_canonical, in_session, written};

fuzz_target!(|data: &[u8]| {
    let Some((params, input)) = in_session(data) else { return };
    assert_canonical(
        &input,
        |transmission: &Bytes| decode_command(&params, transmission),
        |transmission| encode(&params, transmission),
    );
});

fn encode(params: &TransmissionParams, transmission: &ClientTransmission) -> Vec<u8> {
    let ClientTransmission { authorization, service_signature, correlation_id, entity_id, command, .. } = transmission;
    let authorize = |_: &[u8]| (authorization.clone(), *service_signature);
    written(|out| encode_command(params, correlation_id, entity_id, command, authorize, out))
}
