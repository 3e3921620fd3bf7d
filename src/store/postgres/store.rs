//! The store as the trait wants it: calls become work in one of the lines, rows become answers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::columns::{self, ColumnError, Columns};
use super::connect::{Connector, DatabaseOptions, StringError};
use super::lock::LockError;
use super::operation::Rules;
use super::pipeline::Param;
use super::pool;
use super::reader::Read;
use super::runtime::{self, Ended, Parts};
use super::schema::{Preparation, SchemaError};
use super::statements as sql;
use super::sweep::{PURGED, Sweep, Swept};
use super::writer::{Batch, Counters, Write};
use crate::protocol::command::{IdsHash, LinkData, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};
use crate::store::line::{Limits, Line, line};
use crate::store::op;
use crate::store::{
    Contents, Counts, Enrolled, ExpiryStep, FirstMessage, Looked, MessageSummary, Op, OpOutcome, Party, Peeked,
    QueueRecord, QueueState, ServiceCheck, ServiceRecord, Store, StoreError, StoreMetrics, Timestamp,
};

const SECONDS_PER_DAY: i64 = 86_400;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The database and its schema.
    pub database: DatabaseOptions,
    /// Connections at most, beside the one that holds the lock: half of them write, 2 at least.
    pub pool_size: usize,
    /// Messages that make a queue full.
    pub message_queue_quota: u32,
    /// Days for which a deleted queue's row is kept; 0: it is deleted at once.
    pub deleted_ttl: u32,
    /// Batches that may wait to be written, those being written included; and as many reads.
    pub max_waiting_batches: u32,
    /// Bytes that these batches may occupy; and as many for the reads.
    pub max_waiting_bytes: u32,
    /// How long a batch waits for a place before it is answered [`StoreError::Overloaded`].
    pub wait_timeout: Duration,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a statement, or a group of them, may take before it is answered [`StoreError::Failed`].
    pub statement_timeout: Duration,
}

impl PostgresOptions {
    /// The defaults for a database.
    pub fn new(database: DatabaseOptions) -> Self {
        PostgresOptions {
            database,
            pool_size: 10,
            message_queue_quota: 128,
            deleted_ttl: 21,
            max_waiting_batches: 1024,
            max_waiting_bytes: 16 * 1024 * 1024,
            wait_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection string.
    #[error(transparent)]
    String(#[from] StringError),
    /// Another process has it, or there is no connection.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The database has not what the store needs.
    #[error("the database cannot be used: {0}")]
    Store(#[from] StoreError),
    /// The store's thread cannot be started.
    #[error("the store's thread: {0}")]
    Thread(io::Error),
}

/// A store in PostgreSQL.
///
/// To be closed with [`Store::close`]. Merely dropped, its thread finishes what it was given and ends by itself, a little
/// later.
pub struct PostgresStore {
    writes: Line<Write>,
    reads: Line<Read>,
    counters: Arc<Counters>,
    deleted_ttl: u32,
    /// Where the next step of expiry goes on.
    expired_to: Mutex<Vec<u8>>,
    /// `None` once it was closed.
    thread: Mutex<Option<Ended>>,
}

impl PostgresStore {
    /// Opens the store; makes or migrates its schema, as `how` says. Blocks until that is done and there is a connection.
    ///
    /// # Errors
    /// The connection string is wrong, the database cannot be reached, another process uses the schema, or the schema is not
    /// as it must be; each text says what to do.
    pub fn open(options: &PostgresOptions, how: Preparation<'_>) -> Result<Self, OpenError> {
        let limits = Limits {
            places: options.max_waiting_batches.max(1),
            bytes: options.max_waiting_bytes.max(1),
            wait: options.wait_timeout,
        };
        let (writes, write_line) = line(limits);
        let (reads, read_line) = line(limits);
        let counters = Arc::new(Counters::default());
        let writers = (options.pool_size / 2).max(1);
        let parts = Parts {
            connector: Connector::new(&options.database)?,
            writers,
            readers: options.pool_size.saturating_sub(writers).max(1),
            limits: pool::Limits { connect: options.connect_timeout, statement: options.statement_timeout },
            rules: Rules { quota: options.message_queue_quota, keep_deleted: options.deleted_ttl > 0 },
            writes: write_line,
            reads: read_line,
            counters: counters.clone(),
        };
        let ended = runtime::start(parts, how)?;
        Ok(PostgresStore {
            writes,
            reads,
            counters,
            deleted_ttl: options.deleted_ttl,
            expired_to: Mutex::default(),
            thread: Mutex::new(Some(ended)),
        })
    }

    /// The rows of a statement.
    async fn read(
        &self,
        sql: &'static str,
        weight: usize,
        params: Vec<Param<'static>>,
    ) -> Result<Vec<Row>, StoreError> {
        let (answer, rows) = oneshot::channel();
        self.reads.hand_over(weight, Read { sql, params, answer }, rows).await
    }

    /// One value for each of `ids`, of the rows that have its place in the first column; `absent` for those without a row.
    async fn read_each<T: Clone>(
        &self,
        sql: &'static str,
        ids: &[QueueId],
        more: Option<i64>,
        absent: T,
        value: impl Fn(&mut Columns<'_>) -> Result<T, ColumnError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut params: Vec<Param<'static>> = vec![Box::new(ids.to_vec())];
        params.extend(more.map(|more| Box::new(more) as Param<'static>));
        let rows = self.read(sql, size_of_val(ids), params).await?;
        placed(&rows, ids.len(), absent, value)
    }

    async fn sweep(&self, sweep: Sweep) -> Result<Swept, StoreError> {
        let (answer, swept) = oneshot::channel();
        self.writes.hand_over(0, Write::Sweep(sweep, answer), swept).await
    }

    fn expired_to(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.expired_to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of each place; or the places of all rows that cannot be read, so that the others need not suffer from them.
fn placed<T: Clone>(
    rows: &[Row],
    places: usize,
    absent: T,
    value: impl Fn(&mut Columns<'_>) -> Result<T, ColumnError>,
) -> Result<Vec<T>, StoreError> {
    let mut values = vec![absent; places];
    let mut wrong = Vec::new();
    for row in rows {
        let mut columns = Columns::from(row, 0);
        let number = columns.take::<i64>().map_err(unreadable)?;
        let Some((place, slot)) = usize::try_from(number - 1).ok().and_then(|at| Some((at, values.get_mut(at)?)))
        else {
            continue;
        };
        match value(&mut columns) {
            Ok(value) => *slot = value,
            Err(error) => wrong.push((place, error)),
        }
    }
    match wrong.first() {
        None => Ok(values),
        Some((_, error)) => {
            let (reason, places) = (error.to_string(), wrong.iter().map(|(place, _)| *place).collect());
            Err(StoreError::Unreadable { places, reason })
        }
    }
}

/// What stands first in a queue: whether there is a message, the queue's secret, the message if it was read.
fn peeked(columns: &mut Columns<'_>) -> Result<Peeked, ColumnError> {
    let (waits, dh_secret): (bool, _) = (columns.take()?, columns.take()?);
    Ok(match columns.peek::<Option<i64>>()? {
        _ if !waits => Peeked::Empty,
        None => Peeked::Waiting,
        Some(_) => Peeked::Message(Box::new(FirstMessage { message: columns::message(columns)?, dh_secret })),
    })
}

/// A queue, and whether it is empty by the count that stands in its row.
fn to_subscribe(columns: &mut Columns<'_>) -> Result<(QueueRecord, Contents), ColumnError> {
    let record = columns::queue_record(columns)?;
    Ok((record, if columns.take()? { Contents::Empty } else { Contents::Unknown }))
}

fn queue_state(columns: &mut Columns<'_>) -> Result<QueueState, ColumnError> {
    let size = columns.take::<i64>()?.unsigned_abs();
    // An ID that cannot be read cannot be told either.
    let Ok(Some(id)) = columns.take() else { return Ok(QueueState { size, first: None }) };
    let timestamp = Timestamp { seconds: columns.take()?, nanoseconds: 0 };
    Ok(QueueState { size, first: Some(MessageSummary { id, timestamp, quota: columns.take()? }) })
}

/// What became of a service: its ID, its role, whether it is new.
fn enrolled(row: &Row, role: ServiceRole) -> Result<Enrolled, ColumnError> {
    let mut columns = Columns::from(row, 0);
    let (id, found): (_, ServiceRole) = (columns.take()?, columns.take()?);
    Ok(match columns.take()? {
        true => Enrolled::New,
        false if found == role => Enrolled::Known(id),
        false => Enrolled::OtherRole,
    })
}

fn service_queues(columns: &mut Columns<'_>) -> Result<ServiceQueues, ColumnError> {
    Ok(ServiceQueues { count: columns.take()?, hash: columns.take()? })
}

fn service_check(columns: &mut Columns<'_>) -> Result<ServiceCheck, ColumnError> {
    let (service, role) = (columns.take()?, columns.take()?);
    Ok(ServiceCheck { service, role, kept: service_queues(columns)?, counted: service_queues(columns)? })
}

fn counts(rows: &[Row]) -> Result<Counts, ColumnError> {
    let Some(row) = rows.first() else { return Ok(Counts::default()) };
    let mut columns = Columns::from(row, 0);
    let mut count = || columns.take::<i64>().map(i64::unsigned_abs);
    Ok(Counts { queues: count()?, messages: count()? })
}

fn unreadable(error: ColumnError) -> StoreError {
    StoreError::Failed(error.to_string())
}

#[async_trait]
impl Store for PostgresStore {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        let sql = match party {
            Party::Recipient => sql::RECORDS_BY_RECIPIENT,
            Party::Sender => sql::RECORDS_BY_SENDER,
            Party::Notifier => sql::RECORDS_BY_NOTIFIER,
            Party::Link => sql::RECORDS_BY_LINK,
        };
        self.read_each(sql, ids, None, None, |columns| columns::queue_record(columns).map(Some)).await
    }

    async fn queues_to_subscribe(&self, ids: &[QueueId]) -> Result<Vec<Option<(QueueRecord, Contents)>>, StoreError> {
        self.read_each(sql::RECORDS_BY_RECIPIENT, ids, None, None, |columns| to_subscribe(columns).map(Some)).await
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let value = |columns: &mut Columns<'_>| {
            let service = columns.take::<Option<&[u8]>>()?.and_then(ServiceId::from_slice);
            let first = peeked(columns).unwrap_or_else(|error| Peeked::Unreadable(unreadable(error)));
            Ok(Looked { service, first })
        };
        let absent = Looked { service: None, first: Peeked::Absent };
        self.read_each(sql::FIRST_MESSAGES, ids, Some(limit), absent, value).await
    }

    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
        self.read_each(sql::STATES, ids, None, QueueState::default(), queue_state).await
    }

    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
        self.read_each(sql::LINK_DATA, link_ids, None, None, |columns| columns::link_data(columns).map(Some)).await
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
        let (answer, outcomes) = oneshot::channel();
        self.writes.hand_over(op::weight(&ops), Write::Batch(Batch { ops, answer }), outcomes).await
    }

    async fn expire_messages(&self, before: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError> {
        let after = self.expired_to().clone();
        let swept = self.sweep(Sweep::Expire { before: before.seconds, limit, after }).await?;
        let more = swept.next.is_some();
        *self.expired_to() = swept.next.unwrap_or_default();
        Ok(ExpiryStep { deleted: u32::try_from(swept.deleted).unwrap_or(u32::MAX), more })
    }

    async fn purge_deleted_queues(&self, now: Timestamp) -> Result<u64, StoreError> {
        let before = now.seconds - i64::from(self.deleted_ttl) * SECONDS_PER_DAY;
        let mut purged = 0;
        loop {
            let deleted = self.sweep(Sweep::Purge { before }).await?.deleted;
            purged += deleted;
            if deleted < PURGED.unsigned_abs() {
                return Ok(purged);
            }
        }
    }

    async fn enrol(&self, service: ServiceRecord) -> Result<Enrolled, StoreError> {
        // Two find nothing and insert at the same moment at most once: then the other one's is there.
        for _ in 0..2 {
            let rows = self.read(sql::ENROL, 0, columns::service_params(&service)).await?;
            if let Some(row) = rows.first() {
                return enrolled(row, service.role).map_err(unreadable);
            }
        }
        Err(StoreError::Failed("a service could neither be found nor inserted".to_owned()))
    }

    async fn service_queues(&self, service: ServiceId, role: ServiceRole) -> Result<ServiceQueues, StoreError> {
        let rows = self.read(sql::SERVICE_QUEUES, 0, vec![Box::new(service), Box::new(role)]).await?;
        match rows.first() {
            Some(row) => service_queues(&mut Columns::from(row, 0)).map_err(unreadable),
            None => Ok(ServiceQueues { count: 0, hash: IdsHash::default() }),
        }
    }

    async fn waiting_queues(
        &self,
        service: ServiceId,
        after: Option<QueueId>,
        limit: usize,
    ) -> Result<Vec<QueueId>, StoreError> {
        let after = after.map_or_else(Vec::new, |id| id.0.to_vec());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.read(sql::WAITING_QUEUES, 0, vec![Box::new(service), Box::new(after), Box::new(limit)]).await?;
        rows.iter().map(|row| Columns::from(row, 0).take().map_err(unreadable)).collect()
    }

    async fn check_services(&self, repair: bool) -> Result<Vec<ServiceCheck>, StoreError> {
        let rows = self.read(sql::CHECK_SERVICES, 0, Vec::new()).await?;
        let checks: Vec<ServiceCheck> = rows
            .iter()
            .map(|row| service_check(&mut Columns::from(row, 0)).map_err(unreadable))
            .collect::<Result<_, _>>()?;
        if repair && checks.iter().any(|check| check.kept != check.counted) {
            self.read(sql::REPAIR_SERVICES, 0, Vec::new()).await?;
        }
        Ok(checks)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        counts(&self.read(sql::COUNTS, 0, Vec::new()).await?).map_err(unreadable)
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.reads.end();
        self.writes.end();
        let ended = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(StoreError::Closed)?;
        let _always_an_error = ended.await;
        Ok(())
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics {
            writes: self.writes.metrics(),
            reads: self.reads.metrics(),
            groups: self.counters.groups.load(Ordering::Relaxed),
            operations: self.counters.operations.load(Ordering::Relaxed),
            failures: self.counters.failures.load(Ordering::Relaxed),
            round_trips: self.counters.round_trips.load(Ordering::Relaxed),
        }
    }
}
