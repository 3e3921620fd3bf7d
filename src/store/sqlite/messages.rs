//! SQL on messages: the rules of quota, expiry and acknowledgement. Each function is one step inside the caller's
//! transaction.

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::queues::{self, QueueRow};
use super::services;
use crate::protocol::command::MessageFlags;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::op::SendMessage;
use crate::store::record::{Message, MessageContent, Timestamp};
use crate::store::{Counts, FirstMessage, Looked, MessageSummary, OpOutcome, Peeked, QueueState, Sent};

/// [`Op::Send`](crate::store::Op::Send) to a queue that is active; `quota` is how many messages make it full.
pub(super) fn send(
    connection: &Connection,
    queue: QueueRow,
    message: &SendMessage,
    quota: u32,
) -> rusqlite::Result<OpOutcome> {
    if message.delete_link {
        queues::delete_link(connection, queue)?;
    }
    let state = state(connection, queue, message.expire_before)?;
    if state.expired > 0 {
        let sql = "DELETE FROM messages WHERE queue = ?1 AND marker = 0 AND timestamp < ?2";
        connection.prepare_cached(sql)?.execute(params![queue, seconds(message.expire_before)])?;
    }
    if state.full {
        return Ok(OpOutcome::Quota);
    }
    let size = state.size - state.expired;
    let marker = size >= quota;
    let sequence = append(connection, queue, message, marker)?;
    Ok(match marker {
        true => OpOutcome::Quota,
        false => OpOutcome::Sent(Sent {
            sequence,
            was_empty: size == 0,
            expired: state.expired,
            audience: services::audience(connection, queue, message.flags.notification)?,
        }),
    })
}

/// What `SEND` needs to know of a queue, from the index alone.
struct State {
    /// Messages, with markers and expired ones.
    size: u32,
    /// Whether a quota marker stands at its end.
    full: bool,
    /// Messages older than asked.
    expired: u32,
}

fn state(connection: &Connection, queue: QueueRow, before: Option<Timestamp>) -> rusqlite::Result<State> {
    connection
        .prepare_cached(
            "SELECT count(*), coalesce(max(marker), 0), coalesce(sum(marker = 0 AND timestamp < ?2), 0) \
             FROM messages WHERE queue = ?1",
        )?
        .query_row(params![queue, seconds(before)], |row| {
            Ok(State { size: row.get(0)?, full: row.get(1)?, expired: row.get(2)? })
        })
}

/// Seconds before which messages are expired; none are before the least number.
fn seconds(before: Option<Timestamp>) -> i64 {
    before.map_or(i64::MIN, |before| before.seconds)
}

/// Appends the message, or the marker in its place; answers its number.
fn append(connection: &Connection, queue: QueueRow, message: &SendMessage, marker: bool) -> rusqlite::Result<u64> {
    let (notification, body): (bool, &[u8]) = match marker {
        true => (false, &[]),
        false => (message.flags.notification, &message.body),
    };
    connection
        .prepare_cached(
            "INSERT INTO messages (queue, timestamp, marker, notification, message_id, body) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![queue, message.timestamp.seconds, marker, notification, message.id, body])?;
    Ok(connection.last_insert_rowid().unsigned_abs())
}

/// [`Op::Acknowledge`](crate::store::Op::Acknowledge).
pub(super) fn acknowledge(
    connection: &Connection,
    queue: QueueRow,
    message: Option<MessageId>,
    with_next: bool,
) -> rusqlite::Result<OpOutcome> {
    let head: Option<(i64, bool, MessageId)> = connection
        .prepare_cached("SELECT sequence, marker, message_id FROM messages WHERE queue = ?1 ORDER BY sequence LIMIT 1")?
        .query_row([queue], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let acknowledged = head.filter(|(_, _, id)| message.is_none_or(|message| message == *id));
    if let Some((sequence, ..)) = acknowledged {
        connection.prepare_cached("DELETE FROM messages WHERE sequence = ?1")?.execute([sequence])?;
    }
    let deleted = matches!(acknowledged, Some((_, false, _)));
    let next = if with_next { first(connection, queue)?.map(Box::new) } else { None };
    let more = if with_next { next.is_some() } else { size(connection, queue)? > 0 };
    Ok(OpOutcome::Acknowledged { deleted, next, more })
}

/// The queue's first message.
fn first(connection: &Connection, queue: QueueRow) -> rusqlite::Result<Option<Message>> {
    connection
        .prepare_cached(
            "SELECT sequence, timestamp, marker, notification, message_id, body FROM messages \
             WHERE queue = ?1 ORDER BY sequence LIMIT 1",
        )?
        .query_row([queue], |row| read_message(row, 0))
        .optional()
}

/// The message in the six columns from `from` on.
pub(super) fn read_message(row: &Row<'_>, from: usize) -> rusqlite::Result<Message> {
    let content = match row.get(from + 2)? {
        true => MessageContent::Quota,
        false => MessageContent::Sent {
            flags: MessageFlags { notification: row.get(from + 3)? },
            body: Bytes::from(row.get::<_, Vec<u8>>(from + 5)?),
        },
    };
    Ok(Message {
        id: row.get(from + 4)?,
        sequence: row.get(from)?,
        timestamp: Timestamp { seconds: row.get(from + 1)?, nanoseconds: 0 },
        content,
    })
}

/// The first message of the queue with this recipient ID, and the secret it is encrypted with.
fn first_message(connection: &Connection, id: &QueueId) -> rusqlite::Result<Looked> {
    let found = connection
        .prepare_cached(
            "SELECT dh_secret, sequence, timestamp, marker, notification, message_id, body, recipient_service \
             FROM queues LEFT JOIN messages USING (queue) WHERE recipient_id = ?1 ORDER BY sequence LIMIT 1",
        )?
        .query_row([id], |row| {
            let service = row.get(7)?;
            if row.get_ref(1)? == ValueRef::Null {
                return Ok(Looked { service, first: Peeked::Empty });
            }
            let message = read_message(row, 1)?;
            let first = Peeked::Message(Box::new(FirstMessage { dh_secret: row.get(0)?, message }));
            Ok(Looked { service, first })
        })
        .optional()?;
    Ok(found.unwrap_or(ABSENT))
}

/// What is told of a queue that is not there.
const ABSENT: Looked = Looked { service: None, first: Peeked::Absent };

/// Whether the queue with this recipient ID has a message.
fn first_waits(connection: &Connection, id: &QueueId) -> rusqlite::Result<Looked> {
    let found: Option<(bool, Option<ServiceId>)> = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE messages.queue = queues.queue), recipient_service \
             FROM queues WHERE recipient_id = ?1",
        )?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match found {
        None => ABSENT,
        Some((false, service)) => Looked { service, first: Peeked::Empty },
        Some((true, service)) => Looked { service, first: Peeked::Waiting },
    })
}

fn size(connection: &Connection, queue: QueueRow) -> rusqlite::Result<u64> {
    connection.prepare_cached("SELECT count(*) FROM messages WHERE queue = ?1")?.query_row([queue], |row| row.get(0))
}

/// The first messages of these queues; at most `limit` are read.
pub(super) fn first_messages(connection: &Connection, ids: &[QueueId], limit: usize) -> rusqlite::Result<Vec<Looked>> {
    let mut left = limit;
    let mut peek = |id: &QueueId| -> rusqlite::Result<Looked> {
        let looked = if left > 0 { first_message(connection, id)? } else { first_waits(connection, id)? };
        left -= usize::from(matches!(looked.first, Peeked::Message(_)));
        Ok(looked)
    };
    ids.iter().map(&mut peek).collect()
}

/// Size and first message of the queue with this recipient ID.
pub(super) fn queue_state(connection: &Connection, id: &QueueId) -> rusqlite::Result<QueueState> {
    let size = connection
        .prepare_cached("SELECT count(*) FROM queues JOIN messages USING (queue) WHERE recipient_id = ?1")?
        .query_row([id], |row| row.get(0))?;
    Ok(QueueState { size, first: summary(connection, id)? })
}

fn summary(connection: &Connection, id: &QueueId) -> rusqlite::Result<Option<MessageSummary>> {
    connection
        .prepare_cached(
            "SELECT message_id, timestamp, marker FROM queues JOIN messages USING (queue) \
             WHERE recipient_id = ?1 ORDER BY sequence LIMIT 1",
        )?
        .query_row([id], |row| {
            let timestamp = Timestamp { seconds: row.get(1)?, nanoseconds: 0 };
            Ok(MessageSummary { id: row.get(0)?, timestamp, quota: row.get(2)? })
        })
        .optional()
}

/// [`Store::expire_messages`](crate::store::Store::expire_messages).
pub(super) fn expire(connection: &Connection, before: Timestamp, limit: u32) -> rusqlite::Result<u32> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM messages WHERE sequence IN (SELECT sequence FROM messages \
             WHERE marker = 0 AND timestamp < ?1 ORDER BY timestamp, sequence LIMIT ?2)",
        )?
        .execute(params![before.seconds, limit])?;
    Ok(u32::try_from(deleted).unwrap_or(u32::MAX))
}

/// How many of everything.
pub(super) fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    connection
        .prepare_cached("SELECT (SELECT count(*) FROM queues), (SELECT count(*) FROM messages)")?
        .query_row([], |row| Ok(Counts { queues: row.get(0)?, messages: row.get(1)? }))
}
