//! `[STORE_LOG]`: where queues and messages are kept, how many and how long.

use std::path::PathBuf;
use std::time::Duration;

use super::keys::{self, Key};
use super::reader::Reader;
use super::{Note, Paths};

const DAY_SECONDS: u64 = 86_400;

/// Where the embedded store lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// In memory; nothing is written to disk.
    Memory,
    /// In this file, and its companions beside it.
    File(PathBuf),
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
}

impl Store {
    pub(super) fn read(reader: &mut Reader<'_>, paths: &Paths, notes: &mut Vec<Note>) -> Self {
        let location = read_location(reader, paths, notes);
        note_restoring(reader, &location, notes);
        Store {
            location,
            message_queue_quota: reader.number(&keys::MESSAGE_QUEUE_QUOTA, 1..=1_000_000, "messages"),
            expiration: read_expiration(reader),
            sync: reader.choice(&keys::SYNC, &[("full", Sync::Full), ("normal", Sync::Normal)]).unwrap_or(Sync::Full),
        }
    }
}

fn read_location(reader: &mut Reader<'_>, paths: &Paths, notes: &mut Vec<Note>) -> StoreLocation {
    refuse_database(reader, &keys::STORE_QUEUES, "`memory` or `journal`", &["memory", "journal"]);
    refuse_database(reader, &keys::STORE_MESSAGES, "`memory` or `journal`", &["memory", "journal"]);
    let enabled = reader.switch(&keys::STORE_ENABLE);
    let journal = reader.find(&keys::STORE_MESSAGES).is_some_and(|found| found.value == "journal");
    if journal && !enabled {
        let title = keys::STORE_MESSAGES.title();
        notes.push(Note::Other(format!(
            "{title} = journal has no effect with enable = off: nothing is written to disk"
        )));
    }
    if enabled { StoreLocation::File(paths.store()) } else { StoreLocation::Memory }
}

/// PostgreSQL is refused, and not replaced by the embedded store: the queues would seem to be gone.
fn refuse_database(reader: &mut Reader<'_>, key: &Key, allowed: &str, words: &[&str]) {
    match reader.find(key).map(|found| found.value) {
        Some("database") => {
            let why = format!("PostgreSQL is not supported by this version yet; allowed: {allowed}");
            reader.wrong(key, &why);
        }
        _ => {
            reader.parse(key, allowed, |text| words.contains(&text).then_some(()));
        }
    }
}

/// The embedded store keeps messages as it keeps queues: there is nothing to be restored or forgotten on start.
fn note_restoring(reader: &mut Reader<'_>, location: &StoreLocation, notes: &mut Vec<Note>) {
    let restore = reader.choice(&keys::RESTORE_MESSAGES, &[("on", true), ("off", false)]);
    let title = keys::RESTORE_MESSAGES.title();
    match (restore, location) {
        (Some(false), StoreLocation::File(_)) => {
            notes.push(Note::Other(format!("{title} = off has no effect: messages are kept with their queues")));
        }
        (Some(true), StoreLocation::Memory) => {
            notes.push(Note::Other(format!(
                "{title} = on has no effect: nothing is kept with [STORE_LOG] enable = off"
            )));
        }
        _ => {}
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
