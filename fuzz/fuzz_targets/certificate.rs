//! Certificates, X.509 in DER, and session keys signed with them.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::certificate::{CertificateChainKey, certificate_key};
use smp_server::protocol::encoding::{Decode, Encode};
use smp_server::protocol::keys::PublicAuthKey;
use smp_server_fuzz::assert_round_trip;

fuzz_target!(|data: &[u8]| {
    let input = Bytes::copy_from_slice(data);
    assert_round_trip(&input, CertificateChainKey::decode_all, Encode::encoded);
    // A key to verify with, whatever the input is.
    let key = certificate_key(data).unwrap_or(PublicAuthKey::Ed25519([1; 32]));
    let signed = CertificateChainKey { chain: Vec::new(), signed_key: input };
    assert!(signed.verified_key(&key).is_err(), "nobody can forge a signature");
});
