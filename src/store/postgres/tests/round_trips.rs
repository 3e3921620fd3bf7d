//! Round trips, counted at the database's socket: one for each call of the trait, and one for a group of many callers.

use std::sync::Arc;

use futures_util::{future, poll};

use super::super::PostgresOptions;
use super::super::cluster::{Cluster, USER};
use super::proxy::Proxy;
use super::subject::{PostgresSubject, database, open};
use crate::store::conformance::fixtures::*;
use crate::store::{Contents, Day, Op, OpOutcome, Party, Store};

/// A store behind a proxy, with queues 1 to 100, each with a link and a message, and one writer.
async fn behind_proxy(subject: &PostgresSubject) -> (Arc<dyn Store>, Proxy) {
    let proxy = Proxy::new(&Cluster::shared().socket());
    let database = database(&proxy.connection(USER), subject.name());
    let options = PostgresOptions { pool_size: 2, ..PostgresOptions::new(database) };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply((1..=100).flat_map(|n| [create(rich_queue(n)), send(n, n)]).collect()).await.unwrap();
    (store, proxy)
}

/// Does all batches as those of as many callers while the writer is busy, and answers how many round trips they took
/// together.
async fn together(store: &Arc<dyn Store>, proxy: &Proxy, subject: &PostgresSubject, batches: Vec<Vec<Op>>) -> u64 {
    let busy = subject.lock().await;
    let before = (proxy.round_trips(), store.metrics().round_trips);
    let mut first = store.apply(vec![Op::Touch { queue: recipient(1), day: Day(1) }]);
    assert!(poll!(&mut first).is_pending());
    subject.until_waiting().await;
    let mut batches: Vec<_> = batches.into_iter().map(|batch| store.apply(batch)).collect();
    batches.iter_mut().for_each(|batch| assert!(futures_util::FutureExt::now_or_never(batch).is_none()));
    drop(busy);
    first.await.unwrap();
    for outcomes in future::join_all(batches).await {
        let outcomes = outcomes.unwrap();
        assert!(matches!(outcomes[..], [OpOutcome::Sent(_) | OpOutcome::Acknowledged { deleted: true, .. }]));
    }
    let after = (proxy.round_trips(), store.metrics().round_trips);
    assert_eq!(after.0 - before.0, after.1 - before.1, "the metric tells something else than the socket");
    after.0 - before.0 - 1
}

#[tokio::test]
async fn a_block_of_commands_is_one_round_trip_for_each_call() {
    let subject = PostgresSubject::new();
    let (store, proxy) = behind_proxy(&subject).await;
    let (ids, links): (Vec<_>, Vec<_>) = (1..=100).map(|n| (recipient(n), link(n))).unzip();
    let mut last = proxy.round_trips();
    let mut assert_one_more = |what| {
        let now = proxy.round_trips();
        assert_eq!(now - last, 1, "round trips of {what}");
        last = now;
    };
    let queues = store.queues(Party::Recipient, &ids).await.unwrap();
    assert!(queues.iter().all(Option::is_some));
    assert_one_more("100 queues");
    let queues = store.queues_to_subscribe(&ids).await.unwrap();
    assert!(queues.iter().all(|queue| matches!(queue, Some((_, Contents::Unknown)))));
    assert_one_more("100 queues to subscribe");
    let first = store.first_messages(&ids, 100).await.unwrap();
    assert_eq!(first.into_iter().filter_map(peeked).count(), 100);
    assert_one_more("100 first messages");
    assert_eq!(sizes(&*store, &ids).await, [1; 100]);
    assert_one_more("100 states");
    assert!(store.link_data(&links).await.unwrap().iter().all(Option::is_some));
    assert_one_more("100 links");
    let touches = ids.iter().map(|queue| Op::Touch { queue: *queue, day: Day(20_100) }).collect();
    assert_eq!(store.apply(touches).await.unwrap(), vec![OpOutcome::Done; 100]);
    assert_one_more("100 touches");
    let mixed = (1..=50).flat_map(|n| [send(n, 200), acknowledge(n, n)]).collect();
    store.apply(mixed).await.unwrap();
    assert_one_more("100 changes");
    store.counts().await.unwrap();
    assert_one_more("counts");
    store.close().await.unwrap();
}

#[tokio::test]
async fn messages_of_many_connections_share_a_round_trip() {
    let subject = PostgresSubject::new();
    let (store, proxy) = behind_proxy(&subject).await;
    let sends = (1..=64).map(|n| vec![send(n, 200)]).collect();
    assert_eq!(together(&store, &proxy, &subject, sends).await, 1);
    let acknowledgements = (1..=64).map(|n| vec![acknowledge(n, n)]).collect();
    assert_eq!(together(&store, &proxy, &subject, acknowledgements).await, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn reads_of_many_connections_share_round_trips() {
    let subject = PostgresSubject::new();
    let (store, proxy) = behind_proxy(&subject).await;
    let before = proxy.round_trips();
    let ids: Vec<_> = (1..=64).map(|n| [recipient(n)]).collect();
    let reads = ids.iter().map(|ids| store.queues(Party::Recipient, ids));
    assert!(future::join_all(reads).await.into_iter().all(|queues| queues.unwrap()[0].is_some()));
    assert!(proxy.round_trips() - before <= 8, "{} round trips", proxy.round_trips() - before);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_step_of_expiry_is_two_round_trips_whatever_it_deletes() {
    let subject = PostgresSubject::new();
    let (store, proxy) = behind_proxy(&subject).await;
    let before = proxy.round_trips();
    let step = store.expire_messages(time(200), 1000).await.unwrap();
    assert_eq!((step.deleted, step.more, proxy.round_trips() - before), (100, false, 2));
    store.close().await.unwrap();
}

#[tokio::test]
async fn empty_queues_are_known_to_be_empty_with_their_records() {
    let subject = PostgresSubject::new();
    let (store, proxy) = behind_proxy(&subject).await;
    store.apply((1..=100).map(|n| acknowledge(n, n)).collect()).await.unwrap();
    let ids: Vec<_> = (1..=100).map(recipient).collect();
    let before = proxy.round_trips();
    let queues = store.queues_to_subscribe(&ids).await.unwrap();
    assert!(queues.iter().all(|queue| matches!(queue, Some((_, Contents::Empty)))));
    assert_eq!(proxy.round_trips() - before, 1);
    store.close().await.unwrap();
}
