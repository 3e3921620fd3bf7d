//! What this store does beside what all do: soft deletion, counters that the Haskell server goes on with, groups.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{future, poll};

use super::super::PostgresOptions;
use super::super::connect::Connector;
use super::super::pipeline::{Failure, Step, transaction};
use super::super::pool::{Limits, Pool};
use super::super::statements;
use super::subject::{PostgresSubject, open};
use crate::protocol::ServiceId;
use crate::store::conformance::fixtures::*;
use crate::store::op::SendMessage;
use crate::store::{Op, OpOutcome, Party, Store, StoreError, Timestamp};

fn opened(subject: &PostgresSubject, deleted_ttl: u32, pool_size: usize) -> Arc<dyn Store> {
    Arc::new(open(&PostgresOptions { deleted_ttl, pool_size, message_queue_quota: 3, ..subject.options() }).unwrap())
}

/// So many days from now.
fn in_days(days: i64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    Timestamp { seconds: now + days * 86_400, nanoseconds: 0 }
}

#[tokio::test]
async fn a_deleted_queue_leaves_a_row_that_is_purged_when_its_time_is_over() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 2, 4);
    store.apply(vec![create(rich_queue(1)), send(1, 1), create(queue(2)), send(2, 2)]).await.unwrap();
    delete(&store, 1).await;
    assert_eq!(one(&store, Op::DeleteQueue { queue: recipient(1) }).await, OpOutcome::NoQueue);
    let counts = store.counts().await.unwrap();
    assert_eq!((counts.queues, counts.messages), (1, 1));
    assert_eq!((record(&store, 1).await, first(&store, 1).await, link_data(&store, 1).await), (None, None, None));
    assert_eq!(one(&store, send(1, 3)).await, OpOutcome::NoQueue);
    let today = in_days(0).seconds.div_euclid(86_400) * 86_400;
    assert_eq!(subject.sql("SELECT deleted_at FROM msg_queues WHERE deleted_at IS NOT NULL"), today.to_string());

    // The IDs that others may choose are free, its own are not.
    let mut other = rich_queue(3);
    other.record.link_id = Some(link(1));
    other.record.notifier = Some(notifier(1));
    done(&store, create(other)).await;
    assert_eq!(one(&store, create(queue(1))).await, OpOutcome::Duplicate);

    assert_eq!(store.purge_deleted_queues(in_days(1)).await.unwrap(), 0);
    assert_eq!(store.purge_deleted_queues(in_days(3)).await.unwrap(), 1);
    done(&store, create(queue(1))).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn purging_goes_on_until_nothing_is_left() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 1, 4);
    subject.sql(
        "INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, status, deleted_at) \
         SELECT int8send(n), '', '', int8send(n), 'active', 0 FROM generate_series(1, 2500) AS n",
    );
    assert_eq!(store.purge_deleted_queues(in_days(0)).await.unwrap(), 2500);
    store.close().await.unwrap();
}

#[tokio::test]
async fn counters_are_those_of_the_messages_after_any_operations() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 0, 4);
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for m in 1..=40 {
        let ops = (0..10).map(|_| {
            let n = next(3) as u8;
            let queue = recipient(n);
            match next(12) {
                0 => Op::DeleteQueue { queue },
                1 | 2 => create(rich_queue(n)),
                3 => Op::SuspendQueue { queue },
                4 => Op::UnblockQueue { queue },
                5..=7 => Op::Acknowledge { queue, message: None, with_next: next(2) == 0 },
                _ => {
                    let expire_before = (next(3) == 0).then(|| time(m - next(4).min(m.into()) as u8));
                    Op::Send(Box::new(SendMessage { expire_before, delete_link: next(4) == 0, ..message(n, m) }))
                }
            }
        });
        store.apply(ops.collect()).await.unwrap();
        if m % 8 == 0 {
            expired(&store, time(m - 6), 2).await;
        }
        assert_eq!(subject.sql(WRONG_COUNTERS), "0", "after step {m}");
    }
    assert_ne!(store.counts().await.unwrap().messages, 0);
    store.close().await.unwrap();
}

/// Queues whose counters are not those that the Haskell server would find by counting.
const WRONG_COUNTERS: &str = "
    SELECT count(*) FROM msg_queues AS q, LATERAL (
        SELECT count(*) AS all, count(*) FILTER (WHERE msg_quota) AS markers
        FROM messages AS m WHERE m.recipient_id = q.recipient_id
    ) AS c
    WHERE q.msg_queue_size <> c.all OR q.msg_can_write <> (c.markers = 0)
        OR (c.all > c.markers AND NOT q.msg_queue_expire) OR (c.all = 0 AND q.msg_queue_expire)";

#[tokio::test]
async fn groups_that_name_the_same_queues_in_other_orders_do_not_wait_for_each_other() {
    let subject = PostgresSubject::new();
    let options = PostgresOptions { pool_size: 8, message_queue_quota: 10_000, ..subject.options() };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply((1..=6).map(|n| create(queue(n))).collect()).await.unwrap();
    let before = store.metrics();
    let callers = (0..8_u8).map(|caller| {
        let store = store.clone();
        async move {
            for m in 0..20 {
                let order = (1..=6_u8).map(|n| if caller % 2 == 0 { n } else { 7 - n });
                store.apply(order.map(|n| send(n, m)).collect()).await.unwrap();
            }
        }
    });
    future::join_all(callers).await;
    let after = store.metrics();
    // A group that PostgreSQL had to break off would have been tried again.
    assert_eq!((after.round_trips - before.round_trips, after.failures), (after.groups - before.groups, 0));
    assert_eq!(size(&store, 1).await, 160);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_batch_that_fails_does_not_fail_its_neighbours() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 0, 2);
    let busy = subject.lock().await;
    let mut unknown_service = queue(3);
    unknown_service.record.recipient_service = Some(ServiceId([1; 24]));
    let batches = [vec![create(queue(1))], vec![create(queue(2))], vec![create(queue(4)), create(unknown_service)]];
    let mut batches: Vec<_> = batches.into_iter().map(|batch| store.apply(batch)).collect();
    for batch in &mut batches {
        assert!(poll!(batch).is_pending());
    }
    subject.until_waiting().await;
    let mut last = store.apply(vec![create(queue(5))]);
    assert!(poll!(&mut last).is_pending());
    drop(busy);
    let results = future::join_all(batches).await;
    assert!(results[0].is_ok() && results[1].is_ok() && last.await.is_ok());
    let Err(StoreError::Failed(text)) = &results[2] else { panic!("{:?}", results[2]) };
    assert!(text.contains("msg_queues_rcv_service_id_fkey") && !text.contains("0101"), "{text}");
    let found = store.queues(Party::Recipient, &[1, 2, 3, 4, 5].map(recipient)).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, false, true]);
    assert_eq!(store.metrics().failures, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_cannot_be_sent_undoes_its_whole_transaction() {
    let subject = PostgresSubject::new();
    opened(&subject, 0, 2).close().await.unwrap();
    let limits = Limits { connect: Duration::from_secs(30), statement: Duration::from_secs(30) };
    let pool = Pool::new(&Connector::new(&subject.database()).unwrap(), 1, limits).unwrap();
    let new = queue(1);
    let steps = || {
        vec![
            Step { sql: statements::CREATE, params: super::super::columns::QueueRow::new(&new).into_values() },
            Step { sql: statements::EXISTS, params: vec![Box::new("no ID")] },
        ]
    };
    let outcome = pool.get().await.unwrap().within(async |client| transaction(client, steps()).await).await.unwrap();
    assert!(matches!(outcome, Err(Failure::Statement(_))));
    assert_eq!(subject.sql("SELECT count(*) FROM msg_queues"), "0");
    let first = steps().into_iter().take(1).collect();
    let outcome = pool.get().await.unwrap().within(async |client| transaction(client, first).await).await.unwrap();
    assert!(outcome.is_ok());
    assert_eq!(subject.sql("SELECT count(*) FROM msg_queues"), "1");
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_named_by_its_column_only() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 0, 2);
    done(&store, create(queue(1))).await;
    subject.sql("UPDATE msg_queues SET status = 'secret'");
    let error = store.queues(Party::Recipient, &[recipient(1)]).await.unwrap_err().to_string();
    assert!(error.contains("status") && !error.contains("secret"), "{error}");
    assert_eq!(one(&store, send(1, 1)).await, OpOutcome::Conflict);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_link_without_fixed_data_which_the_other_server_left_can_be_set_and_read() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 0, 2);
    done(&store, create(rich_queue(1))).await;
    subject.sql("UPDATE msg_queues SET fixed_data = NULL, user_data = NULL");
    assert_eq!(link_data(&store, 1).await, Some(data("", "")));
    done(&store, Op::SetLink { queue: recipient(1), link_id: link(1), data: data("fixed", "user") }).await;
    assert_eq!(link_data(&store, 1).await, Some(data("fixed", "user")));
    store.close().await.unwrap();
}

#[tokio::test]
async fn services_are_kept_and_their_counts_follow_the_queues() {
    let subject = PostgresSubject::new();
    let store = opened(&subject, 1, 2);
    subject.sql(
        "INSERT INTO services (service_id, service_role, service_cert, service_cert_hash, created_at) VALUES \
         (decode(repeat('01', 24), 'hex'), 'M', '', 'one', 0), (decode(repeat('02', 24), 'hex'), 'N', '', 'two', 0)",
    );
    let mut new = rich_queue(1);
    new.record.recipient_service = Some(ServiceId([1; 24]));
    new.record.notifier.as_mut().unwrap().service = Some(ServiceId([2; 24]));
    done(&store, create(new.clone())).await;
    assert_eq!(record(&store, 1).await, Some(new.record));
    let counts = "SELECT queue_count, queue_ids_hash = '\\x00000000000000000000000000000000' FROM services ORDER BY 1";
    assert_eq!(subject.sql(counts), "1|f\n1|f");
    delete(&store, 1).await;
    assert_eq!(subject.sql(counts), "0|t\n0|t");
    store.close().await.unwrap();
}
