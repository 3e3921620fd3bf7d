//! Public keys in X.509 DER: of queues and of secrets.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::keys::{PublicAuthKey, PublicDhKey};
use smp_server_fuzz::assert_round_trip;

fuzz_target!(|data: &[u8]| {
    let input = Bytes::copy_from_slice(data);
    assert_round_trip(&input, |der| PublicAuthKey::from_der(der), PublicAuthKey::to_der);
    assert_round_trip(&input, |der| PublicDhKey::from_der(der), PublicDhKey::to_der);
});
