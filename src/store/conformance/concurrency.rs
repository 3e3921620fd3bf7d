//! Batches: their order and atomicity, many at once, callers that go, full lines, closing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, future, poll};

use super::fixtures::*;
use super::{Limits, Subject};
use crate::store::op::SendMessage;
use crate::store::{Audience, Counts, Op, OpOutcome, Party, Store, StoreError, Timestamp};

pub async fn operations_of_a_batch_are_done_in_their_order(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let queue_id = recipient(1);
    let outcomes = store
        .apply(vec![
            send(1, 1),
            create(queue(1)),
            send(1, 2),
            acknowledge(1, 2),
            Op::DeleteQueue { queue: queue_id },
            send(1, 3),
            create(queue(1)),
            create(queue(1)),
        ])
        .await
        .unwrap();
    assert_eq!(outcomes[..2], [OpOutcome::NoQueue, OpOutcome::Done]);
    assert!(matches!(&outcomes[2], OpOutcome::Sent(sent) if sent.was_empty));
    assert_eq!(outcomes[3], OpOutcome::Acknowledged { deleted: true, next: None, more: false });
    assert_eq!(outcomes[4], OpOutcome::Deleted(Audience::default()));
    assert_eq!(outcomes[5..], [OpOutcome::NoQueue, OpOutcome::Done, OpOutcome::Duplicate]);
}

pub async fn a_condition_that_is_not_met_does_not_hinder_the_rest_of_the_batch(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let secure = |k| Op::SecureQueue { queue: recipient(1), key: key(k) };
    let ops = vec![create(queue(1)), create(queue(1)), secure(1), secure(2), send(9, 1), send(1, 1)];
    let outcomes = store.apply(ops).await.unwrap();
    let expected = [OpOutcome::Done, OpOutcome::Duplicate, OpOutcome::Done, OpOutcome::Conflict, OpOutcome::NoQueue];
    assert_eq!(outcomes[..5], expected);
    assert_eq!(record(&store, 1).await.unwrap().sender_key, Some(key(1)));
    assert_eq!(size(&store, 1).await, 1);
}

pub async fn an_empty_batch_is_answered(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    assert_eq!(store.apply(vec![]).await.unwrap(), []);
}

pub async fn each_of_many_concurrent_batches_gets_its_own_outcomes(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let batches = (1..=50).map(|n| store.apply(vec![create(queue(n)), create(queue(0)), send(n, n), send(n, 100 + n)]));
    let mut created = 0;
    for outcomes in future::join_all(batches).await {
        let outcomes = outcomes.unwrap();
        assert_eq!(outcomes[0], OpOutcome::Done);
        created += usize::from(outcomes[1] == OpOutcome::Done);
        assert!(matches!(&outcomes[2..], [OpOutcome::Sent(one), OpOutcome::Sent(two)]
            if one.was_empty && !two.was_empty && one.sequence < two.sequence));
    }
    assert_eq!(created, 1);
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 51, messages: 100 });
    for n in 1..=50 {
        assert_is_message(&first(&store, n).await.unwrap(), n);
    }
}

pub async fn concurrent_sends_to_a_queue_are_all_kept_once(subject: &dyn Subject) {
    let store = subject.open(Limits { quota: 128, ..Limits::default() }).await;
    done(&store, create(queue(1))).await;
    let senders = (0..8).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for m in 0..10 {
                sent(&store, 1, task * 10 + m).await;
            }
        })
    });
    future::try_join_all(senders).await.unwrap();
    let mut taken = Vec::new();
    let mut next = first(&store, 1).await;
    while let Some(message) = next {
        taken.push(message.id.0[0]);
        next = acknowledged(&store, acknowledge(1, message.id.0[0])).await.1;
    }
    for task in 0..8 {
        let of_task: Vec<u8> = taken.iter().copied().filter(|m| m / 10 == task).collect();
        assert_eq!(of_task, (task * 10..task * 10 + 10).collect::<Vec<u8>>());
    }
    assert_eq!(taken.len(), 80);
}

pub async fn a_batch_whose_caller_is_gone_is_done_wholly(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let stall = subject.stall_writes().await;
    for n in 1..=20 {
        let mut batch = store.apply(vec![create(queue(n)), send(n, 1), send(n, 2)]);
        assert!(poll!(&mut batch).is_pending());
    }
    drop(stall);
    done(&store, create(queue(100))).await;
    for n in 1..=20 {
        let there = record(&store, n).await.is_some();
        assert_eq!(size(&store, n).await, if there { 2 } else { 0 });
    }
}

pub async fn a_full_line_answers_overloaded_to_every_handle_and_recovers(subject: &dyn Subject) {
    let (handles, places) = (64, 4);
    let limits = Limits { max_waiting_batches: places, wait_timeout: Duration::from_millis(30), ..Limits::default() };
    let store = subject.open(limits).await;
    let batches = (1..=handles).map(|n| vec![create(queue(n))]).collect();
    fill_the_line(subject, &store, batches, places as usize).await;
}

pub async fn a_line_full_of_bytes_answers_overloaded(subject: &dyn Subject) {
    let (handles, fitting) = (16, 4);
    let limits =
        Limits { max_waiting_bytes: fitting * 16_384, wait_timeout: Duration::from_millis(30), ..Limits::default() };
    let store = subject.open(limits).await;
    let large = |n| SendMessage { body: Bytes::from(vec![0; 16_088]), ..message(n, 1) };
    let batches = (1..=handles).map(|n| vec![Op::Send(Box::new(large(n)))]).collect();
    fill_the_line(subject, &store, batches, fitting as usize).await;
}

/// Submits each batch through a handle of its own while nothing is written: at most `fitting` of them wait, the others are
/// refused. Then goes on, and those that waited are done.
async fn fill_the_line(subject: &dyn Subject, store: &Arc<dyn Store>, batches: Vec<Vec<Op>>, fitting: usize) {
    let total = batches.len();
    let stall = subject.stall_writes().await;
    let mut waiting: FuturesUnordered<_> = batches
        .into_iter()
        .map(|batch| {
            let handle = store.clone();
            async move { handle.apply(batch).await }
        })
        .collect();
    for _refused in fitting..total {
        let refused = waiting.next().await.unwrap();
        assert!(matches!(refused, Err(StoreError::Overloaded)), "{refused:?}");
    }
    drop(stall);
    while let Some(outcome) = waiting.next().await {
        assert!(matches!(outcome, Ok(_) | Err(StoreError::Overloaded)), "{outcome:?}");
    }
    done(store, create(queue(200))).await;
}

pub async fn closing_finishes_what_was_handed_over(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let stall = subject.stall_writes().await;
    let mut batches: Vec<_> = (1..=20).map(|n| store.apply(vec![create(queue(n)), send(n, 1)])).collect();
    for batch in &mut batches {
        assert!(poll!(batch).is_pending());
    }
    let mut closing = store.close();
    assert!(poll!(&mut closing).is_pending());
    drop(stall);
    for outcomes in future::join_all(batches).await {
        assert!(matches!(outcomes.unwrap()[..], [OpOutcome::Done, OpOutcome::Sent(_)]));
    }
    closing.await.unwrap();
}

pub async fn a_closed_store_says_so(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.close().await.unwrap();
    let ids = [recipient(1)];
    assert!(matches!(store.queues(Party::Recipient, &ids).await, Err(StoreError::Closed)));
    assert!(matches!(store.first_messages(&ids, 1).await, Err(StoreError::Closed)));
    assert!(matches!(store.queue_states(&ids).await, Err(StoreError::Closed)));
    assert!(matches!(store.link_data(&ids).await, Err(StoreError::Closed)));
    assert!(matches!(store.apply(vec![create(queue(1))]).await, Err(StoreError::Closed)));
    let before = Timestamp { seconds: 0, nanoseconds: 0 };
    assert!(matches!(store.expire_messages(before, 1).await, Err(StoreError::Closed)));
    assert!(matches!(store.counts().await, Err(StoreError::Closed)));
    assert!(matches!(store.close().await, Err(StoreError::Closed)));
}

pub async fn closing_answers_those_who_wait_for_a_place(subject: &dyn Subject) {
    let store = subject.open(Limits { max_waiting_batches: 2, ..Limits::default() }).await;
    let stall = subject.stall_writes().await;
    let mut batches: Vec<_> = (1..=20).map(|n| store.apply(vec![create(queue(n))])).collect();
    for batch in &mut batches {
        assert!(poll!(batch).is_pending());
    }
    let mut closing = store.close();
    assert!(poll!(&mut closing).is_pending());
    drop(stall);
    let outcomes = future::join_all(batches).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(StoreError::Closed))));
    assert!(outcomes.iter().filter(|outcome| outcome.is_err()).count() >= 18);
    closing.await.unwrap();
}
