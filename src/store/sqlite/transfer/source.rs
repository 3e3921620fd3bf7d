//! Reading all of a store, page by page.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use rusqlite::{Connection, Row, params};

use super::{failed, take_lock};
use crate::protocol::QueueId;
use crate::protocol::command::LinkData;
use crate::store::record::{NewQueue, ServiceRecord};
use crate::store::sqlite::columns::CertificateChain;
use crate::store::sqlite::messages::read_message;
use crate::store::sqlite::queues::{self, QueueRow};
use crate::store::sqlite::{StoreLock, Sync, open};
use crate::store::transfer::{Damage, Item, Source, TransferError};

/// Queues read at once; some hundred bytes each, or 16 KiB with a link.
const QUEUES: u32 = 256;

/// Messages read at once, up to 16 KiB each.
const MESSAGES: u32 = 64;

/// Services read at once, a few KiB each.
const SERVICES: u32 = 64;

/// A closed store's services, and its queues in the order of their recipient IDs, each followed by its messages.
pub struct SqliteSource {
    connection: Connection,
    path: PathBuf,
    services: Option<i64>,
    /// The recipient ID of the last queue read; empty before the first.
    last: Vec<u8>,
    waiting: VecDeque<Item>,
    /// Queues read whose messages were not.
    queues: VecDeque<(QueueRow, Box<NewQueue>)>,
    /// The queue whose messages are read, and the number of the last one.
    open: Option<(QueueRow, QueueId, u64)>,
    /// Queues and messages: given, and all.
    progress: (u64, u64),
    // After the connection.
    _lock: StoreLock,
}

impl SqliteSource {
    /// Opens the store and locks it.
    ///
    /// # Errors
    /// It is not there, in use, damaged, or not ours.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        if !path.exists() {
            return Err(TransferError::Store(format!("{} does not exist", path.display())));
        }
        let lock = take_lock(path)?;
        // As a server does: a write-ahead log that a crash has left is taken up, an older file upgraded.
        let connection =
            open::open_writer(path, Sync::Full).map_err(|error| TransferError::Store(error.to_string()))?;
        let all = prepare(&connection).map_err(failed(path))?;
        Ok(SqliteSource {
            connection,
            path: path.to_owned(),
            services: Some(0),
            last: Vec::new(),
            waiting: VecDeque::new(),
            queues: VecDeque::new(),
            open: None,
            progress: (0, all),
            _lock: lock,
        })
    }

    /// Goes on after this queue: its messages and everything before were moved already. To be called before anything is
    /// read; services are read all the same.
    ///
    /// # Errors
    /// Those of the database.
    pub fn skip_to(&mut self, queue: &QueueId) -> Result<(), TransferError> {
        let sql = "SELECT (SELECT count(*) FROM queues WHERE recipient_id <= ?1) + \
                   (SELECT count(*) FROM queues JOIN messages USING (queue) WHERE recipient_id <= ?1)";
        let skipped = self.connection.query_row(sql, [queue], |row| row.get(0)).map_err(failed(&self.path))?;
        self.progress.0 = skipped;
        self.last = queue.0.to_vec();
        Ok(())
    }

    /// Says which content this is: another after every change.
    ///
    /// # Errors
    /// The file cannot be looked at.
    pub fn mark(&self) -> Result<String, TransferError> {
        let metadata = std::fs::metadata(&self.path).map_err(TransferError::file(&self.path))?;
        let modified = metadata.modified().map_err(TransferError::file(&self.path))?;
        let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Ok(format!("sqlite {} {modified}", metadata.len()))
    }

    fn read_services(&mut self, after: i64, damaged: &mut dyn FnMut(Damage)) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(
            "SELECT service, service_id, role, certificate_chain, certificate_hash, created_at FROM services \
             WHERE service > ?1 ORDER BY service LIMIT ?2",
        )?;
        let mut rows = statement.query(params![after, SERVICES])?;
        self.services = None;
        while let Some(row) = rows.next()? {
            let number = row.get(0)?;
            self.services = Some(number);
            match usable(&self.path, number, read_service(row))? {
                Ok(service) => self.waiting.push_back(Item::Service(Box::new(service))),
                Err(damage) => damaged(damage),
            }
        }
        Ok(())
    }

    /// Reads the next page of queues; answers whether there was one.
    fn read_queues(&mut self, damaged: &mut dyn FnMut(Damage)) -> rusqlite::Result<bool> {
        let mut statement = self.connection.prepare_cached(
            "SELECT recipient_id, sender_id, recipient_keys, dh_secret, sender_key, mode, status, blocking_notice, \
             link_id, notifier_id, notifier_key, notifier_dh_secret, notifier_service, recipient_service, updated_at, \
             queue, fixed, user FROM queues LEFT JOIN link_data USING (queue) \
             WHERE recipient_id > ?1 ORDER BY recipient_id LIMIT ?2",
        )?;
        let mut rows = statement.query(params![self.last, QUEUES])?;
        let mut any = false;
        while let Some(row) = rows.next()? {
            any = true;
            self.last = row.get(0)?;
            let queue = QueueRow(row.get(15)?);
            match usable(&self.path, queue.0, read_queue(row))? {
                Ok(new) => self.queues.push_back((queue, Box::new(new))),
                Err(damage) => damaged(damage),
            }
        }
        Ok(any)
    }

    /// Reads more messages of the open queue; answers whether there were any.
    fn read_messages(&mut self, damaged: &mut dyn FnMut(Damage)) -> rusqlite::Result<bool> {
        let Some((queue, id, after)) = self.open else { return Ok(false) };
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, timestamp, marker, notification, message_id, body FROM messages \
             WHERE queue = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
        )?;
        let mut rows = statement.query(params![queue, after, MESSAGES])?;
        self.open = None;
        while let Some(row) = rows.next()? {
            let sequence: i64 = row.get(0)?;
            self.open = Some((queue, id, sequence.unsigned_abs()));
            match usable(&self.path, sequence, read_message(row, 0))? {
                Ok(message) => self.waiting.push_back(Item::Message(id, Box::new(message))),
                Err(damage) => damaged(damage),
            }
        }
        Ok(self.open.is_some())
    }

    /// The next queue, whose messages come next.
    fn next_queue(&mut self) -> Option<Item> {
        let (queue, new) = self.queues.pop_front()?;
        self.open = Some((queue, new.record.recipient_id, 0));
        Some(Item::Queue(new))
    }

    fn advance(&mut self, damaged: &mut dyn FnMut(Damage)) -> rusqlite::Result<Option<Item>> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Ok(Some(item));
            }
            if let Some(after) = self.services {
                self.read_services(after, damaged)?;
            } else if self.read_messages(damaged)? {
                // They wait now.
            } else if let Some(queue) = self.next_queue() {
                return Ok(Some(queue));
            } else if !self.read_queues(damaged)? {
                return Ok(None);
            }
        }
    }
}

impl Source for SqliteSource {
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        let item = self.advance(damaged).map_err(failed(&self.path))?;
        self.progress.0 += u64::from(matches!(item, Some(Item::Queue(_) | Item::Message(..))));
        Ok(item)
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some(self.progress)
    }
}

/// Brings all content into the file, so that the file tells whether it changed, and begins to read; answers how much there
/// is.
fn prepare(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.execute_batch("BEGIN")?;
    let sql = "SELECT (SELECT count(*) FROM queues) + (SELECT count(*) FROM messages)";
    connection.query_row(sql, [], |row| row.get(0))
}

fn read_service(row: &Row<'_>) -> rusqlite::Result<ServiceRecord> {
    Ok(ServiceRecord {
        id: row.get(1)?,
        role: row.get(2)?,
        certificate_chain: row.get::<_, CertificateChain>(3)?.0,
        certificate_hash: Bytes::from(row.get::<_, Vec<u8>>(4)?),
        created_at: row.get(5)?,
    })
}

fn read_queue(row: &Row<'_>) -> rusqlite::Result<NewQueue> {
    let record = queues::read_record(row)?;
    let (fixed, user): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(16)?, row.get(17)?);
    let data = || LinkData { fixed: fixed.unwrap_or_default().into(), user: user.unwrap_or_default().into() };
    let link_data = record.link_id.map(|_| data());
    Ok(NewQueue { record, link_data })
}

/// A value that cannot be read is damage of its row; any other error is one of the database.
fn usable<T>(path: &Path, row: i64, read: rusqlite::Result<T>) -> rusqlite::Result<Result<T, Damage>> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    match read {
        Err(error @ (FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..))) => {
            let (file, line, reason) = (path.to_owned(), row.unsigned_abs(), error.to_string());
            Ok(Err(Damage { file, line, reason }))
        }
        other => other.map(Ok),
    }
}
