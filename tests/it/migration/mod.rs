//! Moving in from the Haskell server's files, and between the stores, through the real binary.

mod commands;
mod first_start;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use bytes::Bytes;
use smp_server::protocol::command::{MessageFlags, QueueMode};
use smp_server::protocol::keys::PublicAuthKey;
use smp_server::protocol::{MessageId, QueueId};
use smp_server::store::files::LogFiles;
use smp_server::store::transfer::{Item, Sink};
use smp_server::store::{Day, DhSecret, Message, MessageContent, NewQueue, QueueRecord, QueueStatus, Timestamp};

use crate::support::{Installation, Server};

const STORE_LOG: &str = "smp-server-store.log";
const MESSAGE_LOG: &str = "smp-server-messages.log";
const STORE: &str = "smp-server.db";

/// Where the files are that the Haskell server has written.
fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/store")
}

/// An installation that has these of the Haskell server's files under these names.
fn with_files(files: &[(&str, &str)]) -> Installation {
    let installation = Installation::new();
    // The messages are from 2023.
    for key in ["expire_messages_on_start", "expire_messages_on_send"] {
        installation.set("STORE_LOG", key, "off");
    }
    for (from, to) in files {
        copy(&vectors().join(from), &installation.log().join(to));
    }
    installation
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// The lines of a file, whatever their order.
fn lines(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// Asserts that the exported files of an installation are what the Haskell server writes of the vectors.
fn assert_exported(installation: &Installation) {
    for (exported, expected) in
        [(STORE_LOG, "smp-server-store.compacted.log"), (MESSAGE_LOG, "smp-server-messages.exported.log")]
    {
        assert_eq!(lines(&installation.log().join(exported)), lines(&vectors().join(expected)), "{exported}");
    }
}

/// What a command says that has to fail.
fn refusal(installation: &Installation, arguments: &[&str]) -> String {
    let output = installation.command(arguments).output().unwrap();
    let said = said(&output);
    assert!(!output.status.success(), "{arguments:?} succeeded: {said}");
    said
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn exists(installation: &Installation, name: &str) -> bool {
    installation.log().join(name).exists()
}

/// Starts a server until it listens, and stops it.
fn start_and_stop(installation: Installation) -> Installation {
    Server::start_in(installation).stop().installation
}

/// Logs with so many queues, of which each has a message.
fn write_logs(installation: &Installation, queues: u64) {
    let [log, messages] = [STORE_LOG, MESSAGE_LOG].map(|name| installation.log().join(name));
    let mut sink = Box::new(LogFiles::create(Some(&log), Some(&messages)).unwrap());
    for number in 0..queues {
        let queue = queue(number);
        let recipient = queue.record.recipient_id;
        sink.put(Item::Queue(Box::new(queue))).unwrap();
        sink.put(Item::Message(recipient, Box::new(message(number)))).unwrap();
    }
    sink.finish().unwrap();
}

fn id(kind: u8, number: u64) -> [u8; 24] {
    let mut id = [kind; 24];
    // In an order other than that of the numbers.
    id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    id
}

fn queue(number: u64) -> NewQueue {
    let record = QueueRecord {
        recipient_id: QueueId(id(1, number)),
        sender_id: QueueId(id(2, number)),
        recipient_keys: vec![PublicAuthKey::Ed25519([3; 32])],
        dh_secret: DhSecret([4; 32]),
        sender_key: None,
        mode: Some(QueueMode::Messaging),
        status: QueueStatus::Active,
        link_id: None,
        notifier: None,
        recipient_service: None,
        updated_at: Some(Day(20_000)),
    };
    NewQueue { record, link_data: None }
}

fn message(number: u64) -> Message {
    let content =
        MessageContent::Sent { flags: MessageFlags { notification: true }, body: Bytes::from_static(b"body") };
    let timestamp = Timestamp { seconds: 4_000_000_000, nanoseconds: 0 };
    Message { id: MessageId(id(5, number)), sequence: 0, timestamp, content }
}
