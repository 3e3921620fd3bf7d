//! `addresses.json`.

use serde_json::Value;

use super::vectors::{bytes, list, load, text};
use crate::protocol::address::{Host, ServerAddress, ServerAddressWithPassword};
use crate::protocol::encoding::{Decode, Encode};

/// The reference keeps only the low 8 bits of the last part of an IPv4 address; here the text is a domain name.
const WRAPPED_OCTET: &str = "1.2.3.256";

fn kind(host: &Host) -> &'static str {
    match host {
        Host::Ipv4(_) => "ipv4",
        Host::Ipv6(_) => "ipv6",
        Host::Onion(_) => "onion",
        Host::Domain(_) => "domain",
    }
}

fn assert_host(host: &Host, expected: &Value) {
    assert_eq!((kind(host), host.to_string().as_str()), (text(expected, "type"), text(expected, "host")));
}

#[test]
fn addresses_are_those_of_the_reference() {
    let file = load("addresses.json");
    let (mut good, mut bad, mut differing) = (0, 0, 0);
    for case in list(&file, "addresses") {
        let input = text(case, "input");
        let parsed = input.parse::<ServerAddressWithPassword>();
        if case["result"] == "error" {
            assert!(parsed.is_err(), "{input}");
            bad += 1;
        } else if input.ends_with(WRAPPED_OCTET) {
            assert_eq!(parsed.expect(input).address.hosts, [Host::Domain(WRAPPED_OCTET.into())]);
            differing += 1;
        } else {
            check_address(case, &parsed.expect(input));
            assert_eq!(input.parse::<ServerAddress>().is_ok(), case["without_password_type"] == "ok", "{input}");
            good += 1;
        }
    }
    assert_eq!((good, bad, differing), (31, 41, 1));
}

fn check_address(case: &Value, parsed: &ServerAddressWithPassword) {
    let address = &parsed.address;
    assert_eq!(address.hosts.len(), list(case, "hosts").len());
    address.hosts.iter().zip(list(case, "hosts")).for_each(|(host, expected)| assert_host(host, expected));
    assert_eq!(address.port, text(case, "port"));
    assert_eq!(address.fingerprint, bytes(case, "key_hash"));
    assert_eq!(parsed.password.as_ref().map(|password| password.as_str()), case["password"].as_str());
    // Our brackets around an IPv6 address with a port are not in the reference, which can not read back what it prints.
    let canonical = text(case, "canonical").replace("@::1:5223", "@[::1]:5223");
    assert_eq!(parsed.to_string(), canonical);
    assert_eq!(parsed.to_string().parse().as_ref(), Ok(parsed));
    assert_eq!(address.encoded(), bytes(case, "binary"));
    assert_eq!(ServerAddress::decode_all(&bytes(case, "binary")).as_ref(), Ok(address));
}

#[test]
fn hosts_are_those_of_the_reference() {
    let file = load("addresses.json");
    let (mut good, mut bad, mut differing) = (0, 0, 0);
    for case in list(&file, "hosts") {
        let input = text(case, "input_text");
        match input.parse::<Host>() {
            Err(_) => {
                assert_eq!(case["result"], "error", "{input}");
                bad += 1;
            }
            Ok(host) if input == WRAPPED_OCTET => {
                assert_eq!(host, Host::Domain(input.into()));
                differing += 1;
            }
            Ok(host) => {
                assert_host(&host, &case["parsed"]);
                good += 1;
            }
        }
    }
    assert_eq!((good, bad, differing), (18, 8, 1));
}

#[test]
fn ports_that_can_be_connected_to() {
    let port = |text: &str| format!("smp://eA@localhost{text}").parse::<ServerAddress>().expect(text).port_number();
    assert_eq!(port(""), Some(5223));
    assert_eq!(port(":00443"), Some(443));
    assert_eq!(port(":65536"), None);
}

#[test]
fn ipv6_addresses_with_an_ipv4_part_can_be_read_back() {
    let host = "[::ffff:127.0.0.1]".parse::<Host>().expect("an address");
    assert_eq!(host.to_string(), "::ffff:7f00:1");
    assert_eq!(host.to_string().parse(), Ok(host));
}

#[test]
fn a_password_is_shown_in_an_address_but_not_in_its_debug_form() {
    let address: ServerAddressWithPassword = "smp://eA@localhost".parse().expect("an address");
    assert!(format!("{address:?}").contains("localhost"));
    let address: ServerAddressWithPassword = "smp://eA==:hidden@localhost".parse().expect("an address");
    assert!(!format!("{address:?}").contains("hidden"));
    assert_eq!(address.to_string(), "smp://eA==:hidden@localhost");
}
