//! `transmissions.json`.

use bytes::Bytes;
use serde_json::Value;

use super::vectors::{bytes, list, load, number, optional_bytes, text, version};
use crate::protocol::block::{BatchWriter, MAX_PAYLOAD, MAX_TRANSMISSIONS, TooLarge, split_batch};
use crate::protocol::command::Command;
use crate::protocol::crypto::sha256;
use crate::protocol::encoding::Encode;
use crate::protocol::ids::{CorrelationId, EntityId, SessionId};
use crate::protocol::response::Response;
use crate::protocol::transmission::{
    Authorization, ClientTransmission, Refused, TransmissionParams, decode_commands, decode_responses, encode_command,
    encode_response,
};

fn params(case: &Value) -> TransmissionParams {
    let session_id = SessionId::from_slice(&bytes(case, "session_id")).expect("32 bytes");
    TransmissionParams { version: version(case), session_id }
}

fn ids(case: &Value) -> (CorrelationId, EntityId) {
    (CorrelationId(bytes(case, "corr_id")), EntityId(bytes(case, "entity_id")))
}

fn payload_of(transmission: &[u8]) -> Vec<u8> {
    let mut batch = BatchWriter::new();
    batch.push(|out| out.extend_from_slice(transmission)).expect("fits");
    batch.finish().remove(0)
}

#[test]
fn clients_send_commands_as_the_reference_does() {
    let file = load("transmissions.json");
    let mut cases = 0;
    for case in list(&file, "commands") {
        let params = params(case);
        let (correlation_id, entity_id) = ids(case);
        let command = Command::decode(params.version, &bytes(case, "command")).expect("a command");
        let authorize = |authorized: &[u8]| {
            assert_eq!(authorized, bytes(case, "authorized"));
            let signature = optional_bytes(case, "service_signature").map(|bytes| bytes[..].try_into().expect("64"));
            (Authorization::from_bytes(&bytes(case, "authorization")).expect("an authorization"), signature)
        };
        let mut out = Vec::new();
        encode_command(&params, &correlation_id, &entity_id, &command, authorize, &mut out);
        assert_eq!(out, bytes(case, "transmission"), "{}", text(case, "name"));
        assert_eq!(payload_of(&out), bytes(case, "block_payload"), "{}", text(case, "name"));
        check_server_results(&params, case, "decoded_by_server");
        cases += 1;
    }
    assert_eq!(cases, 33);
}

#[test]
fn servers_send_responses_as_the_reference_does() {
    let file = load("transmissions.json");
    let mut cases = 0;
    for case in list(&file, "responses") {
        let params = params(case);
        let (correlation_id, entity_id) = ids(case);
        let response = Response::decode(params.version, &bytes(case, "message")).expect("a response");
        let mut out = Vec::new();
        encode_response(&params, &correlation_id, &entity_id, &response, &mut out);
        assert_eq!(out, bytes(case, "transmission"), "{}", text(case, "name"));
        assert_eq!(payload_of(&out), bytes(case, "block_payload"), "{}", text(case, "name"));
        let [read] = &decode_responses(&params, &bytes(case, "block_payload"))[..] else { panic!("one response") };
        assert_eq!(read.response, Ok(response));
        cases += 1;
    }
    assert_eq!(cases, 10);
}

#[test]
fn the_same_error_wins_as_in_the_reference() {
    let file = load("transmissions.json");
    let mut cases = 0;
    for case in list(&file, "server_decode") {
        check_server_results(&params(case), case, "results");
        cases += 1;
    }
    assert_eq!(cases, 52);
}

fn check_server_results(params: &TransmissionParams, case: &Value, key: &str) {
    let results = decode_commands(params, &bytes(case, "block_payload"));
    assert_eq!(results.len(), list(case, key).len(), "{}", text(case, "name"));
    for (result, expected) in results.iter().zip(list(case, key)) {
        let (correlation_id, entity_id) = ids(expected);
        match result {
            Ok(sent) => {
                assert_eq!((&sent.correlation_id, &sent.entity_id), (&correlation_id, &entity_id));
                check_accepted(params, sent, expected);
            }
            Err(Refused { error, .. }) => {
                assert_eq!(error.encoded(), text(expected, "error").as_bytes(), "{}", text(case, "name"));
                let expected = Refused { correlation_id, entity_id, error: error.clone() };
                assert_eq!(result, &Err(expected), "{}", text(case, "name"));
            }
        }
    }
}

fn check_accepted(params: &TransmissionParams, sent: &ClientTransmission, expected: &Value) {
    assert_eq!(super::commands::encoded(&sent.command, params.version), bytes(expected, "command"));
    let service = if sent.service_signature.is_some() { ", service signature" } else { "" };
    assert_eq!(format!("{:?}{service}", sent.authorization), text(expected, "authorization"));
    assert_eq!(sha256(&sent.authorized.to_vec()).as_slice(), bytes(expected, "authorized_sha256"));
    assert_eq!(sent.authorized.parts().concat().len(), sent.authorized.len());
}

#[test]
fn clients_read_responses_as_the_reference_does() {
    let file = load("transmissions.json");
    let mut cases = 0;
    for case in list(&file, "client_decode") {
        let params = params(case);
        let results = decode_responses(&params, &bytes(case, "block_payload"));
        assert_eq!(results.len(), list(case, "results").len());
        for (result, expected) in results.iter().zip(list(case, "results")) {
            assert_eq!((&result.correlation_id, &result.entity_id), (&ids(expected).0, &ids(expected).1));
            match &result.response {
                Ok(response) => {
                    assert_eq!(super::responses::encoded(response, params.version), bytes(expected, "message"));
                }
                Err(error) => assert_eq!(error.encoded(), text(expected, "error").as_bytes()),
            }
        }
        cases += 1;
    }
    assert_eq!(cases, 12);
}

#[test]
fn batches_are_packed_into_as_few_blocks_as_in_the_reference() {
    let file = load("transmissions.json");
    let mut cases = 0;
    for case in list(&file, "batches") {
        let name = text(case, "name");
        let blocks = list(case, "blocks");
        let transmissions = transmissions_of(case);
        assert_eq!(transmissions.len(), number(case, "transmissions"), "{name}");
        let mut batch = BatchWriter::new();
        let too_large = transmissions.iter().filter(|bytes| push(&mut batch, bytes) == Err(TooLarge)).count();
        let payloads = batch.finish();
        assert_eq!(too_large, blocks.iter().filter(|block| block["error"].is_string()).count(), "{name}");
        assert!(payloads.len() <= blocks.len() - too_large, "{name}");
        if let ([payload], [block]) = (&payloads[..], blocks) {
            assert_eq!(payload.len(), number(block, "payload_length"), "{name}");
        }
        check_payloads(&payloads, &transmissions);
        cases += 1;
    }
    assert_eq!(cases, 18);
}

fn push(batch: &mut BatchWriter, transmission: &[u8]) -> Result<(), TooLarge> {
    batch.push(|out| out.extend_from_slice(transmission))
}

/// All that fits comes out again, in order, and within the limits.
pub fn check_payloads(payloads: &[Vec<u8>], transmissions: &[Bytes]) {
    let mut unpacked = Vec::new();
    for payload in payloads {
        assert!(payload.len() <= MAX_PAYLOAD);
        let part = split_batch(&Bytes::copy_from_slice(payload)).expect("a batch");
        assert!(part.len() <= MAX_TRANSMISSIONS);
        unpacked.extend(part);
    }
    let expected: Vec<_> = transmissions.iter().filter(|bytes| bytes.len() + 3 <= MAX_PAYLOAD).cloned().collect();
    assert!(unpacked == expected);
}

/// The transmissions of a batch: the bytes where the vectors have them, else bytes of the same lengths.
fn transmissions_of(case: &Value) -> Vec<Bytes> {
    /// `MSG` with its length.
    const MESSAGE: usize = 16_180;
    let mut transmissions = Vec::new();
    for block in list(case, "blocks") {
        if block["error"].is_string() {
            transmissions.push(Bytes::from(vec![b'x'; 16_364]));
        } else if let Some(payload) = optional_bytes(block, "payload") {
            assert_eq!(sha256(&payload).as_slice(), bytes(block, "payload_sha256"));
            transmissions.extend(split_batch(&payload).expect("a batch"));
        } else {
            let (count, length) = (number(block, "count"), number(block, "payload_length") - 1);
            let equal = length.is_multiple_of(count);
            let rest = if equal { length / count } else { (length - MESSAGE) / (count - 1) };
            let first = if equal { rest } else { MESSAGE };
            transmissions.push(Bytes::from(vec![b'x'; first - 2]));
            transmissions.extend((1..count).map(|_| Bytes::from(vec![b'x'; rest - 2])));
        }
    }
    transmissions
}
