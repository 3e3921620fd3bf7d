//! The one thread that writes.
//!
//! It takes what waits, up to a limit, does all of it in one transaction, and answers after the commit: the more waits, the
//! more share a commit, and nobody waits for a group to fill. If a group fails, each of its batches is tried alone, so that
//! one that cannot be done does not fail its neighbours; a full disk fails them all, and the next group tries again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::open::{self, SharedConnection};
use super::work::{Queued, failed};

/// A group takes no more batches once it has this many operations: about the largest block of a client, twice.
const GROUP_OPERATIONS: usize = 512;

/// Or this many bytes: 64 of the largest messages. Past that a commit only takes longer (3 ms here), without being cheaper
/// for each.
const GROUP_BYTES: u32 = 1024 * 1024;

/// The write-ahead log is emptied by ordinary checkpoints, unless somebody reads all the time. Past this size, new readers
/// wait until it is empty.
const WAL_BYTES: u64 = 4 * open::WAL_BYTES;

/// Between attempts to empty it: each costs a little, and a warning.
const CHECKPOINT_PAUSE: Duration = Duration::from_secs(60);

/// What the writer has done.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) groups: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// The writer: state of its thread.
pub(super) struct Writer {
    pub(super) connection: SharedConnection,
    pub(super) counters: Arc<Counters>,
    /// The write-ahead log; absent in memory.
    pub(super) wal: Option<PathBuf>,
    /// When emptying it is tried again, after it could not be.
    pub(super) next_checkpoint: Option<Instant>,
}

impl Writer {
    /// Serves the line until it is closed and empty.
    pub(super) fn run(mut self, mut line: mpsc::Receiver<Queued>) {
        while let Some(first) = line.blocking_recv() {
            let group = group(first, &mut line);
            let connection = self.connection.clone();
            let mut connection = open::lock(&connection);
            self.write(&mut connection, group);
            self.bound_wal(&connection);
        }
    }

    fn write(&self, connection: &mut Connection, mut group: Vec<Queued>) {
        match commit(connection, &mut group) {
            Ok(()) => self.done(group),
            Err(error) if group.len() == 1 => self.fail(group, &error),
            Err(_) => group.into_iter().for_each(|batch| self.write(connection, vec![batch])),
        }
    }

    fn done(&self, group: Vec<Queued>) {
        let operations: usize = group.iter().map(|batch| batch.work().operations()).sum();
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        self.counters.operations.fetch_add(operations as u64, Ordering::Relaxed);
        group.into_iter().for_each(|batch| batch.leave().answer(Ok(())));
    }

    fn fail(&self, group: Vec<Queued>, error: &rusqlite::Error) {
        self.counters.failures.fetch_add(group.len() as u64, Ordering::Relaxed);
        group.into_iter().for_each(|batch| batch.leave().answer(Err(failed(error))));
    }

    fn bound_wal(&mut self, connection: &Connection) {
        let size = self.wal.as_ref().and_then(|wal| wal.metadata().ok()).map_or(0, |wal| wal.len());
        if size <= WAL_BYTES || self.next_checkpoint.is_some_and(|next| Instant::now() < next) {
            return;
        }
        self.next_checkpoint = Some(Instant::now() + CHECKPOINT_PAUSE);
        match checkpoint(connection) {
            Ok(true) => self.next_checkpoint = None,
            Ok(false) => tracing::warn!(size, "a reader keeps the store's write-ahead log from being emptied"),
            Err(error) => tracing::warn!(%error, size, "the store's write-ahead log could not be emptied"),
        }
    }
}

/// Empties the write-ahead log, if nobody reads from it: the writer must not wait for a reader. Whether it did.
fn checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(open::BUSY_TIMEOUT)?;
    busy.map(|busy| !busy)
}

/// The first batch and what else waits.
fn group(first: Queued, line: &mut mpsc::Receiver<Queued>) -> Vec<Queued> {
    let (mut operations, mut bytes) = (first.work().operations(), first.weight());
    let mut group = vec![first];
    while operations < GROUP_OPERATIONS && bytes < GROUP_BYTES {
        let Ok(next) = line.try_recv() else { break };
        operations += next.work().operations();
        bytes = bytes.saturating_add(next.weight());
        group.push(next);
    }
    group
}

/// Does the whole group, or nothing: a transaction that is not committed is rolled back when it is dropped.
fn commit(connection: &mut Connection, group: &mut [Queued]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for batch in group {
        batch.work_mut().run(&transaction)?;
    }
    transaction.commit()
}
