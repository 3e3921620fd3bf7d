//! The tables of a store in a file that lives as long as one job: for what is too much for memory and need not outlive
//! the process. One thread, one transaction, no journal.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::{apply, queues, schema};
use crate::protocol::{QueueId, ServiceId};
use crate::store::record::NewQueue;
use crate::store::transfer::TransferError;
use crate::store::{Op, OpOutcome};

/// Queues and services for the time of one job.
pub(in crate::store) struct Scratch {
    connection: Connection,
}

/// What became of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) enum ServicePut {
    /// It is there now, or was there exactly so.
    There,
    /// Its ID or certificate belongs to a service with another certificate, ID or role.
    Conflict,
}

/// All statements stay prepared.
const STATEMENTS: usize = 64;

/// - `journal_mode`, `synchronous`: what is lost in a crash is made again.
/// - `cache_size`: in KiB. The inner pages and most leaves of the indexes of a million queues.
/// - `locking_mode`: nobody else knows the file.
const SETTINGS: &str = "
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA temp_store = MEMORY;
    PRAGMA mmap_size = 0;
    PRAGMA cache_size = -98304;
";

/// Services are kept in whatever form the job gives them, and queues that were deleted are remembered.
const MORE_TABLES: &str = "
    CREATE TABLE scratch_services (
        service_id BLOB PRIMARY KEY,
        certificate_hash BLOB NOT NULL UNIQUE,
        role TEXT NOT NULL,
        record BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE deleted_queues (recipient_id BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;
    BEGIN;
";

type Result<T> = rusqlite::Result<T>;

impl Scratch {
    /// Makes an empty one in `path`, in place of what an earlier job may have left there. The name is given up at once: the
    /// file is gone when the value or the process is.
    pub(in crate::store) fn create(path: &Path) -> std::result::Result<Self, TransferError> {
        let _ = std::fs::remove_file(path);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        file.map_err(TransferError::file(path))?;
        let scratch = Scratch::open(path).map_err(failed(path));
        std::fs::remove_file(path).map_err(TransferError::file(path))?;
        scratch
    }

    fn open(path: &Path) -> Result<Self> {
        let mut connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        schema::migrate(&mut connection, 0)?;
        connection.execute_batch(MORE_TABLES)?;
        Ok(Scratch { connection })
    }

    /// Does an operation on a queue.
    pub(in crate::store) fn apply(&self, op: &Op) -> Result<OpOutcome> {
        apply::apply(&self.connection, op, 0)
    }

    /// Whether there is a queue with this recipient ID.
    pub(in crate::store) fn has_queue(&self, id: &QueueId) -> Result<bool> {
        queues::find(&self.connection, id).map(|found| found.is_some())
    }

    /// Whether a queue has this notifier ID.
    pub(in crate::store) fn has_notifier(&self, id: &QueueId) -> Result<bool> {
        self.exists("SELECT 1 FROM queues WHERE notifier_id = ?1", id)
    }

    /// Whether [`Self::remember_deleted`] was told of this queue.
    pub(in crate::store) fn was_deleted(&self, id: &QueueId) -> Result<bool> {
        self.exists("SELECT 1 FROM deleted_queues WHERE recipient_id = ?1", id)
    }

    fn exists(&self, sql: &str, id: &QueueId) -> Result<bool> {
        self.connection.prepare_cached(sql)?.query_row([id], |_| Ok(())).optional().map(|row| row.is_some())
    }

    /// Notes that a queue was deleted.
    pub(in crate::store) fn remember_deleted(&self, id: &QueueId) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO deleted_queues VALUES (?1)";
        self.connection.prepare_cached(sql)?.execute([id]).map(drop)
    }

    /// Sets the service of a queue's recipient; whether there is the queue.
    pub(in crate::store) fn set_recipient_service(&self, queue: &QueueId, id: Option<ServiceId>) -> Result<bool> {
        let sql = "UPDATE queues SET recipient_service = ?2 WHERE recipient_id = ?1";
        self.connection.prepare_cached(sql)?.execute(params![queue, id]).map(|changed| changed > 0)
    }

    /// Sets the service of a queue's notifier; whether there are the queue and a notifier.
    pub(in crate::store) fn set_notifier_service(&self, queue: &QueueId, id: Option<ServiceId>) -> Result<bool> {
        let sql = "UPDATE queues SET notifier_service = ?2 WHERE recipient_id = ?1 AND notifier_id IS NOT NULL";
        self.connection.prepare_cached(sql)?.execute(params![queue, id]).map(|changed| changed > 0)
    }

    /// Takes queues from services that are not there; how many queues lost one.
    pub(in crate::store) fn drop_unknown_services(&self) -> Result<u64> {
        let mut dropped = 0;
        for column in ["recipient_service", "notifier_service"] {
            dropped += self.connection.execute(
                &format!(
                    "UPDATE queues SET {column} = NULL WHERE {column} IS NOT NULL \
                     AND NOT EXISTS (SELECT 1 FROM scratch_services WHERE service_id = {column})"
                ),
                [],
            )?;
        }
        Ok(dropped as u64)
    }

    /// Adds a service: its ID, what identifies it, what it does, and its record in the caller's own form.
    pub(in crate::store) fn put_service(
        &self,
        id: ServiceId,
        certificate_hash: &[u8],
        role: &str,
        record: &[u8],
    ) -> Result<ServicePut> {
        let insert = "INSERT INTO scratch_services VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        let inserted = self.connection.prepare_cached(insert)?.execute(params![id, certificate_hash, role, record])?;
        if inserted > 0 {
            return Ok(ServicePut::There);
        }
        let same = "SELECT 1 FROM scratch_services WHERE service_id = ?1 AND certificate_hash = ?2 AND role = ?3";
        let same = self.connection.prepare_cached(same)?.exists(params![id, certificate_hash, role])?;
        Ok(if same { ServicePut::There } else { ServicePut::Conflict })
    }

    /// The first service with an ID behind `after`: its ID and record.
    pub(in crate::store) fn service_after(&self, after: Option<ServiceId>) -> Result<Option<(ServiceId, Vec<u8>)>> {
        let after: &[u8] = after.as_ref().map_or(&[], |id| &id.0);
        let sql = "SELECT service_id, record FROM scratch_services WHERE service_id > ?1 ORDER BY service_id LIMIT 1";
        self.connection.prepare_cached(sql)?.query_row([after], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// At most `limit` queues behind `after`, in the order of their recipient IDs.
    pub(in crate::store) fn queues_after(&self, after: Option<QueueId>, limit: u32) -> Result<Vec<NewQueue>> {
        queues::queues_after(&self.connection, after, limit)
    }

    /// Numbers of services and of queues.
    pub(in crate::store) fn counts(&self) -> Result<(u64, u64)> {
        let sql = "SELECT (SELECT count(*) FROM scratch_services), (SELECT count(*) FROM queues)";
        self.connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

/// For `map_err` after work in `path`.
pub(in crate::store) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> TransferError + use<> {
    let path = path.to_owned();
    move |error| TransferError::File { path: path.clone(), source: std::io::Error::other(error) }
}
