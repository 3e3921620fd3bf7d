//! The thread on which the store's connections and tasks live, with a runtime of its own: a connection of the server may
//! end with the arbiter that it lives on, one to the database must not.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::connect::Connector;
use super::lock::{LockError, LockEvent, SchemaLock};
use super::operation::Rules;
use super::pool::{Limits, Pool};
use super::reader::{self, Read};
use super::schema::{self, Preparation, Prepared};
use super::store::OpenError;
use super::writer::{Counters, Write, Writer};
use crate::store::line::Queued;

/// The end of a line that several tasks share. Those that have nothing to do wait here for each other.
pub(super) type SharedLine<W> = Arc<Mutex<mpsc::Receiver<Queued<W>>>>;

/// Resolves, to an error, when the thread has ended and closed its connections.
pub(super) type Ended = oneshot::Receiver<Infallible>;

/// How often a lock that was lost is tried to be taken again.
const RELOCK_INTERVAL: Duration = Duration::from_secs(5);

/// What the thread works with.
pub(super) struct Parts {
    pub(super) connector: Connector,
    pub(super) writers: usize,
    pub(super) readers: usize,
    pub(super) limits: Limits,
    pub(super) rules: Rules,
    pub(super) writes: mpsc::Receiver<Queued<Write>>,
    pub(super) reads: mpsc::Receiver<Queued<Read>>,
    pub(super) counters: Arc<Counters>,
}

/// What waits, as long as more fits: at least one; `None` when the line is closed and empty.
pub(super) async fn take<W>(line: &SharedLine<W>, fits: impl Fn(&[Queued<W>]) -> bool) -> Option<Vec<Queued<W>>> {
    let mut line = line.lock().await;
    let mut taken = vec![line.recv().await?];
    while fits(&taken) {
        let Ok(next) = line.try_recv() else { break };
        taken.push(next);
    }
    Some(taken)
}

/// Starts the thread; returns when there is a connection to a schema that is ready and ours alone, or why not.
///
/// The schema is made ready in a thread that ends before this returns, as `how` is borrowed. Whoever opens the store may be
/// a task of another runtime: there, ours can neither be entered nor dropped.
pub(super) fn start(parts: Parts, how: Preparation<'_>) -> Result<Ended, OpenError> {
    let (alive, ended) = oneshot::channel();
    let (hand_over, taken) = sync_channel::<(Runtime, Parts, SchemaLock, Pool)>(1);
    let run = move || {
        // Nothing comes when opening has failed.
        if let Ok((runtime, parts, lock, pool)) = taken.recv() {
            runtime.block_on(serve(parts, lock, pool));
        }
        drop(alive);
    };
    thread().spawn(run).map_err(OpenError::Thread)?;
    let opened = std::thread::scope(|scope| {
        let opening = thread().spawn_scoped(scope, move || open(parts, how, &hand_over));
        opening.map_err(OpenError::Thread)?.join().unwrap_or_else(|_| Err(gone()))
    });
    opened.map(|()| ended)
}

/// Opens, and hands over to the thread that serves.
fn open(
    parts: Parts,
    how: Preparation<'_>,
    hand_over: &SyncSender<(Runtime, Parts, SchemaLock, Pool)>,
) -> Result<(), OpenError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
    let (lock, pool) = runtime.block_on(connect(&parts, how))?;
    hand_over.send((runtime, parts, lock, pool)).map_err(|_| gone())
}

fn gone() -> OpenError {
    OpenError::Thread(io::Error::other("it has ended"))
}

fn thread() -> std::thread::Builder {
    std::thread::Builder::new().name("store-postgres".into())
}

async fn connect(parts: &Parts, how: Preparation<'_>) -> Result<(SchemaLock, Pool), OpenError> {
    let connector = &parts.connector;
    let lock = SchemaLock::take(connector).await?;
    let mut client = connector.connect().await.map_err(LockError::from)?;
    match schema::prepare(&mut client, connector.schema(), how).await? {
        Prepared::Opened => {}
        Prepared::Created => tracing::info!("the database's schema {} was created", connector.schema()),
        Prepared::Migrated(migrations) => tracing::info!(migrations, "the database's schema was migrated"),
    }
    let pool = Pool::new(connector, parts.writers + parts.readers, parts.limits)?;
    // Not to find out only when the first client asks.
    drop(pool.get().await?);
    Ok((lock, pool))
}

/// Runs the tasks until the lines are closed and empty.
async fn serve(parts: Parts, lock: SchemaLock, pool: Pool) {
    let mut tasks = JoinSet::new();
    let pool = Arc::new(pool);
    let (writes, reads) = (Arc::new(Mutex::new(parts.writes)), Arc::new(Mutex::new(parts.reads)));
    let writer =
        Writer { pool: pool.clone(), counters: parts.counters.clone(), rules: parts.rules, inserting: Arc::default() };
    for _ in 0..parts.writers {
        tasks.spawn(writer.clone().run(writes.clone()));
    }
    for _ in 0..parts.readers {
        tasks.spawn(reader::run(pool.clone(), reads.clone(), parts.counters.clone()));
    }
    drop((writes, reads));
    until_done(lock.keep(RELOCK_INTERVAL, tell), tasks).await;
    pool.close();
}

/// Drives `keeping` until all tasks have ended.
async fn until_done(keeping: impl Future<Output = ()>, mut tasks: JoinSet<()>) {
    let done = async {
        while let Some(ended) = tasks.join_next().await {
            if ended.is_err() {
                tracing::error!("a task of the store has panicked");
            }
        }
    };
    tokio::select! {
        () = keeping => {}
        () = done => {}
    }
}

fn tell(event: LockEvent) {
    match event {
        LockEvent::Lost => tracing::warn!("the connection that holds the lock of the database's schema is lost"),
        LockEvent::NotTaken(error) => tracing::warn!(%error, "the database's schema is not locked"),
        LockEvent::TakenAgain => tracing::info!("the database's schema is locked again"),
    }
}
