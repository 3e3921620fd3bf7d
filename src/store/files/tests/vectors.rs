//! Files that the reference has written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::expected::{expected, list, message, messages, queues_and_services};
use super::{copy_of, read_all, replay, vector};
use crate::protocol::MessageId;
use crate::protocol::QueueId;
use crate::protocol::crypto::Nonce;
use crate::protocol::crypto::test_vectors::{array, bytes};
use crate::store::files::notification::Notification;
use crate::store::files::{
    Ineffective, JournalDirectory, LogFiles, MAX_LINE_BYTES, MessageLog, NotificationLog, NotificationLogWriter,
    message as codec,
};
use crate::store::transfer::{Item, Put, Sink, Source};

/// By queue, in the order within each.
fn by_queue(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by_key(|item| match item {
        Item::Message(queue, _) => *queue,
        _ => panic!("{item:?}"),
    });
    items
}

fn lines(path: &Path) -> BTreeSet<Vec<u8>> {
    let text = fs::read(path).unwrap();
    assert!(text.ends_with(b"\n"));
    text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn write_all(items: Vec<Item>, mut sink: Box<dyn Sink>) {
    for item in items {
        assert_eq!(sink.put(item).unwrap(), Put::Stored);
    }
    sink.finish().unwrap();
}

#[test]
fn a_store_log_with_every_kind_of_record_leads_to_what_the_reference_found() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, damaged, ineffective) = replay(&copy_of("smp-server-store.log", directory.path()));
    assert_eq!(log.counts(), (2, 16));
    assert_eq!(read_all(&mut log).0, queues_and_services(&expected("smp-server-store.log")));
    assert_eq!(log.progress(), Some((18, 18)));
    assert!(damaged.is_empty(), "{damaged:?}");
    // The record of a deleted queue.
    assert_eq!(ineffective, [(21, Ineffective::DeletedQueue)]);
}

#[test]
fn a_store_log_of_older_versions_leads_to_what_the_reference_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy_of("smp-server-store-old.log", directory.path());
    let (mut log, damaged, ineffective) = replay(&path);
    assert_eq!(read_all(&mut log).0, queues_and_services(&expected("smp-server-store-old.log")));
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].to_string(), format!("{}:9: not a record of a known kind", path.display()));
    assert_eq!(ineffective, [(13, Ineffective::UnknownQueue), (14, Ineffective::Duplicate)]);
}

#[test]
fn a_written_store_log_has_the_lines_that_the_reference_writes() {
    for (name, compacted) in [
        ("smp-server-store.log", "smp-server-store.compacted.log"),
        ("smp-server-store-old.log", "smp-server-store-old.compacted.log"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, ..) = replay(&copy_of(name, directory.path()));
        let written = directory.path().join("written.log");
        write_all(read_all(&mut log).0, Box::new(LogFiles::create(Some(&written), None).unwrap()));
        assert_eq!(lines(&written), lines(&vector(compacted)));
        let (mut again, damaged, ineffective) = replay(&written);
        assert_eq!(read_all(&mut again).0, queues_and_services(&expected(name)));
        assert!(damaged.is_empty() && ineffective.is_empty());
    }
}

#[test]
fn nothing_is_left_beside_a_log_that_was_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy_of("smp-server-store.log", directory.path());
    fs::write(directory.path().join("smp-server-store.log.replay.tmp"), "left by a crash").unwrap();
    let (log, ..) = replay(&path);
    drop(log);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(fs::read(&path).unwrap(), fs::read(vector("smp-server-store.log")).unwrap());
}

#[test]
fn messages_logs_have_the_messages_that_the_reference_found() {
    for name in ["smp-server-messages.log", "smp-server-messages-old.log"] {
        let (items, damaged) = read_all(&mut MessageLog::open(&vector(name)).unwrap());
        assert_eq!(by_queue(items), messages(&expected(name)));
        assert!(damaged.is_empty(), "{damaged:?}");
    }
    let (exported, _) = read_all(&mut MessageLog::open(&vector("smp-server-messages.exported.log")).unwrap());
    assert_eq!(by_queue(exported), messages(&expected("smp-server-messages.log")));
}

#[test]
fn a_written_messages_log_is_the_reference_s_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["smp-server-messages.log", "smp-server-messages.exported.log"] {
        let path = directory.path().join(name);
        let (items, _) = read_all(&mut MessageLog::open(&vector(name)).unwrap());
        write_all(items, Box::new(LogFiles::create(None, Some(&path)).unwrap()));
        assert_eq!(fs::read(&path).unwrap(), fs::read(vector(name)).unwrap());
    }
}

/// Where a good reader takes what the reference cannot read back.
const TAKEN_ALL_THE_SAME: [&str; 2] = [
    "empty body, as the reference writes it",
    "no flags, body is base64url text quotaAAA: read as quota marker, the rest of the line is an error",
];

#[test]
fn odd_lines_of_messages_are_read_as_the_reference_does_or_better() {
    let cases = expected("message_lines");
    for case in cases.as_array().unwrap() {
        let read = codec::read_logged(case["line"].as_str().unwrap().as_bytes());
        let what = case["what"].as_str().unwrap();
        match case["result"].as_str().unwrap() {
            "ok" => {
                assert_eq!(read, Ok((QueueId(array(&case["recipient_id"])), message(&case["message"]))), "{what}");
            }
            _ => assert_eq!(read.is_ok(), TAKEN_ALL_THE_SAME.contains(&what), "{what}"),
        }
    }
    assert_eq!(cases.as_array().unwrap().len(), 8);
}

#[test]
fn the_largest_body_is_read_and_a_larger_one_is_damage() {
    let line = |bytes: usize| {
        let mut line = b"OZ1ToZ_plqLZ_P-arPIerWFmAho9xWrV 1700000001 flags=T ".to_vec();
        super::super::text::put_base64(&mut line, &vec![7; bytes]);
        line
    };
    assert!(line(codec::MAX_BODY_BYTES).len() < MAX_LINE_BYTES);
    assert!(codec::read(&line(codec::MAX_BODY_BYTES)).is_ok());
    assert!(codec::read(&line(codec::MAX_BODY_BYTES + 1)).is_err());
}

#[test]
fn a_journal_directory_has_the_messages_that_the_reference_found() {
    let (items, damaged) = read_all(&mut JournalDirectory::open(&vector("messages")).unwrap());
    let mut expected = messages(&expected("messages"));
    assert_eq!(expected.len(), 22);
    expected = by_queue(expected);
    assert_eq!(by_queue(items), expected);
    assert!(damaged.is_empty(), "{damaged:?}");
}

#[test]
fn a_notifications_log_is_read_and_written_as_the_reference_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("smp-server-ntfs.log");
    let expected = expected("smp-server-ntfs.log");
    let mut expected = expected.as_array().unwrap().iter();
    let mut log = NotificationLog::open(&vector("smp-server-ntfs.log")).unwrap();
    let mut writer = NotificationLogWriter::create(&path).unwrap();
    while let Some(notification) = log.next(&mut |damage| panic!("{damage}")).unwrap() {
        let value = expected.next().unwrap();
        assert_eq!(
            notification,
            Notification {
                notifier: QueueId(array(&value["notifier_id"])),
                message: MessageId(array(&value["msg_id"])),
                timestamp: crate::store::Timestamp { seconds: value["timestamp"].as_i64().unwrap(), nanoseconds: 0 },
                nonce: Nonce(array(&value["nonce"])),
                metadata: bytes(&value["encrypted_meta"]).into(),
            }
        );
        writer.write(&notification).unwrap();
    }
    assert!(expected.next().is_none());
    writer.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), fs::read(vector("smp-server-ntfs.log")).unwrap());
}

#[test]
fn the_state_of_a_written_journal_has_the_reference_s_form() {
    for queue in list(&expected("messages"), "queues") {
        let state = queue["state"].as_str().unwrap();
        let read = super::super::journal::state::State::read(state.as_bytes()).unwrap();
        let mut written = Vec::new();
        read.write(&mut written);
        assert_eq!(String::from_utf8(written).unwrap(), state);
    }
}
