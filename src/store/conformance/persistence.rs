//! What a store that keeps its content finds when it is opened again.

use super::fixtures::*;
use super::{Limits, Subject};
use crate::store::{Op, OpOutcome, Party};

pub async fn everything_is_there_after_reopening(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let mut new = rich_queue(1);
    new.record.sender_key = Some(key(9));
    new.record.recipient_keys = vec![key(1), key(2)];
    let ops = vec![create(new.clone()), send(1, 1), send(1, 2), create(queue(2)), create(queue(3)), send(3, 3)];
    store.apply(ops).await.unwrap();
    store.apply(vec![acknowledge(1, 1), Op::DeleteQueue { queue: recipient(3) }]).await.unwrap();
    let counts = store.counts().await.unwrap();
    store.close().await.unwrap();

    let store = subject.open(Limits::default()).await;
    assert_eq!(store.counts().await.unwrap(), counts);
    let found = store.queues(Party::Sender, &[1, 2, 3].map(sender)).await.unwrap();
    assert_eq!(found, [Some(new.record), Some(queue(2).record), None]);
    assert_eq!(link_data(&store, 1).await, new.link_data);
    assert_is_message(&first(&store, 1).await.unwrap(), 2);
    assert_eq!(size(&store, 1).await, 1);
}

pub async fn sequence_numbers_grow_across_reopening_an_emptied_queue(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    let (before, _) = sent(&store, 1, 1).await;
    store.apply(vec![acknowledge(1, 1)]).await.unwrap();
    store.close().await.unwrap();
    let store = subject.open(Limits::default()).await;
    let (after, was_empty) = sent(&store, 1, 2).await;
    assert!(after > before && was_empty);
}

pub async fn a_full_queue_is_full_after_reopening(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(queue(1)), send(1, 1), send(1, 2), send(1, 3), send(1, 4)]).await.unwrap();
    store.close().await.unwrap();
    let store = subject.open(Limits::default()).await;
    store.apply(vec![acknowledge(1, 1)]).await.unwrap();
    assert_eq!(one(&store, send(1, 5)).await, OpOutcome::Quota);
    assert_eq!(size(&store, 1).await, 3);
}
