//! Addresses of servers, as text and as `PRXY` carries them, and names to resolve.
#![no_main]

use std::str;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::protocol::address::{Host, NameDomain, ServerAddress, ServerAddressWithPassword};
use smp_server::protocol::encoding::{Decode, Encode};
use smp_server_fuzz::assert_round_trip;

fuzz_target!(|data: &[u8]| {
    let input = Bytes::copy_from_slice(data);
    assert_round_trip(&input, ServerAddress::decode_all, Encode::encoded);
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(address) = text.parse::<ServerAddressWithPassword>() {
        // An IPv6 address is written without brackets, as the reference does, and swallows a port behind it.
        let ambiguous = address.address.hosts.iter().any(|host| matches!(host, Host::Ipv6(_)));
        assert!(ambiguous || address.to_string().parse() == Ok(address));
    }
    if let Ok(domain) = NameDomain::parse(text) {
        assert_eq!(NameDomain::parse(domain.as_str()), Ok(domain.clone()));
    }
});
