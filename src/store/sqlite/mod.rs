//! The embedded store: SQLite in one file, or in memory with nothing on disk.
//!
//! ```text
//!   apply, expire ──> Line ──> Writer (one thread): a group of batches, one commit, then the answers
//!   queues, ...   ──> Line ──> readers (a few threads), each with its own connection
//! ```
//!
//! - `work`: what stands in the line (`store::line`) before the threads;
//! - `writer`, `reader`: the threads;
//! - `open`, `schema`, `columns`: the file, its tables, and how values stand in them;
//! - `apply`, `queues`, `messages`: what each operation does;
//! - `transfer`: moving a closed store's content in and out;
//! - `scratch`: the same tables for the time of one job, without any of this.
//!
//! Nothing is kept in memory but SQLite's small caches: opening a store with a million queues reads a few pages. No call
//! of the trait blocks its thread, and no text of an error carries an ID or a key.

mod apply;
mod columns;
mod messages;
mod open;
mod queues;
mod reader;
mod schema;
pub(in crate::store) mod scratch;
mod services;
#[cfg(test)]
mod tests;
pub mod transfer;
mod work;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;

pub use open::{OpenError, StoreLock};

use self::open::Database;
use self::work::{Queued, Work};
use self::writer::{Counters, Writer};
use super::line::{self, Limits, Line};
use super::op;
use super::{
    Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, QueueRecord, QueueState, ServiceCheck, ServiceRecord,
    Store, StoreError, StoreMetrics, Timestamp,
};
use crate::protocol::command::{IdsHash, LinkData, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};

/// The name of the store's file in the directory that the settings name.
pub const FILE_NAME: &str = "smp-server.db";

/// What a commit outlives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// A power cut: each commit waits for the disk. With grouped commits it costs 6% of the throughput.
    Full,
    /// The end of the process, but not always a power cut: the last commits may be lost then, the file stays whole.
    Normal,
}

impl Sync {
    fn pragma(self) -> &'static str {
        match self {
            Sync::Full => "PRAGMA synchronous = FULL;",
            Sync::Normal => "PRAGMA synchronous = NORMAL;",
        }
    }
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file (its directory exists), or `None` for a store in memory.
    pub path: Option<PathBuf>,
    /// What a commit outlives.
    pub sync: Sync,
    /// Messages that make a queue full.
    pub message_queue_quota: u32,
    /// Threads and connections that read a file: 1 at least. A store in memory has one.
    pub readers: usize,
    /// Batches that may wait to be written, those being written included; and as many reads.
    pub max_waiting_batches: u32,
    /// Bytes that these batches may occupy; and as many for the reads.
    pub max_waiting_bytes: u32,
    /// How long a batch waits for a place before it is answered [`StoreError::Overloaded`].
    pub wait_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions {
            path: None,
            sync: Sync::Full,
            message_queue_quota: 128,
            readers: 2,
            max_waiting_batches: 1024,
            max_waiting_bytes: 16 * 1024 * 1024,
            wait_timeout: Duration::from_secs(10),
        }
    }
}

/// A store in SQLite.
///
/// To be closed with [`Store::close`]. Merely dropped, its threads finish what they were given and end by themselves, a
/// little later.
pub struct SqliteStore {
    writes: Line<Box<dyn Work>>,
    reads: Line<Box<dyn Work>>,
    counters: Arc<Counters>,
    message_queue_quota: u32,
    /// `None` once it was closed.
    threads: Mutex<Option<Threads>>,
}

/// Each resolves, to an error, when its thread has ended and closed its connection.
struct Threads {
    writer: Ended,
    readers: Vec<Ended>,
}

type Ended = oneshot::Receiver<std::convert::Infallible>;

impl SqliteStore {
    /// Opens the store, makes it if there is none, upgrades it if it is older. Blocks for some milliseconds.
    ///
    /// # Errors
    /// Each names the file: it is in use, newer, another program's, damaged, or cannot be opened.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let database = open::open(options)?;
        let limits = Limits {
            places: options.max_waiting_batches.max(1),
            bytes: options.max_waiting_bytes.max(1),
            wait: options.wait_timeout,
        };
        let (writes, write_line) = line::line(limits);
        let (reads, read_line) = line::line(limits);
        let counters = Arc::new(Counters::default());
        let path = || options.path.clone().unwrap_or_default();
        let threads = start(database, counters.clone(), write_line, Arc::new(Mutex::new(read_line)))
            .map_err(|source| OpenError::Io { path: path(), source })?;
        let message_queue_quota = options.message_queue_quota;
        Ok(SqliteStore { writes, reads, counters, message_queue_quota, threads: Mutex::new(Some(threads)) })
    }

    /// One read for each of `ids`, all of the same moment.
    async fn read_each<T: Send + 'static>(
        &self,
        ids: &[QueueId],
        read: impl Fn(&rusqlite::Connection, &QueueId) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<Vec<T>, StoreError> {
        let (weight, ids) = (size_of_val(ids), ids.to_vec());
        self.reads.submit(1, weight, move |connection| ids.iter().map(|id| read(connection, id)).collect()).await
    }
}

fn start(
    database: Database,
    counters: Arc<Counters>,
    writes: tokio::sync::mpsc::Receiver<Queued>,
    reads: reader::SharedLine,
) -> std::io::Result<Threads> {
    let Database { writer, readers, wal, lock } = database;
    let readers = readers.into_iter().map(|connection| {
        let (lock, reads) = (lock.clone(), reads.clone());
        spawn("store-reader", move || {
            reader::run(&connection, &reads);
            drop((connection, lock));
        })
    });
    let readers = readers.collect::<std::io::Result<_>>()?;
    let writer = spawn("store-writer", move || {
        Writer { connection: writer, counters, wal, next_checkpoint: None }.run(writes);
        drop(lock);
    })?;
    Ok(Threads { writer, readers })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<Ended> {
    let (alive, ended) = oneshot::channel();
    std::thread::Builder::new().name(name.into()).stack_size(THREAD_STACK_BYTES).spawn(move || {
        run();
        drop(alive);
    })?;
    Ok(ended)
}

/// SQLite needs some tens of KiB.
const THREAD_STACK_BYTES: usize = 512 * 1024;

#[async_trait]
impl Store for SqliteStore {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        self.read_each(ids, move |connection, id| queues::record(connection, party, id)).await
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        let (weight, ids) = (size_of_val(ids), ids.to_vec());
        self.reads.submit(1, weight, move |connection| messages::first_messages(connection, &ids, limit)).await
    }

    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
        self.read_each(ids, messages::queue_state).await
    }

    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
        self.read_each(link_ids, queues::link_data).await
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
        let quota = self.message_queue_quota;
        let (operations, weight) = (ops.len(), op::weight(&ops));
        self.writes.submit(operations, weight, move |connection| apply::apply_all(connection, &ops, quota)).await
    }

    async fn expire_messages(&self, before: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError> {
        let deleted = self.writes.submit(1, 0, move |connection| messages::expire(connection, before, limit)).await?;
        Ok(ExpiryStep { deleted, more: deleted == limit })
    }

    async fn enrol(&self, service: ServiceRecord) -> Result<Enrolled, StoreError> {
        let weight = service.certificate_chain.iter().map(|der| der.len()).sum();
        self.writes.submit(1, weight, move |connection| services::enrol(connection, &service)).await
    }

    async fn service_queues(&self, service: ServiceId, role: ServiceRole) -> Result<ServiceQueues, StoreError> {
        let found = self.reads.submit(1, 0, move |connection| services::queues_of(connection, service, role)).await?;
        Ok(found.unwrap_or(ServiceQueues { count: 0, hash: IdsHash::default() }))
    }

    async fn waiting_queues(
        &self,
        service: ServiceId,
        after: Option<QueueId>,
        limit: usize,
    ) -> Result<Vec<QueueId>, StoreError> {
        let read = move |connection: &rusqlite::Connection| services::waiting_queues(connection, service, after, limit);
        self.reads.submit(1, 0, read).await
    }

    async fn check_services(&self, repair: bool) -> Result<Vec<ServiceCheck>, StoreError> {
        self.writes.submit(1, 0, move |connection| services::check(connection, repair)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.reads.submit(1, 0, messages::counts).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.reads.end();
        self.writes.refuse();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(StoreError::Closed)?;
        for ended in threads.readers {
            let _always_an_error = ended.await;
        }
        // The writer's connection must be the last: the last one that closes copies the write-ahead log into the file and
        // deletes it, which a reader's is not able to do.
        self.writes.end();
        let _always_an_error = threads.writer.await;
        Ok(())
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics {
            writes: self.writes.metrics(),
            reads: self.reads.metrics(),
            groups: self.counters.groups.load(Ordering::Relaxed),
            operations: self.counters.operations.load(Ordering::Relaxed),
            failures: self.counters.failures.load(Ordering::Relaxed),
            round_trips: 0,
        }
    }
}
