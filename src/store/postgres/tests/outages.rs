//! A database that goes away, comes back, hangs: every call is answered in bounded time, and nothing that was answered as
//! done is lost or doubled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future;

use super::super::PostgresOptions;
use super::super::cluster::{Cluster, USER};
use super::proxy::Proxy;
use super::subject::{PostgresSubject, database, open};
use crate::protocol::MessageId;
use crate::store::conformance::fixtures::*;
use crate::store::op::SendMessage;
use crate::store::{MessageContent, Op, OpOutcome, Store, StoreError};

/// Longer than any call may take.
const BOUND: Duration = Duration::from_secs(20);

/// Message `number`: its number is its body.
fn numbered(n: u8, number: u64) -> Op {
    let mut id = [0; 24];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let body = Bytes::copy_from_slice(&number.to_be_bytes());
    Op::Send(Box::new(SendMessage { id: MessageId(id), body, ..message(n, 1) }))
}

/// What a sender was answered for each of its messages: whether it was done.
type Answers = BTreeMap<u64, bool>;

/// Does one operation in bounded time: whether it was done. Panics if that is answered otherwise than it may be.
async fn try_send(store: &Arc<dyn Store>, op: Op) -> bool {
    match tokio::time::timeout(BOUND, store.apply(vec![op])).await.expect("an answer in bounded time") {
        Ok(outcomes) => {
            assert!(matches!(outcomes[..], [OpOutcome::Sent(_)]), "{outcomes:?}");
            true
        }
        Err(StoreError::Failed(_) | StoreError::Overloaded) => false,
        Err(error @ (StoreError::Closed | StoreError::Unreadable { .. })) => panic!("{error}"),
    }
}

/// Sends to queue `n` one message after the other until `stop`.
async fn send_until(store: Arc<dyn Store>, n: u8, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) -> Answers {
    let mut answers = Answers::new();
    while !stop.load(Ordering::SeqCst) {
        let number = answers.len() as u64;
        let sent = try_send(&store, numbered(n, number)).await;
        answers.insert(number, sent);
        done.fetch_add(u64::from(sent), Ordering::SeqCst);
        if !sent {
            // A client that fails does not ask again at once.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    answers
}

/// All messages of queue `n`, in their order, each acknowledged.
async fn drain(store: &Arc<dyn Store>, n: u8) -> Vec<u64> {
    let (mut numbers, mut next) = (Vec::new(), first(store, n).await);
    while let Some(message) = next {
        let MessageContent::Sent { body, .. } = message.content else { panic!("a quota marker") };
        numbers.push(u64::from_be_bytes(body[..].try_into().unwrap()));
        let acknowledge = Op::Acknowledge { queue: recipient(n), message: Some(message.id), with_next: true };
        next = acknowledged(store, acknowledge).await.1;
    }
    numbers
}

/// What was answered as done is there once, in its order; what was answered as failed may be there, once.
fn assert_kept(found: &[u64], answers: &Answers) {
    assert!(found.is_sorted_by(|one, next| one < next), "doubled or out of order");
    let lost: Vec<_> = answers.iter().filter(|(number, done)| **done && !found.contains(number)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert!(found.iter().all(|number| answers.contains_key(number)));
}

/// Waits until `done` has grown by `more`.
async fn until_grown(done: &AtomicU64, more: u64) {
    let (start, deadline) = (done.load(Ordering::SeqCst), Instant::now() + Duration::from_secs(60));
    while done.load(Ordering::SeqCst) < start + more {
        assert!(Instant::now() < deadline, "nothing succeeds any more");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_database_that_is_killed_under_load_and_comes_back_loses_and_doubles_nothing() {
    let cluster = Arc::new(Cluster::start(&[]));
    let options = PostgresOptions {
        pool_size: 4,
        message_queue_quota: 1_000_000,
        ..PostgresOptions::new(database(&cluster.connection(), "smp_server"))
    };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply((0..8).map(|n| create(queue(n))).collect()).await.unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let senders: Vec<_> =
        (0..8).map(|n| tokio::spawn(send_until(store.clone(), n, stop.clone(), done.clone()))).collect();
    for _kill in 0..2 {
        until_grown(&done, 50).await;
        let own = cluster.clone();
        tokio::task::spawn_blocking(move || own.kill()).await.unwrap();
        let down = tokio::time::timeout(BOUND, store.queues(crate::store::Party::Recipient, &[recipient(0)])).await;
        assert!(matches!(down.unwrap(), Err(StoreError::Failed(_))));
        let own = cluster.clone();
        tokio::task::spawn_blocking(move || own.run()).await.unwrap();
    }
    until_grown(&done, 50).await;
    stop.store(true, Ordering::SeqCst);
    for (n, answers) in (0..).zip(future::join_all(senders).await) {
        let answers = answers.unwrap();
        assert!(answers.values().any(|done| *done));
        assert_kept(&drain(&store, n).await, &answers);
    }
    assert_eq!(store.metrics().writes.depth, 0);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_database_that_hangs_fails_what_waits_and_is_recovered_from() {
    let subject = PostgresSubject::new();
    let proxy = Proxy::new(&Cluster::shared().socket());
    let options = PostgresOptions {
        pool_size: 4,
        max_waiting_batches: 8,
        wait_timeout: Duration::from_millis(100),
        connect_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(2),
        ..PostgresOptions::new(database(&proxy.connection(USER), subject.name()))
    };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply(vec![create(queue(1))]).await.unwrap();
    assert!(try_send(&store, numbered(1, 0)).await);
    let mut answers = Answers::from([(0, true)]);

    proxy.hang();
    let sends = (1..=32).map(|number| {
        let store = store.clone();
        async move { (number, try_send(&store, numbered(1, number)).await) }
    });
    let ids = [recipient(1)];
    let reads = (0..32).map(|_| store.queue_states(&ids));
    let watch = async {
        let depth = store.metrics().writes.depth;
        assert!((1..=8).contains(&depth), "{depth} wait");
    };
    let all = future::join3(future::join_all(sends), future::join_all(reads), watch);
    let (sent, read, ()) = tokio::time::timeout(BOUND, all).await.expect("answers in bounded time");
    assert!(sent.iter().all(|(_, done)| !done));
    assert!(read.iter().all(|states| matches!(states, Err(StoreError::Failed(_) | StoreError::Overloaded))));
    let metrics = store.metrics();
    assert!(metrics.writes.refused >= 24 && metrics.reads.refused >= 24 && metrics.failures > 0, "{metrics:?}");
    answers.extend(sent);

    proxy.go_on();
    let deadline = Instant::now() + BOUND;
    for number in 33.. {
        assert!(Instant::now() < deadline, "it is not recovered from");
        let done = try_send(&store, numbered(1, number)).await;
        answers.insert(number, done);
        if done {
            break;
        }
    }
    assert_kept(&drain(&store, 1).await, &answers);
    assert_eq!(store.metrics().writes.depth, 0);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_given_up_by_the_database_too() {
    let subject = PostgresSubject::new();
    let options = PostgresOptions { statement_timeout: Duration::from_secs(1), ..subject.options() };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply(vec![create(queue(1))]).await.unwrap();
    let lock = subject.lock_queues().await;
    for _again in 0..2 {
        assert!(matches!(store.apply(vec![send(1, 1)]).await, Err(StoreError::Failed(_))));
    }
    // Reads go on meanwhile.
    assert_eq!(size(&store, 1).await, 0);
    drop(lock);
    let deadline = Instant::now() + BOUND;
    while store.apply(vec![acknowledge(1, 9)]).await.is_err() {
        assert!(Instant::now() < deadline, "it is not recovered from");
    }
    assert_eq!(size(&store, 1).await, 0);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_group_that_is_given_up_is_answered_when_nothing_can_come_of_it_any_more() {
    let subject = PostgresSubject::new();
    // Both the statement and the commit are in time, but not together: it is given up while it is committed.
    let options = PostgresOptions { statement_timeout: Duration::from_secs(2), ..subject.options() };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply(vec![create(queue(1))]).await.unwrap();
    subject.sql(
        "CREATE FUNCTION dawdle() RETURNS TRIGGER LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END'; \
         CREATE TRIGGER tr_dawdle BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION dawdle(); \
         CREATE CONSTRAINT TRIGGER tr_dawdle_at_commit AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION dawdle()",
    );
    let answer = store.apply(vec![numbered(1, 0)]).await;
    let size = size(&store, 1).await;
    subject.sql("SET client_min_messages = warning; DROP FUNCTION dawdle() CASCADE");
    assert!(matches!(answer, Err(StoreError::Failed(_))), "{answer:?}");
    assert_eq!(size, 1, "it came when its subscriber had looked");
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_not_there_is_said_so_when_the_store_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = format!("postgresql://smp@/smp?host={}", directory.path().display());
    let error = open(&PostgresOptions::new(database(&nowhere, "smp_server"))).err().unwrap().to_string();
    assert!(error.contains("db_connection"), "{error}");
}
