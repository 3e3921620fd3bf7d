//! The tasks that write.
//!
//! Each takes what waits, up to a limit, and does all of it in one transaction and one round trip: the more waits, the more
//! share a commit, and nobody waits for a group to fill. Answers go out when the commit was answered.
//!
//! If a statement fails, nothing was done, and each batch of the group is tried alone, so that one that cannot be done does
//! not fail its neighbours. If the connection breaks or the database does not answer in time, the group may have been
//! committed or not, and may yet be: all of it is answered as failed, once the database is through with it as far as can be
//! seen, and nothing is ever sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Mutex, oneshot};

use super::operation::{self, Plan, Rules, inserts_ids};
use super::pipeline::{self, Failure};
use super::pool::Pool;
use super::runtime::{SharedLine, take};
use super::sweep::{self, Sweep};
use crate::store::line::Queued;
use crate::store::record::Timestamp;
use crate::store::{Op, OpOutcome, StoreError};

/// A group takes no more batches once it has this many operations: about the largest block of a client, twice.
const GROUP_OPERATIONS: usize = 512;

/// Or this many bytes: 64 of the largest messages.
const GROUP_BYTES: u32 = 1024 * 1024;

/// What the store has done.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) groups: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) round_trips: AtomicU64,
}

/// Work in the line.
pub(super) enum Write {
    /// Operations of one caller.
    Batch(Batch),
    /// A step of housekeeping.
    Sweep(Sweep, sweep::Answer),
}

/// Operations that are done together or not at all.
pub(super) struct Batch {
    pub(super) ops: Vec<Op>,
    pub(super) answer: oneshot::Sender<Result<Vec<OpOutcome>, StoreError>>,
}

impl Write {
    fn operations(&self) -> usize {
        match self {
            Write::Batch(batch) => batch.ops.len(),
            Write::Sweep(..) => 1,
        }
    }
}

/// A writer: what all of them share.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) pool: Arc<Pool>,
    pub(super) counters: Arc<Counters>,
    pub(super) rules: Rules,
    /// Held during a transaction that inserts IDs which clients choose: two groups that insert the same ones in different
    /// orders would otherwise wait for each other at the indexes.
    pub(super) inserting: Arc<Mutex<()>>,
}

impl Writer {
    /// Serves the line until it is closed and empty.
    pub(super) async fn run(self, line: SharedLine<Write>) {
        while let Some(group) = take(&line, fits).await {
            let (mut batches, mut sweeps) = (Vec::new(), Vec::new());
            for queued in group {
                match queued.work() {
                    Write::Batch(_) => batches.push(queued),
                    Write::Sweep(..) => sweeps.push(queued),
                }
            }
            if !batches.is_empty() {
                self.write(batches).await;
            }
            for queued in sweeps {
                self.sweep(queued).await;
            }
        }
    }

    async fn write(&self, group: Vec<Queued<Write>>) {
        match self.commit(&group).await {
            Err(Failure::Statement(_)) if group.len() > 1 => {
                for batch in group {
                    let alone = vec![batch];
                    let outcome = self.commit(&alone).await;
                    self.answer(alone, outcome);
                }
            }
            outcome => self.answer(group, outcome),
        }
    }

    /// Does the whole group, or nothing; answers the outcomes of all its operations.
    async fn commit(&self, group: &[Queued<Write>]) -> Result<Vec<OpOutcome>, Failure> {
        let ops: Vec<&Op> = group.iter().flat_map(|queued| operations(queued.work())).collect();
        let _alone = match ops.iter().any(|op| inserts_ids(op)) {
            true => Some(self.inserting.lock().await),
            false => None,
        };
        let mut plan = Plan::new(&ops, self.rules, now());
        let steps = plan.take_steps();
        if steps.is_empty() {
            return plan.outcomes(&ops, &[]).map_err(|error| failure(&error));
        }
        let connection = self.pool.get().await.map_err(Failure::Database)?;
        self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
        let done = connection.within(async |client| pipeline::transaction(client, steps).await).await;
        let done = done.unwrap_or_else(|error| Err(Failure::Doubt(error)));
        if matches!(done, Err(Failure::Doubt(_))) {
            self.settle(&ops).await;
        }
        plan.outcomes(&ops, &done?).map_err(|error| failure(&error))
    }

    /// Waits until the database is through with a group that was given up, by asking for the locks that the group has, but
    /// not for longer than a statement may take. Who is told that a message is in doubt looks at once, and only once: were
    /// it committed after that, it would lie there unseen, and hold up those that come after it.
    async fn settle(&self, ops: &[&Op]) {
        let Some(lock) = operation::lock(ops) else { return };
        let Ok(connection) = self.pool.get().await else { return };
        self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
        // Whatever is answered, there is nothing more to wait for.
        let _ = connection.within(async |client| pipeline::statements(client, vec![lock]).await).await;
    }

    fn answer(&self, group: Vec<Queued<Write>>, outcome: Result<Vec<OpOutcome>, Failure>) {
        match outcome {
            Ok(outcomes) => {
                self.counters.groups.fetch_add(1, Ordering::Relaxed);
                self.counters.operations.fetch_add(outcomes.len() as u64, Ordering::Relaxed);
                let mut outcomes = outcomes.into_iter();
                for queued in group {
                    let own = outcomes.by_ref().take(queued.work().operations()).collect();
                    reply(queued, Ok(own));
                }
            }
            Err(failure) => {
                let error = StoreError::from(failure);
                self.counters.failures.fetch_add(group.len() as u64, Ordering::Relaxed);
                group.into_iter().for_each(|queued| reply(queued, Err(error.clone())));
            }
        }
    }

    async fn sweep(&self, queued: Queued<Write>) {
        let Write::Sweep(sweep, answer) = queued.leave() else { return };
        let swept = sweep::run(&self.pool, sweep).await;
        match &swept {
            Ok((_, round_trips)) => self.counters.round_trips.fetch_add(*round_trips, Ordering::Relaxed),
            Err(_) => self.counters.failures.fetch_add(1, Ordering::Relaxed),
        };
        // An error here means that the asker has gone.
        let _gone = answer.send(swept.map(|(swept, _)| swept));
    }
}

/// Whether one more may join this group.
fn fits(group: &[Queued<Write>]) -> bool {
    let operations: usize = group.iter().map(|queued| queued.work().operations()).sum();
    let bytes: u64 = group.iter().map(|queued| u64::from(queued.weight())).sum();
    operations < GROUP_OPERATIONS && bytes < u64::from(GROUP_BYTES)
}

fn operations(write: &Write) -> &[Op] {
    match write {
        Write::Batch(batch) => &batch.ops,
        Write::Sweep(..) => &[],
    }
}

fn reply(queued: Queued<Write>, outcome: Result<Vec<OpOutcome>, StoreError>) {
    if let Write::Batch(batch) = queued.leave() {
        // An error here means that the asker has gone, which changes nothing about what was done.
        let _gone = batch.answer.send(outcome);
    }
}

/// A row that was written and cannot be read is the database's fault, and the operation was done.
fn failure(error: &super::columns::ColumnError) -> Failure {
    Failure::Database(StoreError::Failed(error.to_string()))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanoseconds: 0 }
}
