//! No input panics, and what is read shares the memory of the input.

use bytes::Bytes;
use proptest::prelude::*;

use super::strategies::{any_version, bytes, command, response};
use super::{commands, responses};
use crate::protocol::address::{NameDomain, ServerAddress, ServerAddressWithPassword};
use crate::protocol::block::split_batch;
use crate::protocol::command::Command;
use crate::protocol::encoding::Decode;
use crate::protocol::ids::SessionId;
use crate::protocol::response::Response;
use crate::protocol::transmission::{TransmissionParams, decode_commands, decode_responses};
use crate::protocol::version::Version;

/// Some of the encoding overwritten, then cut: close enough to what is valid to get deep into the decoders.
fn damaged(encoded: &Bytes, changes: &[(usize, u8)], length: usize) -> Bytes {
    let mut damaged = encoded.to_vec();
    for &(at, byte) in changes {
        let at = at % damaged.len().max(1);
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
    }
    damaged.truncate(length);
    Bytes::from(damaged)
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(input in bytes(600), version: u16, session: [u8; 32]) {
        let version = Version(version);
        let params = TransmissionParams { version, session_id: SessionId(session) };
        let _ = Command::decode(version, &input);
        let _ = Response::decode(version, &input);
        let _ = ServerAddress::decode_all(&input);
        let _ = NameDomain::decode_all(&input);
        prop_assert!(split_batch(&input).is_err() || !input.is_empty());
        prop_assert!(!decode_commands(&params, &input).is_empty());
        prop_assert!(!decode_responses(&params, &input).is_empty());
    }

    #[test]
    fn random_text_is_no_address(text: String) {
        prop_assert!(text.parse::<ServerAddressWithPassword>().is_err());
        let _ = format!("smp://eA@{text}").parse::<ServerAddressWithPassword>();
    }

    #[test]
    fn damaged_commands_are_refused_or_read(
        command in command(),
        version in any_version(),
        changes in prop::collection::vec(any::<(usize, u8)>(), 0..4),
        length in 0usize..4000,
    ) {
        let input = damaged(&commands::encoded(&command, version), &changes, length);
        if let Ok(command) = Command::decode(version, &input) {
            let again = commands::encoded(&command, version);
            prop_assert!(Command::decode(version, &again) == Ok(command));
        }
    }

    #[test]
    fn damaged_responses_are_refused_or_read(
        response in response(),
        version in any_version(),
        changes in prop::collection::vec(any::<(usize, u8)>(), 0..4),
        length in 0usize..4000,
    ) {
        let input = damaged(&responses::encoded(&response, version), &changes, length);
        if let Ok(response) = Response::decode(version, &input) {
            let again = responses::encoded(&response, version);
            prop_assert!(Response::decode(version, &again).is_ok());
        }
    }
}

#[test]
fn bodies_are_not_copied() {
    let input = Bytes::from([b"SEND T ".to_vec(), vec![b'x'; 16_000]].concat());
    let Ok(Command::Send(_, body)) = Command::decode(Version(20), &input) else { panic!("a SEND") };
    assert_eq!(body.as_ptr(), input[7..].as_ptr());
}

#[test]
fn debug_forms_show_no_content() {
    let input = Bytes::from_static(b"SEND T secret");
    let command = Command::decode(Version(20), &input).expect("a SEND");
    assert_eq!(format!("{command:?}"), "SEND(..)");
    let response = Response::decode(Version(20), &Bytes::from_static(b"PRES secret")).expect("a PRES");
    assert_eq!(format!("{response:?}"), "PRES(..)");
}
