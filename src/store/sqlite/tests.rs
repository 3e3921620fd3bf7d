//! The conformance suite on a file and in memory, and what only this store has: its file, its groups, a full disk.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Weak;

use bytes::Bytes;
use futures_util::{FutureExt, future, poll};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::protocol::ServiceId;
use crate::store::conformance::fixtures::*;
use crate::store::conformance::{Limits as TestLimits, Subject};
use crate::store::op::SendMessage;

/// A store in a directory, or in memory.
struct SqliteSubject {
    directory: Option<TempDir>,
    opened: Mutex<Weak<SqliteStore>>,
}

impl SqliteSubject {
    fn file() -> Self {
        SqliteSubject { directory: Some(tempfile::tempdir().unwrap()), opened: Mutex::default() }
    }

    fn memory() -> Self {
        SqliteSubject { directory: None, opened: Mutex::default() }
    }
}

#[async_trait]
impl Subject for SqliteSubject {
    async fn open(&self, limits: TestLimits) -> Arc<dyn Store> {
        let options = SqliteOptions {
            path: self.directory.as_ref().map(|directory| directory.path().join(FILE_NAME)),
            sync: Sync::Normal,
            message_queue_quota: limits.quota,
            readers: 2,
            max_waiting_batches: limits.max_waiting_batches,
            max_waiting_bytes: limits.max_waiting_bytes,
            wait_timeout: limits.wait_timeout,
        };
        let store = Arc::new(SqliteStore::open(&options).unwrap());
        *self.opened.lock().unwrap() = Arc::downgrade(&store);
        store
    }

    async fn stall_writes(&self) -> Box<dyn Send> {
        let store = self.opened.lock().unwrap().upgrade().unwrap();
        stall(&store).await
    }
}

/// Keeps the writer busy until the returned value is dropped.
async fn stall(store: &Arc<SqliteStore>) -> Box<dyn Send> {
    let (stall, released) = std::sync::mpsc::sync_channel::<()>(0);
    let (started, mut has_started) = tokio::sync::mpsc::channel(1);
    let store = store.clone();
    tokio::spawn(async move {
        let block = move |_: &Connection| {
            started.try_send(()).unwrap();
            assert!(released.recv().is_err());
            Ok(())
        };
        store.writes.submit(0, 0, block).await
    });
    has_started.recv().await.unwrap();
    Box::new(stall)
}

mod file {
    use super::SqliteSubject;
    store_conformance!(SqliteSubject::file());
    store_conformance_persistent!(SqliteSubject::file());
}

mod memory {
    use super::SqliteSubject;
    store_conformance!(SqliteSubject::memory());
}

fn options(directory: &TempDir) -> SqliteOptions {
    SqliteOptions { path: Some(directory.path().join(FILE_NAME)), ..SqliteOptions::default() }
}

fn open(directory: &TempDir) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&options(directory)).unwrap())
}

/// Message `m` to queue `n` with the largest body.
fn send_large(n: u8, m: u8) -> Op {
    Op::Send(Box::new(SendMessage { body: Bytes::from(vec![m; 16_088]), ..message(n, m) }))
}

fn open_error(path: &Path) -> OpenError {
    let options = SqliteOptions { path: Some(path.to_owned()), ..SqliteOptions::default() };
    let error = SqliteStore::open(&options).err().unwrap();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

#[tokio::test]
async fn a_second_store_on_the_file_is_refused_until_the_first_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(&directory);
    assert!(matches!(open_error(&directory.path().join(FILE_NAME)), OpenError::InUse(_)));
    first.close().await.unwrap();
    open(&directory).close().await.unwrap();
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    open(&directory).close().await.unwrap();
    let path = directory.path().join(FILE_NAME);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(open_error(&path), OpenError::Newer { found: 99, .. }));
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    let content = "no database at all ".repeat(100);
    std::fs::write(&text, &content).unwrap();
    assert!(matches!(open_error(&text), OpenError::Foreign(_)));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), content);

    let database = directory.path().join("database");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let content = std::fs::read(&database).unwrap();
    assert!(matches!(open_error(&database), OpenError::Foreign(_)));
    assert_eq!(std::fs::read(&database).unwrap(), content);
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    open(&directory).close().await.unwrap();
    let path = directory.path().join(FILE_NAME);
    let mut content = std::fs::read(&path).unwrap();
    content[100..16_384].fill(0xa5);
    std::fs::write(&path, content).unwrap();
    assert!(matches!(open_error(&path), OpenError::Database { .. }));
}

#[test]
fn a_file_that_cannot_be_made_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(open_error(&directory.path().join("absent").join(FILE_NAME)), OpenError::Io { .. }));
}

#[tokio::test]
async fn the_files_are_for_the_servers_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    store.apply(vec![create(queue(1))]).await.unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_settings_of_the_file_are_in_force() {
    let directory = tempfile::tempdir().unwrap();
    for (sync, number) in [(Sync::Full, 2), (Sync::Normal, 1)] {
        let store = SqliteStore::open(&SqliteOptions { sync, ..options(&directory) }).unwrap();
        let settings = |connection: &Connection| {
            let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            Ok((mode, pragma("page_size")?, pragma("synchronous")?, pragma("mmap_size")?))
        };
        let found = store.writes.submit(0, 0, settings).await.unwrap();
        assert_eq!(found, ("wal".to_owned(), 16_384, number, 0));
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn service_associations_are_kept() {
    let store = SqliteSubject::memory().open(TestLimits::default()).await;
    let mut new = rich_queue(1);
    new.record.recipient_service = Some(ServiceId([1; 24]));
    new.record.notifier.as_mut().unwrap().service = Some(ServiceId([2; 24]));
    done(&store, create(new.clone())).await;
    assert_eq!(record(&store, 1).await, Some(new.record));
}

#[tokio::test]
async fn a_store_in_memory_gives_the_memory_of_deleted_messages_back() {
    let store = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let pages = || store.writes.submit(0, 0, |c| c.pragma_query_value(None, "page_count", |row| row.get::<_, u64>(0)));
    let before = pages().await.unwrap();
    store.apply(vec![create(queue(1))]).await.unwrap();
    store.apply((0..100).map(|m| send_large(1, m)).collect()).await.unwrap();
    assert!(pages().await.unwrap() >= before + 100);
    store.apply(vec![Op::DeleteQueue { queue: recipient(1) }]).await.unwrap();
    assert!(pages().await.unwrap() <= before + 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn batches_that_wait_share_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    let stall = stall(&store).await;
    let mut batches: Vec<_> = (1..=50).map(|n| store.apply(vec![create(queue(n)), send(n, 1)])).collect();
    for batch in &mut batches {
        assert!(poll!(batch).is_pending());
    }
    drop(stall);
    for outcomes in future::join_all(batches).await {
        assert!(matches!(outcomes.unwrap()[..], [OpOutcome::Done, OpOutcome::Sent(_)]));
    }
    let metrics = store.metrics();
    assert_eq!((metrics.groups, metrics.operations, metrics.failures), (2, 100, 0));
    assert_eq!((metrics.writes.depth, metrics.writes.full), (0, 0));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_batch_that_fails_does_not_fail_its_neighbours() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    let stall = stall(&store).await;
    let mut before = store.apply(vec![create(queue(1))]);
    let mut failing = Box::pin(store.writes.submit(1, 0, |connection| {
        apply::apply_all(connection, &[create(queue(2))], 1)?;
        Err::<(), _>(rusqlite::Error::InvalidQuery)
    }));
    let mut after = store.apply(vec![create(queue(3))]);
    assert!(poll!(&mut before).is_pending() && poll!(&mut failing).is_pending() && poll!(&mut after).is_pending());
    drop(stall);
    assert_eq!(before.await.unwrap(), [OpOutcome::Done]);
    assert!(matches!(failing.await, Err(StoreError::Failed(_))));
    assert_eq!(after.await.unwrap(), [OpOutcome::Done]);
    let found = store.queues(Party::Recipient, &[1, 2, 3].map(recipient)).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(store.metrics().failures, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_fails_what_does_not_fit_and_is_recovered_from() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    store.apply(vec![create(queue(1)), send_large(1, 1)]).await.unwrap();
    let limit_pages = |more: Option<i64>| {
        store.writes.submit(0, 0, move |connection| {
            let used: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let most = more.map_or(1 << 30, |more| used + more);
            connection.pragma_update_and_check(None, "max_page_count", most, |row| row.get::<_, i64>(0))
        })
    };
    limit_pages(Some(10)).await.unwrap();
    let batches = (2..=30).map(|n| store.apply(vec![create(queue(n)), send_large(n, 1)]));
    let results = future::join_all(batches).await;
    assert!(results.iter().any(Result::is_ok) && results.iter().any(Result::is_err));
    for (n, result) in (2..).zip(&results) {
        let there = sizes(&*store, &[recipient(n)]).await == [1];
        assert_eq!(there, result.is_ok());
        assert!(matches!(result, Ok(_) | Err(StoreError::Failed(_))));
    }
    assert_eq!(sizes(&*store, &[recipient(1)]).await, [1]);
    // What makes room is possible on a full disk.
    store.apply(vec![acknowledge(1, 1)]).await.unwrap();
    limit_pages(None).await.unwrap();
    store.apply(vec![create(queue(100)), send_large(100, 1)]).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_write_ahead_log_stays_small_under_constant_reading() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    store.apply(vec![create(queue(1))]).await.unwrap();
    let ids = [recipient(1)];
    let wal = directory.path().join(format!("{FILE_NAME}-wal"));
    for m in 0..10 {
        let batches = (0..100).map(|_| store.apply(vec![send_large(1, m), acknowledge(1, m)]));
        let (writes, _reads) =
            future::join(future::join_all(batches), future::join_all((0..20).map(|_| store.first_messages(&ids, 1))))
                .await;
        assert!(writes.iter().all(Result::is_ok));
        assert!(wal.metadata().unwrap().len() < 20 * 1024 * 1024);
    }
    store.close().await.unwrap();
    assert!(!wal.exists());
}

#[tokio::test]
async fn a_dropped_store_finishes_what_it_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    let threads = store.threads.lock().unwrap().take().unwrap();
    assert!(store.apply(vec![create(queue(1)), send(1, 1)]).now_or_never().is_none());
    drop(store);
    for ended in threads.readers.into_iter().chain([threads.writer]) {
        assert!(ended.await.is_err());
    }
    let store = open(&directory);
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 1, messages: 1 });
    store.close().await.unwrap();
}

/// Names the directory of the store in the process that is to be killed.
const KILLED_STORE: &str = "SMP_KILLED_STORE";

/// Creates queues with a message each and says which are answered, until it is killed or, when nobody does that, ends
/// without closing the store.
async fn serve_until_killed(directory: &Path) -> ! {
    let options = SqliteOptions { path: Some(directory.join(FILE_NAME)), ..SqliteOptions::default() };
    let store = SqliteStore::open(&options).unwrap();
    for n in 0..=u8::MAX {
        store.apply(vec![create(queue(n)), send(n, 1), send(n, 2)]).await.unwrap();
        store.apply(vec![acknowledge(n, 1)]).await.unwrap();
        println!("\nanswered {n}");
    }
    std::process::exit(0)
}

/// This test runs itself in another process, which it kills.
#[tokio::test]
async fn what_was_answered_survives_kill_9() {
    if let Some(directory) = std::env::var_os(KILLED_STORE) {
        serve_until_killed(directory.as_ref()).await;
    }
    for answers in [1, 7, 40, 120] {
        let directory = tempfile::tempdir().unwrap();
        let answered = kill_after(answers, directory.path());
        let store = open(&directory);
        for n in answered {
            let first = peeked(store.first_messages(&[recipient(n)], 1).await.unwrap().remove(0)).unwrap();
            assert_is_message(&first.message, 2);
        }
        store.close().await.unwrap();
    }
}

/// Starts the other process and kills it when it has answered so often. What was answered by then.
fn kill_after(answers: usize, directory: &Path) -> Vec<u8> {
    let test = "store::sqlite::tests::what_was_answered_survives_kill_9";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(KILLED_STORE, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answered = lines.filter_map(|line| line.unwrap().strip_prefix("answered ")?.parse().ok());
    let mut all: Vec<u8> = answered.by_ref().take(answers).collect();
    assert_eq!(all.len(), answers);
    child.kill().unwrap();
    child.wait().unwrap();
    all.extend(answered);
    all
}
