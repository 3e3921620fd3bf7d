//! The tables, and how an older file becomes one of this version.
//!
//! Migrations are only ever appended: the number of those done stands in `PRAGMA user_version`.

use rusqlite::{Connection, TransactionBehavior};

use super::services;

/// Marks our files (`PRAGMA application_id`), so that another program's database is not taken for one.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"SMPq");

/// Each brings a file one version further.
///
/// Choices of the first one:
/// - Messages are not in the queue's row and no row of a queue changes when a message comes or goes: `SEND` and `ACK` write
///   the message's page and two small index pages, nothing else. A queue's size, and whether it is full, are read from
///   `messages_by_queue` alone, which holds at most the quota's number of entries for a queue.
/// - `sequence` is AUTOINCREMENT, so that a number is never given twice, neither after the queue was emptied nor after a
///   restart. It is the table's own key, because the largest message then fits one 16 KiB page with its row and needs no
///   overflow page.
/// - The IDs that most queues lack are in partial indexes, which have no entry for those that have none.
/// - Link data has its own table: it may be as large as a message and is rarely read.
/// - There are no foreign keys: each would be checked for every row, and all deletions are in one place.
///
/// The second one lets each service know its queues without counting them, and go through those with messages in the order
/// of their IDs.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE queues (
        queue INTEGER PRIMARY KEY,
        recipient_id BLOB NOT NULL,
        sender_id BLOB NOT NULL,
        recipient_keys BLOB NOT NULL,
        dh_secret BLOB NOT NULL,
        sender_key BLOB,
        mode TEXT,
        status INTEGER NOT NULL,
        blocking_notice TEXT,
        link_id BLOB,
        notifier_id BLOB,
        notifier_key BLOB,
        notifier_dh_secret BLOB,
        notifier_service BLOB,
        recipient_service BLOB,
        updated_at INTEGER
    ) STRICT;
    CREATE UNIQUE INDEX queues_by_recipient ON queues (recipient_id);
    CREATE UNIQUE INDEX queues_by_sender ON queues (sender_id);
    CREATE UNIQUE INDEX queues_by_link ON queues (link_id) WHERE link_id IS NOT NULL;
    CREATE UNIQUE INDEX queues_by_notifier ON queues (notifier_id) WHERE notifier_id IS NOT NULL;
    CREATE INDEX queues_by_recipient_service ON queues (recipient_service) WHERE recipient_service IS NOT NULL;
    CREATE INDEX queues_by_notifier_service ON queues (notifier_service) WHERE notifier_service IS NOT NULL;

    CREATE TABLE link_data (
        queue INTEGER PRIMARY KEY,
        fixed BLOB NOT NULL,
        user BLOB NOT NULL
    ) STRICT;

    CREATE TABLE messages (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        queue INTEGER NOT NULL,
        timestamp INTEGER NOT NULL,
        marker INTEGER NOT NULL,
        notification INTEGER NOT NULL,
        message_id BLOB NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX messages_by_queue ON messages (queue, sequence, timestamp, marker);
    CREATE INDEX messages_by_time ON messages (timestamp) WHERE marker = 0;

    CREATE TABLE services (
        service INTEGER PRIMARY KEY,
        service_id BLOB NOT NULL UNIQUE,
        role TEXT NOT NULL,
        certificate_chain BLOB NOT NULL,
        certificate_hash BLOB NOT NULL UNIQUE,
        created_at INTEGER NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE services ADD COLUMN queue_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE services ADD COLUMN queue_ids_hash BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
    DROP INDEX queues_by_recipient_service;
    CREATE INDEX queues_by_recipient_service ON queues (recipient_service, recipient_id)
        WHERE recipient_service IS NOT NULL;
",
];

/// The migration after which the queues of services are counted for the first time.
const COUNTS_SERVICES: usize = 1;

/// The version of a file that this program writes.
pub(super) const VERSION: usize = MIGRATIONS.len();

/// What a file turned out to be.
pub(super) enum Kind {
    /// Ours, of this version of its schema (0: empty).
    Ours(usize),
    /// Another program's.
    Foreign,
}

/// Looks at what the file is without changing it.
pub(super) fn kind(connection: &Connection) -> rusqlite::Result<Kind> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: u32 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version, tables) {
        (APPLICATION_ID, version, _) => Kind::Ours(version as usize),
        (0, 0, 0) => Kind::Ours(0),
        _ => Kind::Foreign,
    })
}

/// Does the migrations after `version`, each in a transaction of its own.
pub(super) fn migrate(connection: &mut Connection, version: usize) -> rusqlite::Result<()> {
    for (done, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        if done == COUNTS_SERVICES {
            services::recount(&transaction)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", done as u32 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}
