//! `responses.json`.

use bytes::Bytes;
use serde_json::Value;

use super::fields;
use super::vectors::{bytes, list, load, text, version, versions};
use crate::protocol::error::{
    BlockingInfo, BlockingReason, BrokerError, ClientNotice, ErrorType, NetworkError, ProxyError,
};
use crate::protocol::response::Response;
use crate::protocol::version::Version;

pub fn encoded(response: &Response, version: Version) -> Bytes {
    let mut out = Vec::new();
    response.encode(version, &mut out);
    Bytes::from(out)
}

/// Compares encodings byte for byte, and JSON as JSON.
fn assert_same(encoded: &Bytes, expected: &Bytes, name: &str) {
    for prefix in [&b"INFO "[..], b"RNAME "] {
        if let (Some(json), Some(expected)) = (encoded.strip_prefix(prefix), expected.strip_prefix(prefix)) {
            let parse = |json: &[u8]| serde_json::from_slice::<Value>(json).expect("JSON");
            assert_eq!(parse(json), parse(expected), "{name}");
            return;
        }
    }
    assert_eq!(encoded, expected, "{name}");
}

#[test]
fn every_response_is_encoded_and_read_as_the_reference_does() {
    let file = load("responses.json");
    let (mut cases, mut checks, mut built) = (0, 0, 0);
    for case in list(&file, "cases") {
        let expected = bytes(case, "encoded");
        let response = fields::response(text(case, "message"), &case["fields"]);
        built += usize::from(response.is_some());
        for version in versions(case) {
            check_case(case, version, response.as_ref(), &expected);
            checks += 1;
        }
        cases += 1;
    }
    assert_eq!((cases, checks, built), (142, 1243, 62));
}

fn check_case(case: &Value, version: Version, response: Option<&Response>, expected: &Bytes) {
    let name = format!("{} in version {version:?}", text(case, "name"));
    let read = Response::decode(version, expected);
    if case["reference_can_not_decode"] == true {
        assert!(read.is_err(), "{name}");
        return;
    }
    let read = read.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert_same(&encoded(&read, version), expected, &name);
    if let Some(response) = response {
        assert_eq!(encoded(response, version), expected, "{name}");
    }
    if case["lossy"].is_boolean() {
        assert_same(&encoded(&read, Version::NAMES), &bytes(case, "decoded_as_v20"), &name);
    } else if let Some(response) = response {
        assert!(read == *response, "{name}");
    }
}

#[test]
fn responses_are_read_as_leniently_and_as_strictly_as_the_reference_does() {
    let file = load("responses.json");
    let (mut good, mut bad) = (0, 0);
    for case in list(&file, "decode") {
        let version = version(case);
        match (text(case, "result"), Response::decode(version, &bytes(case, "input"))) {
            ("ok", Ok(response)) => {
                assert_same(&encoded(&response, version), &bytes(case, "reencoded"), &case.to_string());
                good += 1;
            }
            ("error", Err(_)) => bad += 1,
            (_, result) => panic!("{case}: {result:?}"),
        }
    }
    assert_eq!((good, bad), (15, 12));
}

fn blocked(reason: BlockingReason, notice: Option<ClientNotice>) -> ErrorType {
    ErrorType::Blocked(BlockingInfo { reason, notice })
}

#[test]
fn old_clients_learn_less_of_a_blocking_but_only_at_top_level() {
    let error = blocked(BlockingReason::Content, Some(ClientNotice { ttl: Some(3600) }));
    let at = |version| encoded(&Response::Err(error.clone()), Version(version));
    assert_eq!(at(11), "ERR AUTH");
    assert_eq!(at(12), "ERR BLOCKED reason=content");
    assert_eq!(at(17), "ERR BLOCKED reason=content");
    assert_eq!(at(18), "ERR BLOCKED reason=content,notice={\"ttl\":3600}");
    let nested = Response::Err(ErrorType::Proxy(ProxyError::Protocol(Box::new(error.clone()))));
    assert_eq!(encoded(&nested, Version(8)), "ERR PROXY PROTOCOL BLOCKED reason=content,notice={\"ttl\":3600}");
}

#[test]
fn blocking_without_end_has_an_empty_notice() {
    let error = blocked(BlockingReason::Spam, Some(ClientNotice { ttl: None }));
    assert_eq!(encoded(&Response::Err(error), Version(18)), "ERR BLOCKED reason=spam,notice={}");
    assert_eq!(
        BlockingInfo::from_text("reason=spam,notice={}"),
        Ok(BlockingInfo { reason: BlockingReason::Spam, notice: Some(ClientNotice { ttl: None }) })
    );
}

fn broker(error: BrokerError) -> Response {
    Response::Err(ErrorType::Proxy(ProxyError::Broker(error)))
}

#[test]
fn details_of_network_errors_are_read_but_not_sent() {
    for error in [NetworkError::Connect("x".into()), NetworkError::UnknownCa, NetworkError::Timeout] {
        assert_eq!(encoded(&broker(BrokerError::Network(error)), Version(20)), "ERR PROXY BROKER NETWORK");
    }
    let read = Response::decode(Version(20), &Bytes::from_static(b"ERR PROXY BROKER NETWORK TLS \x03abc"));
    assert_eq!(read, Ok(broker(BrokerError::Network(NetworkError::Tls("abc".into())))));
}

#[test]
fn texts_too_long_for_their_length_are_cut() {
    let cut = encoded(&broker(BrokerError::Unexpected("x".repeat(256))), Version(20));
    assert_eq!(cut, encoded(&broker(BrokerError::Unexpected("x".repeat(255))), Version(20)));
    assert!(Response::decode(Version(20), &cut).is_ok());
    let cut = encoded(&broker(BrokerError::Response("a€b".into())), Version(20));
    assert_eq!(cut, &b"ERR PROXY BROKER RESPONSE \x03a?b"[..]);
}

#[test]
fn errors_nested_too_deep_are_refused() {
    let nested = |depth: usize| Bytes::from(format!("ERR {}AUTH", "PROXY PROTOCOL ".repeat(depth)));
    assert!(Response::decode(Version(20), &nested(16)).is_ok());
    assert!(Response::decode(Version(20), &nested(17)).is_err());
    assert!(Response::decode(Version(20), &nested(100_000)).is_err());
}

#[test]
fn a_resolved_name_is_a_json_object() {
    for (json, good) in [("{}", true), (r#"{"na\u006de":[{}]}"#, true), ("[]", false), ("{", false), ("", false)] {
        assert_eq!(Response::decode(Version(20), &Bytes::from(format!("RNAME {json}"))).is_ok(), good, "{json}");
    }
}
