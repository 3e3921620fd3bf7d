//! `commands.json`.

use bytes::Bytes;

use super::fields;
use super::vectors::{bytes, list, load, text, version, versions};
use crate::protocol::command::{Command, IdsHash};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::version::Version;

pub fn encoded(command: &Command, version: Version) -> Bytes {
    let mut out = Vec::new();
    command.encode(version, &mut out);
    Bytes::from(out)
}

#[test]
fn every_command_is_encoded_and_read_as_the_reference_does() {
    let file = load("commands.json");
    let (mut cases, mut checks) = (0, 0);
    for case in list(&file, "cases") {
        let command = fields::command(text(case, "command"), &case["fields"]);
        let expected = bytes(case, "encoded");
        for version in versions(case) {
            let name = format!("{} in version {version:?}", text(case, "name"));
            assert_eq!(encoded(&command, version), expected, "{name}");
            let read = Command::decode(version, &expected).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            if case["lossy"].is_boolean() {
                assert_eq!(encoded(&read, Version::NAMES), bytes(case, "decoded_as_v20"), "{name}");
            } else {
                assert!(read == command, "{name}");
            }
            checks += 1;
        }
        cases += 1;
    }
    assert_eq!((cases, checks), (104, 658));
}

#[test]
fn names_of_later_commands_are_known_in_old_versions() {
    let file = load("commands.json");
    let mut cases = 0;
    for case in list(&file, "cases") {
        let Some(accepted) = case["decoded_below_from"].as_bool() else { continue };
        let result = Command::decode(Version(6), &bytes(case, "encoded"));
        assert_eq!(result.is_ok(), accepted, "{}", text(case, "name"));
        cases += 1;
    }
    assert_eq!(cases, 25);
}

#[test]
fn commands_are_read_as_leniently_and_as_strictly_as_the_reference_does() {
    let file = load("commands.json");
    let (mut good, mut bad) = (0, 0);
    for case in list(&file, "decode") {
        let version = version(case);
        let result = Command::decode(version, &bytes(case, "input"));
        match text(case, "result") {
            "ok" if case["note"] == "5 byte IDs hash" => {
                // A hash is kept in 16 bytes here: what is missing reads as zero.
                let Ok(Command::Subs(queues)) = result else { panic!("{case}") };
                assert_eq!(queues.hash, IdsHash(*b"hhhhh\0\0\0\0\0\0\0\0\0\0\0"));
                good += 1;
            }
            "ok" => {
                let command = result.unwrap_or_else(|error| panic!("{case}: {error:?}"));
                assert_eq!(encoded(&command, version), bytes(case, "reencoded"), "{case}");
                good += 1;
            }
            error => {
                let expected = match error {
                    "CMD UNKNOWN" => CommandError::Unknown,
                    _ => CommandError::Syntax,
                };
                assert_eq!(result, Err(ErrorType::Cmd(expected)), "{case}");
                bad += 1;
            }
        }
    }
    assert_eq!((good, bad), (25, 50));
}
