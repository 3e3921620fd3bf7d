//! `[STORE_LOG]`: where queues and messages are kept, how many and how long.

use std::path::PathBuf;
use std::time::Duration;

use super::keys::{self, Key};
use super::layers::Origin;
use super::reader::Reader;
use super::{Database, Note, Paths};

const DAY_SECONDS: u64 = 86_400;

/// Where queues and messages are.
#[derive(Clone, Debug)]
pub enum StoreLocation {
    /// In memory; nothing is written to disk.
    Memory,
    /// In the embedded store: this file, and its companions beside it.
    File(PathBuf),
    /// In PostgreSQL.
    Postgres(Database),
}

/// What "committed" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// On the disk: survives a power failure.
    Full,
    /// With the operating system: survives the end of the process, not a power failure.
    Normal,
}

/// When messages are deleted unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageExpiration {
    /// Age of the messages that are deleted.
    pub ttl: Duration,
    /// How often they are looked for.
    pub check_interval: Duration,
    /// Whether they are deleted before the server starts to listen.
    pub on_start: bool,
    /// Whether those of a queue are deleted when a message is sent to it.
    pub on_send: bool,
}

/// What is kept, where and how long.
#[derive(Clone, Debug)]
pub struct Store {
    /// Where.
    pub location: StoreLocation,
    /// Messages that a queue holds before it answers `QUOTA`.
    pub message_queue_quota: u32,
    /// How long messages live.
    pub expiration: MessageExpiration,
    /// What a commit is good for.
    pub sync: Sync,
    /// Whether the Haskell server's messages log is imported with its queues, on the first start.
    pub restore_messages: bool,
}

impl Store {
    pub(super) fn read(reader: &mut Reader<'_>, paths: &Paths, notes: &mut Vec<Note>) -> Self {
        let location = read_location(reader, paths);
        if let Some(location) = &location {
            note_without_effect(reader, location, notes);
        }
        Store {
            // After a mistake nobody sees what stands in its place.
            location: location.unwrap_or(StoreLocation::Memory),
            message_queue_quota: reader.number(&keys::MESSAGE_QUEUE_QUOTA, 1..=1_000_000, "messages"),
            expiration: read_expiration(reader),
            restore_messages: reader.choice(&keys::RESTORE_MESSAGES, RESTORE).unwrap_or(true),
            sync: reader.choice(&keys::SYNC, &[("full", Sync::Full), ("normal", Sync::Normal)]).unwrap_or(Sync::Full),
        }
    }
}

const RESTORE: &[(&str, bool)] = &[("on", true), ("off", false)];

/// What `store_queues` and `store_messages` may say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Memory,
    Journal,
    Database,
}

const QUEUES: &[(&str, Kept)] = &[("memory", Kept::Memory), ("journal", Kept::Journal), ("database", Kept::Database)];

/// Where queues and messages are; `None` after a mistake.
fn read_location(reader: &mut Reader<'_>, paths: &Paths) -> Option<StoreLocation> {
    let enabled = reader.switch(&keys::STORE_ENABLE);
    let (queues, messages) = (reader.choice(&keys::STORE_QUEUES, QUEUES), reader.choice(&keys::STORE_MESSAGES, QUEUES));
    match (queues, messages) {
        (Some(Kept::Database), Some(Kept::Memory)) => {
            refuse_with(reader, &keys::STORE_MESSAGES, &keys::STORE_QUEUES, "`database` or `journal`");
        }
        (Some(Kept::Memory | Kept::Journal), Some(Kept::Database)) => {
            refuse_with(reader, &keys::STORE_MESSAGES, &keys::STORE_QUEUES, "`memory` or `journal`");
        }
        _ => {}
    }
    match queues? {
        Kept::Database => Database::read(reader, messages == Some(Kept::Journal)).map(StoreLocation::Postgres),
        _ if enabled => Some(StoreLocation::File(paths.store())),
        _ => Some(StoreLocation::Memory),
    }
}

/// The value of `key` does not go with that of `other`.
fn refuse_with(reader: &mut Reader<'_>, key: &Key, other: &Key, allowed: &str) {
    let value = reader.find(other).map_or("", |found| found.value);
    // The value that nobody wrote is the default, and has no line of its own.
    let (wrong, why) = match reader.find(key).map(|found| found.source) {
        Some(Origin::Default) => (other, format!("{} must be {allowed} then, and it is not set", key.title())),
        _ => (key, format!("allowed with {} = {value}: {allowed}", other.title())),
    };
    reader.wrong(wrong, &why);
}

/// Keys that ask for something which the store does not do, or does anyway.
fn note_without_effect(reader: &mut Reader<'_>, location: &StoreLocation, notes: &mut Vec<Note>) {
    let written = |key: &Key| reader.find(key).filter(|found| found.source != Origin::Default).map(|found| found.value);
    let mut note = |key: &Key, value: &str, why: &str| {
        if written(key) == Some(value) {
            notes.push(Note::Other(format!("{} = {value} has no effect{why}", key.title())));
        }
    };
    match location {
        StoreLocation::Memory => {
            let why = " with enable = off: nothing is written to disk";
            note(&keys::STORE_MESSAGES, "journal", why);
            note(&keys::RESTORE_MESSAGES, "on", why);
        }
        StoreLocation::File(_) => {
            note(&keys::RESTORE_MESSAGES, "off", " once the store is there: messages are kept with their queues");
        }
        StoreLocation::Postgres(_) => {
            note(&keys::STORE_ENABLE, "off", ": the database keeps everything");
            note(&keys::RESTORE_MESSAGES, "off", ": the database keeps everything");
            note(&keys::SYNC, "normal", ": what a commit is good for is `synchronous_commit` of PostgreSQL");
            note(&keys::DB_STORE_LOG, "on", ": only `smp-server database export` writes a store log");
        }
    }
}

fn read_expiration(reader: &mut Reader<'_>) -> MessageExpiration {
    const MOST_DAYS: u64 = 36_500;
    let days = reader.number(&keys::EXPIRE_MESSAGES_DAYS, 1..=MOST_DAYS, "days");
    let seconds = reader.optional_number(&keys::EXPIRE_MESSAGES_SECONDS, 1..=MOST_DAYS * DAY_SECONDS, "seconds");
    MessageExpiration {
        ttl: Duration::from_secs(seconds.unwrap_or(days * DAY_SECONDS)),
        check_interval: reader.seconds(&keys::EXPIRE_CHECK_SECONDS, 1..=MOST_DAYS * DAY_SECONDS),
        on_start: reader.switch(&keys::EXPIRE_MESSAGES_ON_START),
        on_send: reader.switch(&keys::EXPIRE_MESSAGES_ON_SEND),
    }
}
