//! Rows as another server may leave them, and ours never does: none costs more than its own queue.

use std::sync::Arc;

use super::super::PostgresOptions;
use super::subject::{PostgresSubject, open};
use crate::store::conformance::fixtures::*;
use crate::store::{Contents, Op, OpOutcome, Party, Peeked, Store, StoreError};

const QUOTA: u32 = 3;

/// A store with queues 1, 2 and 3.
async fn opened(subject: &PostgresSubject) -> Arc<dyn Store> {
    let options = PostgresOptions { message_queue_quota: QUOTA, ..subject.options() };
    let store: Arc<dyn Store> = Arc::new(open(&options).unwrap());
    store.apply((1..=3).map(|n| create(rich_queue(n))).collect()).await.unwrap();
    store
}

/// Changes the row of queue 2.
fn change(subject: &PostgresSubject, table: &str, columns: &str) {
    let queue: String = recipient(2).0.iter().map(|byte| format!("{byte:02x}")).collect();
    subject.sql(&format!("UPDATE {table} SET {columns} WHERE recipient_id = '\\x{queue}'"));
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_is_told_and_the_others_can_be_asked_for() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    for columns in
        ["status = 'garbage'", "recipient_keys = ''", "rcv_dh_secret = 'garbage'", "notifier_key = 'garbage'"]
    {
        subject.sql("TRUNCATE messages, msg_queues");
        store.apply((1..=3).map(|n| create(rich_queue(n))).collect()).await.unwrap();
        change(&subject, "msg_queues", columns);
        let ids = [1, 2, 3].map(recipient);
        let failures = [
            store.queues(Party::Recipient, &ids).await.unwrap_err(),
            store.queues_to_subscribe(&ids).await.unwrap_err(),
        ];
        for failure in failures {
            let StoreError::Unreadable { places, reason } = failure else { panic!("{failure:?}") };
            assert_eq!(places, [1], "{columns}");
            assert!(columns.starts_with(reason.split(' ').nth(2).unwrap()) && !reason.contains("garbage"), "{reason}");
        }
        assert!(store.queues(Party::Recipient, &[1, 3].map(recipient)).await.unwrap().iter().all(Option::is_some));
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_message_that_cannot_be_read_fails_neither_others_nor_what_was_done() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    store.apply((1..=3).flat_map(|n| [send(n, 1), send(n, 2)]).collect()).await.unwrap();
    change(&subject, "messages", "msg_id = 'short'");
    let first = store.first_messages(&[1, 2, 3].map(recipient), 3).await.unwrap();
    let first: Vec<Peeked> = first.into_iter().map(|looked| looked.first).collect();
    assert!(matches!(first[..], [Peeked::Message(_), Peeked::Unreadable(_), Peeked::Message(_)]), "{first:?}");
    let states = store.queue_states(&[1, 2].map(recipient)).await.unwrap();
    assert_eq!((states[0].size, states[1].size, states[1].first), (2, 2, None));
    let acknowledge = |n| Op::Acknowledge { queue: recipient(n), message: None, with_next: true };
    let outcomes = store.apply([1, 2, 3].map(acknowledge).into()).await.unwrap();
    let OpOutcome::Acknowledged { deleted: true, next: None, more: true } = outcomes[1] else { panic!("{outcomes:?}") };
    for outcome in [&outcomes[0], &outcomes[2]] {
        assert!(matches!(outcome, OpOutcome::Acknowledged { next: Some(_), .. }), "{outcome:?}");
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_notifier_that_cannot_be_read_can_be_replaced() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    change(&subject, "msg_queues", "notifier_key = 'garbage'");
    let replace = Op::SetNotifier { queue: recipient(2), notifier: Box::new(notifier(9)) };
    assert_eq!(one(&store, replace).await, OpOutcome::NotifierWas(None));
    assert_eq!(record(&store, 2).await.unwrap().notifier, Some(notifier(9)));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_link_of_another_length_leaves_a_queue_without_a_link() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    for id in ["''", "'long or short'"] {
        change(&subject, "msg_queues", &format!("link_id = {id}"));
        let found = record(&store, 2).await.unwrap();
        assert_eq!((found.recipient_id, found.link_id), (recipient(2), None));
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_queue_with_columns_that_are_null_or_half_there_is_read() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    change(&subject, "msg_queues", "updated_at = NULL, queue_mode = NULL, sender_key = NULL, rcv_ntf_dh_secret = NULL");
    let found = record(&store, 2).await.unwrap();
    assert_eq!((found.updated_at, found.mode, found.sender_key, found.notifier), (None, None, None, None));
    store.close().await.unwrap();
}

#[tokio::test]
async fn messages_that_the_row_does_not_count_are_not_overlooked() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    store.apply(vec![send(2, 1), send(2, 2)]).await.unwrap();
    change(&subject, "msg_queues", "msg_queue_size = 0");
    let found = store.queues_to_subscribe(&[1, 2].map(recipient)).await.unwrap();
    let contents: Vec<_> = found.into_iter().map(|found| found.unwrap().1).collect();
    assert_eq!(contents, [Contents::Empty, Contents::Unknown]);
    assert!(!sent(&store, 2, 3).await.1, "it is not the first one");
    change(&subject, "msg_queues", "msg_queue_size = 0");
    let (_, next, more) = acknowledged(&store, acknowledge(2, 1)).await;
    assert!(next.is_some() && more);
    assert_ne!(size(&store, 2).await, 0);
    store.close().await.unwrap();
}

#[tokio::test]
async fn an_empty_queue_takes_messages_whatever_its_row_counts() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    for columns in ["msg_queue_size = 100, msg_can_write = FALSE", "msg_queue_size = 2", "msg_can_write = FALSE"] {
        change(&subject, "msg_queues", columns);
        assert!(sent(&store, 2, 1).await.1, "{columns}: it is the first one");
        assert_eq!(size(&store, 2).await, 1);
        acknowledged(&store, acknowledge(2, 1)).await;
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn messages_of_deleted_queues_are_not_there() {
    let subject = PostgresSubject::new();
    let store = opened(&subject).await;
    store.apply((1..=2).map(|n| send(n, 1)).collect()).await.unwrap();
    change(&subject, "msg_queues", "deleted_at = 0");
    assert!(record(&store, 2).await.is_none() && first(&store, 2).await.is_none());
    assert_eq!(one(&store, send(2, 2)).await, OpOutcome::NoQueue);
    assert_eq!(expired(&store, time(255), 100).await, 1);
    assert_eq!(
        store.purge_deleted_queues(crate::store::Timestamp { seconds: 1 << 40, nanoseconds: 0 }).await.unwrap(),
        1
    );
    assert_eq!(subject.sql("SELECT count(*) FROM messages"), "0");
    store.close().await.unwrap();
}
