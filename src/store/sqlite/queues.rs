//! SQL on queues and their links. Each function is one step inside the caller's transaction.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::columns::{self, KeyList};
use super::services;
use crate::protocol::QueueId;
use crate::protocol::command::LinkData;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::store::OpOutcome;
use crate::store::record::{Day, NewQueue, Notifier, Party, QueueRecord, QueueStatus};

/// A queue's key in the tables. Never leaves the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueRow(pub(super) i64);

impl ToSql for QueueRow {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

macro_rules! record_columns {
    () => {
        "recipient_id, sender_id, recipient_keys, dh_secret, sender_key, mode, status, blocking_notice, link_id, \
         notifier_id, notifier_key, notifier_dh_secret, notifier_service, recipient_service, updated_at"
    };
}

macro_rules! select_record {
    ($by:literal) => {
        concat!("SELECT ", record_columns!(), " FROM queues WHERE ", $by, " = ?1")
    };
}

/// All queues from one on, in the order of their recipient IDs: record and data of the link.
const SELECT_QUEUES_AFTER: &str = concat!(
    "SELECT ",
    record_columns!(),
    ", fixed, user FROM queues LEFT JOIN link_data USING (queue) WHERE recipient_id > ?1 ORDER BY recipient_id LIMIT ?2"
);

/// At most `limit` queues with recipient IDs behind `after` (from the first on if there is none), in the order of these.
pub(super) fn queues_after(
    connection: &Connection,
    after: Option<QueueId>,
    limit: u32,
) -> rusqlite::Result<Vec<NewQueue>> {
    let after: &[u8] = after.as_ref().map_or(&[], |id| &id.0);
    let mut statement = connection.prepare_cached(SELECT_QUEUES_AFTER)?;
    let queues = statement.query_map(params![after, limit], |row| {
        let fixed: Option<Vec<u8>> = row.get(15)?;
        let user: Option<Vec<u8>> = row.get(16)?;
        let data = fixed.zip(user).map(|(fixed, user)| LinkData { fixed: fixed.into(), user: user.into() });
        Ok(NewQueue { record: read_record(row)?, link_data: data })
    })?;
    queues.collect()
}

/// The record of the queue that `id` names for `party`.
pub(super) fn record(connection: &Connection, party: Party, id: &QueueId) -> rusqlite::Result<Option<QueueRecord>> {
    let sql = match party {
        Party::Recipient => select_record!("recipient_id"),
        Party::Sender => select_record!("sender_id"),
        Party::Notifier => select_record!("notifier_id"),
        Party::Link => select_record!("link_id"),
    };
    connection.prepare_cached(sql)?.query_row([id], read_record).optional()
}

/// The record in the first 15 columns.
pub(super) fn read_record(row: &Row<'_>) -> rusqlite::Result<QueueRecord> {
    Ok(QueueRecord {
        recipient_id: row.get(0)?,
        sender_id: row.get(1)?,
        recipient_keys: row.get::<_, KeyList>(2)?.0,
        dh_secret: row.get(3)?,
        sender_key: row.get(4)?,
        mode: row.get(5)?,
        status: columns::status(row.get(6)?, row.get(7)?)?,
        link_id: row.get(8)?,
        notifier: read_notifier(row, 9)?,
        recipient_service: row.get(13)?,
        updated_at: row.get(14)?,
    })
}

/// The notifier in the four columns from `first` on.
pub(super) fn read_notifier(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Notifier>> {
    let Some(id) = row.get(first)? else { return Ok(None) };
    let (key, dh_secret, service) = (row.get(first + 1)?, row.get(first + 2)?, row.get(first + 3)?);
    Ok(Some(Notifier { id, key, dh_secret, service }))
}

/// The row of the queue with this recipient ID, and whether the queue is active.
pub(super) fn find(connection: &Connection, id: &QueueId) -> rusqlite::Result<Option<(QueueRow, bool)>> {
    connection
        .prepare_cached("SELECT queue, status = 0 FROM queues WHERE recipient_id = ?1")?
        .query_row([id], |row| Ok((QueueRow(row.get(0)?), row.get(1)?)))
        .optional()
}

/// [`Op::CreateQueue`](crate::store::Op::CreateQueue).
pub(super) fn create(connection: &Connection, new: &NewQueue) -> rusqlite::Result<OpOutcome> {
    let record = &new.record;
    if record.recipient_keys.is_empty() || record.link_id.is_some() != new.link_data.is_some() {
        return Ok(OpOutcome::Conflict);
    }
    let (status, notice) = columns::status_columns(&record.status);
    let notifier = record.notifier.as_ref();
    // Only the unique indexes, all of them, can conflict here: nothing is inserted then.
    let inserted = connection
        .prepare_cached(
            "INSERT INTO queues (recipient_id, sender_id, recipient_keys, dh_secret, sender_key, mode, status, \
             blocking_notice, link_id, notifier_id, notifier_key, notifier_dh_secret, notifier_service, \
             recipient_service, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            record.recipient_id,
            record.sender_id,
            columns::key_list(&record.recipient_keys),
            record.dh_secret,
            record.sender_key,
            record.mode,
            status,
            notice,
            record.link_id,
            notifier.map(|n| n.id),
            notifier.map(|n| &n.key),
            notifier.map(|n| &n.dh_secret),
            notifier.and_then(|n| n.service),
            record.recipient_service,
            record.updated_at,
        ])?;
    if inserted == 0 {
        return Ok(OpOutcome::Duplicate);
    }
    if let Some(data) = &new.link_data {
        put_link_data(connection, QueueRow(connection.last_insert_rowid()), data)?;
    }
    services::note_created(connection, new)?;
    Ok(OpOutcome::Done)
}

/// [`Op::SecureQueue`](crate::store::Op::SecureQueue).
pub(super) fn secure(connection: &Connection, queue: QueueRow, key: &PublicAuthKey) -> rusqlite::Result<OpOutcome> {
    let current: Option<PublicAuthKey> = connection
        .prepare_cached("SELECT sender_key FROM queues WHERE queue = ?1")?
        .query_row([queue], |row| row.get(0))?;
    match current {
        Some(current) if current == *key => Ok(OpOutcome::Done),
        Some(_) => Ok(OpOutcome::Conflict),
        None => {
            let sql = "UPDATE queues SET sender_key = ?2 WHERE queue = ?1";
            connection.prepare_cached(sql)?.execute(params![queue, key])?;
            Ok(OpOutcome::Done)
        }
    }
}

/// [`Op::SetRecipientKeys`](crate::store::Op::SetRecipientKeys).
pub(super) fn set_recipient_keys(
    connection: &Connection,
    queue: QueueRow,
    keys: &[PublicAuthKey],
) -> rusqlite::Result<OpOutcome> {
    if keys.is_empty() {
        return Ok(OpOutcome::Conflict);
    }
    let sql = "UPDATE queues SET recipient_keys = ?2 WHERE queue = ?1";
    connection.prepare_cached(sql)?.execute(params![queue, columns::key_list(keys)])?;
    Ok(OpOutcome::Done)
}

/// Sets the status: [`Op::SuspendQueue`](crate::store::Op::SuspendQueue),
/// [`Op::BlockQueue`](crate::store::Op::BlockQueue) and [`Op::UnblockQueue`](crate::store::Op::UnblockQueue).
pub(super) fn set_status(
    connection: &Connection,
    queue: QueueRow,
    status: &QueueStatus,
) -> rusqlite::Result<OpOutcome> {
    let (number, notice) = columns::status_columns(status);
    let sql = "UPDATE queues SET status = ?2, blocking_notice = ?3 WHERE queue = ?1";
    connection.prepare_cached(sql)?.execute(params![queue, number, notice])?;
    Ok(OpOutcome::Done)
}

/// [`Op::Touch`](crate::store::Op::Touch). Most calls come on a day that is noted already and write nothing.
pub(super) fn touch(connection: &Connection, queue: QueueRow, day: Day) -> rusqlite::Result<OpOutcome> {
    let sql = "UPDATE queues SET updated_at = ?2 WHERE queue = ?1 AND updated_at IS NOT ?2";
    connection.prepare_cached(sql)?.execute(params![queue, day])?;
    Ok(OpOutcome::Done)
}

/// [`Op::SetLink`](crate::store::Op::SetLink).
pub(super) fn set_link(
    connection: &Connection,
    queue: QueueRow,
    link_id: QueueId,
    data: &LinkData,
) -> rusqlite::Result<OpOutcome> {
    let current = connection
        .prepare_cached("SELECT link_id, fixed = ?2 FROM queues JOIN link_data USING (queue) WHERE queue = ?1")?
        .query_row(params![queue, &data.fixed[..]], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match current {
        Some(link) if link != (link_id, true) => return Ok(OpOutcome::Conflict),
        Some(_) => {}
        None => {
            let sql = "UPDATE OR IGNORE queues SET link_id = ?2 WHERE queue = ?1";
            if connection.prepare_cached(sql)?.execute(params![queue, link_id])? == 0 {
                return Ok(OpOutcome::Duplicate);
            }
        }
    }
    put_link_data(connection, queue, data)?;
    Ok(OpOutcome::Done)
}

fn put_link_data(connection: &Connection, queue: QueueRow, data: &LinkData) -> rusqlite::Result<usize> {
    let sql = "INSERT OR REPLACE INTO link_data (queue, fixed, user) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![queue, &data.fixed[..], &data.user[..]])
}

/// [`Op::DeleteLink`](crate::store::Op::DeleteLink).
pub(super) fn delete_link(connection: &Connection, queue: QueueRow) -> rusqlite::Result<OpOutcome> {
    let sql = "UPDATE queues SET link_id = NULL WHERE queue = ?1 AND link_id IS NOT NULL";
    if connection.prepare_cached(sql)?.execute([queue])? > 0 {
        connection.prepare_cached("DELETE FROM link_data WHERE queue = ?1")?.execute([queue])?;
    }
    Ok(OpOutcome::Done)
}

/// The data of a link.
pub(super) fn link_data(connection: &Connection, link_id: &QueueId) -> rusqlite::Result<Option<LinkData>> {
    connection
        .prepare_cached("SELECT fixed, user FROM queues JOIN link_data USING (queue) WHERE link_id = ?1")?
        .query_row([link_id], |row| {
            let (fixed, user): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok(LinkData { fixed: Bytes::from(fixed), user: Bytes::from(user) })
        })
        .optional()
}

/// [`Op::SetNotifier`](crate::store::Op::SetNotifier) and, with `None`,
/// [`Op::DeleteNotifier`](crate::store::Op::DeleteNotifier).
pub(super) fn set_notifier(
    connection: &Connection,
    queue: QueueRow,
    notifier: Option<&Notifier>,
) -> rusqlite::Result<OpOutcome> {
    let was = connection
        .prepare_cached(
            "SELECT notifier_id, notifier_key, notifier_dh_secret, notifier_service FROM queues WHERE queue = ?1",
        )?
        .query_row([queue], |row| read_notifier(row, 0))?;
    if was.is_some() || notifier.is_some() {
        let sql = "UPDATE OR IGNORE queues SET notifier_id = ?2, notifier_key = ?3, notifier_dh_secret = ?4, \
                   notifier_service = ?5 WHERE queue = ?1";
        let changed = connection.prepare_cached(sql)?.execute(params![
            queue,
            notifier.map(|n| n.id),
            notifier.map(|n| &n.key),
            notifier.map(|n| &n.dh_secret),
            notifier.and_then(|n| n.service),
        ])?;
        if changed == 0 {
            return Ok(OpOutcome::Duplicate);
        }
        if let Some(was) = &was {
            services::remove(connection, was.service, ServiceRole::Notifier, &was.id)?;
        }
        if let Some(notifier) = notifier {
            services::add(connection, notifier.service, ServiceRole::Notifier, &notifier.id)?;
        }
    }
    Ok(OpOutcome::NotifierWas(was.map(Box::new)))
}

/// [`Op::DeleteQueue`](crate::store::Op::DeleteQueue): whole pages of messages are freed without being written.
pub(super) fn delete(connection: &Connection, queue: QueueRow, id: &QueueId) -> rusqlite::Result<OpOutcome> {
    let audience = services::audience(connection, queue, true)?;
    services::forget(connection, id, &audience)?;
    connection.prepare_cached("DELETE FROM messages WHERE queue = ?1")?.execute([queue])?;
    connection.prepare_cached("DELETE FROM link_data WHERE queue = ?1")?.execute([queue])?;
    connection.prepare_cached("DELETE FROM queues WHERE queue = ?1")?.execute([queue])?;
    Ok(OpOutcome::Deleted(audience))
}
