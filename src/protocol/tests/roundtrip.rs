//! What is encoded is read back, for all values and versions.

use bytes::Bytes;
use proptest::prelude::*;

use super::strategies::{
    any_version, authorization, command, correlation_id, entity_id, error_type, network_error, response, server_address,
};
use super::transmissions::check_payloads;
use super::{commands, responses};
use crate::protocol::address::ServerAddress;
use crate::protocol::block::{BatchWriter, MAX_PAYLOAD};
use crate::protocol::command::Command;
use crate::protocol::encoding::{Decode, Encode};
use crate::protocol::error::{ErrorType, NetworkError};
use crate::protocol::ids::SessionId;
use crate::protocol::response::Response;
use crate::protocol::transmission::{
    TransmissionParams, decode_command, decode_responses, encode_command, encode_response,
};
use crate::protocol::version::Version;

proptest! {
    #[test]
    fn commands_survive(command in command()) {
        let encoded = commands::encoded(&command, Version::NAMES);
        prop_assert!(Command::decode(Version::NAMES, &encoded) == Ok(command));
    }

    #[test]
    fn what_an_old_version_carries_of_a_command_is_stable(command in command(), version in any_version()) {
        let encoded = commands::encoded(&command, version);
        let read = Command::decode(version, &encoded);
        prop_assert_eq!(read.map(|command| commands::encoded(&command, version)), Ok(encoded));
    }

    #[test]
    fn responses_survive(response in response()) {
        let encoded = responses::encoded(&response, Version::NAMES);
        prop_assert!(Response::decode(Version::NAMES, &encoded) == Ok(response));
    }

    #[test]
    fn what_an_old_version_carries_of_a_response_is_stable(response in response(), version in any_version()) {
        let encoded = responses::encoded(&response, version);
        let read = Response::decode(version, &encoded);
        prop_assert_eq!(read.map(|response| responses::encoded(&response, version)), Ok(encoded));
    }

    #[test]
    fn errors_survive(error in error_type()) {
        prop_assert_eq!(ErrorType::decode_all(&Bytes::from(error.encoded())), Ok(error));
    }

    #[test]
    fn network_errors_survive(error in network_error()) {
        prop_assert_eq!(NetworkError::decode_all(&Bytes::from(error.encoded())), Ok(error));
    }

    #[test]
    fn addresses_survive_bytes_and_text(address in server_address()) {
        let read = ServerAddress::decode_all(&Bytes::from(address.encoded()));
        prop_assert_eq!(read.as_ref(), Ok(&address));
        if !address.fingerprint.is_empty() {
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }

    #[test]
    fn commands_survive_transmission(
        command in command(),
        authorization in authorization(),
        service in proptest::option::of(prop::array::uniform(any::<u8>())),
        correlation_id in correlation_id(),
        entity_id in entity_id(),
        session: [u8; 32],
        version in any_version(),
    ) {
        let params = TransmissionParams { version, session_id: SessionId(session) };
        let (mut out, mut signed) = (Vec::new(), Vec::new());
        let authorize = |bytes: &[u8]| {
            signed = bytes.to_vec();
            (authorization.clone(), service)
        };
        encode_command(&params, &correlation_id, &entity_id, &command, authorize, &mut out);
        let credentials = command.check_credentials(!authorization.is_none(), &entity_id);
        match decode_command(&params, &Bytes::from(out)) {
            Ok(sent) => {
                prop_assert_eq!(credentials, Ok(()));
                prop_assert_eq!(sent.authorized.to_vec(), signed);
                let expected = service.filter(|_| version >= Version::SERVICES && !authorization.is_none());
                prop_assert_eq!(sent.service_signature, expected);
                prop_assert_eq!(sent.authorization, authorization);
                prop_assert_eq!((sent.correlation_id, sent.entity_id), (correlation_id, entity_id));
                prop_assert_eq!(commands::encoded(&sent.command, version), commands::encoded(&command, version));
            }
            Err(refused) => {
                prop_assert_eq!(Err(refused.error), credentials);
                prop_assert_eq!((refused.correlation_id, refused.entity_id), (correlation_id, entity_id));
            }
        }
    }

    #[test]
    fn responses_survive_transmission(
        all in prop::collection::vec((correlation_id(), entity_id(), response()), 1..10),
        session: [u8; 32],
        version in any_version(),
    ) {
        let params = TransmissionParams { version, session_id: SessionId(session) };
        let mut batch = BatchWriter::new();
        for (correlation_id, entity_id, response) in &all {
            batch.push(|out| encode_response(&params, correlation_id, entity_id, response, out))?;
        }
        let payloads = batch.finish();
        let read = payloads.into_iter().flat_map(|payload| decode_responses(&params, &Bytes::from(payload)));
        for (read, (correlation_id, entity_id, response)) in read.zip(&all) {
            prop_assert_eq!((&read.correlation_id, &read.entity_id), (correlation_id, entity_id));
            // Older versions send less, and some responses replaced by others want another entity ID.
            if version == Version::NAMES {
                prop_assert_eq!(read.response.is_ok(), response.check_entity(entity_id).is_ok());
                prop_assert!(read.response.is_err() || read.response == Ok(response.clone()));
            }
        }
    }

    #[test]
    fn batches_keep_order_and_limits(lengths in prop::collection::vec(prop_oneof![
        4 => 0usize..100,
        1 => 0usize..17_000,
    ], 0..600)) {
        let transmissions: Vec<_> = lengths.iter().map(|&length| Bytes::from(vec![b'x'; length])).collect();
        let mut batch = BatchWriter::new();
        for transmission in &transmissions {
            let room = batch.room();
            let before = batch.is_empty();
            let result = batch.push(|out| out.extend_from_slice(transmission));
            prop_assert_eq!(result.is_ok(), transmission.len() + 3 <= MAX_PAYLOAD);
            let goes_in = room > 0 && transmission.len() <= room;
            prop_assert!(before || result.is_err() || !goes_in || batch.room() < room);
        }
        check_payloads(&batch.finish(), &transmissions);
    }
}

#[test]
fn a_closed_payload_is_not_added_to() {
    let mut batch = BatchWriter::new();
    batch.finish_payload();
    batch.push(|out| out.push(b'a')).expect("fits");
    batch.finish_payload();
    batch.finish_payload();
    batch.push(|out| out.push(b'b')).expect("fits");
    assert_eq!(batch.finish(), [b"\x01\x00\x01a".to_vec(), b"\x01\x00\x01b".to_vec()]);
}

#[test]
fn an_empty_batch_has_no_payload() {
    let mut batch = BatchWriter::new();
    assert!(batch.push(|out| out.resize(20_000, 0)).is_err());
    assert!(batch.is_empty());
    assert!(batch.finish().is_empty());
}
