//! Messages: order, quota, acknowledgement, expiry.

use std::sync::Arc;

use bytes::Bytes;

use super::fixtures::*;
use super::{Limits, Subject};
use crate::protocol::command::MessageFlags;
use crate::store::{Counts, MessageContent, MessageSummary, Op, OpOutcome, Peeked, QueueState, Sent, Store};

async fn open_with_queue(subject: &dyn Subject) -> Arc<dyn Store> {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    store
}

pub async fn messages_come_out_in_the_order_they_went_in(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 3), send(1, 1), send(1, 2)]).await.unwrap();
    assert_is_message(&first(&store, 1).await.unwrap(), 3);
    let (deleted, next, more) = acknowledged(&store, acknowledge(1, 3)).await;
    assert_is_message(&next.unwrap(), 1);
    assert!(deleted && more);
    let (deleted, next, more) = acknowledged(&store, acknowledge(1, 1)).await;
    assert_is_message(&next.unwrap(), 2);
    assert!(deleted && more);
    assert_eq!(acknowledged(&store, acknowledge(1, 2)).await, (true, None, false));
    assert_eq!(first(&store, 1).await, None);
}

pub async fn only_the_first_message_of_an_empty_queue_finds_it_empty(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    assert!(sent(&store, 1, 1).await.1);
    assert!(!sent(&store, 1, 2).await.1);
    store.apply(vec![acknowledge(1, 1), acknowledge(1, 2)]).await.unwrap();
    assert!(sent(&store, 1, 3).await.1);
}

pub async fn empty_and_largest_bodies_and_flags_are_kept(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    for (m, length, notification) in [(1, 0, true), (2, 16_088, false), (3, 1, true)] {
        let flags = MessageFlags { notification };
        let body = Bytes::from(vec![m; length]);
        let sent = crate::store::op::SendMessage { flags, body: body.clone(), ..message(1, m) };
        store.apply(vec![Op::Send(Box::new(sent))]).await.unwrap();
        assert_eq!(first(&store, 1).await.unwrap().content, MessageContent::Sent { flags, body });
        store.apply(vec![acknowledge(1, m)]).await.unwrap();
    }
}

pub async fn acknowledging_another_message_deletes_nothing_and_shows_the_first(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    assert_eq!(acknowledged(&store, acknowledge(1, 1)).await, (false, None, false));
    store.apply(vec![send(1, 1), send(1, 2)]).await.unwrap();
    for other in [2, 3] {
        let (deleted, next, more) = acknowledged(&store, acknowledge(1, other)).await;
        assert_is_message(&next.unwrap(), 1);
        assert!(!deleted && more);
    }
    assert_eq!(size(&store, 1).await, 2);
}

pub async fn acknowledging_without_an_id_deletes_the_first(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 1), send(1, 2)]).await.unwrap();
    let any = Op::Acknowledge { queue: recipient(1), message: None, with_next: true };
    let (deleted, next, more) = acknowledged(&store, any.clone()).await;
    assert_is_message(&next.unwrap(), 2);
    assert!(deleted && more);
    assert_eq!(acknowledged(&store, any.clone()).await, (true, None, false));
    assert_eq!(acknowledged(&store, any).await, (false, None, false));
}

pub async fn the_next_message_comes_only_when_asked_for(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 1), send(1, 2)]).await.unwrap();
    let quietly = |m| Op::Acknowledge { queue: recipient(1), message: Some(message_id(m)), with_next: false };
    assert_eq!(acknowledged(&store, quietly(1)).await, (true, None, true));
    assert_eq!(acknowledged(&store, quietly(1)).await, (false, None, true));
    assert_eq!(acknowledged(&store, quietly(2)).await, (true, None, false));
}

pub async fn a_queue_that_is_not_active_takes_no_messages(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    sent(&store, 1, 1).await;
    done(&store, Op::SuspendQueue { queue: recipient(1) }).await;
    assert_eq!(one(&store, send(1, 2)).await, OpOutcome::Conflict);
    assert_eq!(size(&store, 1).await, 1);
    assert_eq!(acknowledged(&store, acknowledge(1, 1)).await, (true, None, false));
    done(&store, Op::UnblockQueue { queue: recipient(1) }).await;
    sent(&store, 1, 3).await;
}

pub async fn a_full_queue_gets_one_marker_and_refuses_until_it_is_empty(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 1), send(1, 2), send(1, 3)]).await.unwrap();
    assert_eq!(one(&store, send(1, 4)).await, OpOutcome::Quota);
    assert_eq!(size(&store, 1).await, 4);
    for taken in [1, 2, 3] {
        assert_eq!(one(&store, send(1, 5)).await, OpOutcome::Quota);
        assert!(acknowledged(&store, acknowledge(1, taken)).await.0);
    }
    assert_eq!(one(&store, send(1, 5)).await, OpOutcome::Quota);
    let marker = first(&store, 1).await.unwrap();
    assert_eq!((marker.id, marker.timestamp, marker.content), (message_id(4), time(4), MessageContent::Quota));
    assert_eq!(acknowledged(&store, acknowledge(1, 4)).await, (false, None, false));
    assert_eq!(size(&store, 1).await, 0);
    assert!(sent(&store, 1, 6).await.1);
}

pub async fn sequence_numbers_grow_also_after_the_queue_was_empty(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    let (mut last, _) = sent(&store, 1, 1).await;
    for m in 2..6 {
        let (next, _) = sent(&store, 1, m).await;
        assert!(next > last);
        assert!(acknowledged(&store, acknowledge(1, m - 1)).await.0);
        assert_eq!(first(&store, 1).await.unwrap().sequence, next);
        last = next;
    }
    assert!(acknowledged(&store, acknowledge(1, 5)).await.0);
    assert!(sent(&store, 1, 6).await.0 > last);
    assert_eq!(expired(&store, time(7), 10).await, 1);
    assert!(sent(&store, 1, 7).await.0 > last + 1);
}

pub async fn expired_messages_are_deleted_before_a_message_is_appended(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 1), send(1, 2), send(1, 3)]).await.unwrap();
    let expiring = |m, before| {
        let message = crate::store::op::SendMessage { expire_before: Some(time(before)), ..message(1, m) };
        Op::Send(Box::new(message))
    };
    let OpOutcome::Sent(Sent { was_empty: false, expired: 2, .. }) = one(&store, expiring(4, 3)).await else {
        panic!("two of three should have expired");
    };
    assert_is_message(&first(&store, 1).await.unwrap(), 3);
    let OpOutcome::Sent(Sent { was_empty: true, expired: 2, .. }) = one(&store, expiring(5, 5)).await else {
        panic!("both should have expired");
    };
    assert_eq!(size(&store, 1).await, 1);
}

pub async fn a_quota_marker_does_not_expire(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    store.apply(vec![send(1, 1), send(1, 2), send(1, 3), send(1, 4)]).await.unwrap();
    assert_eq!(expired(&store, time(3), 10).await, 2);
    let message = crate::store::op::SendMessage { expire_before: Some(time(9)), ..message(1, 9) };
    assert_eq!(one(&store, Op::Send(Box::new(message))).await, OpOutcome::Quota);
    assert_eq!(expired(&store, time(20), 10).await, 0);
    assert_eq!(first(&store, 1).await.unwrap().content, MessageContent::Quota);
    assert_eq!(size(&store, 1).await, 1);
    store.apply(vec![acknowledge(1, 4)]).await.unwrap();
    sent(&store, 1, 10).await;
}

pub async fn expiry_deletes_all_that_are_too_old_step_by_step(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    let more = vec![create(queue(2)), send(1, 1), send(2, 2), send(1, 3), send(2, 4), send(1, 5)];
    store.apply(more).await.unwrap();
    assert_eq!(expired(&store, time(1), 10).await, 0);
    assert_eq!(expired(&store, time(4), 1).await, 3);
    assert_is_message(&first(&store, 1).await.unwrap(), 5);
    assert_is_message(&first(&store, 2).await.unwrap(), 4);
    assert_eq!(expired(&store, time(5), 3).await, 1);
    assert_eq!(sizes(&*store, &[1, 2].map(recipient)).await, [1, 0]);
    assert!(sent(&store, 2, 6).await.1);
}

pub async fn no_more_first_messages_are_read_than_asked_for(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let ops = (1..=4).flat_map(|n| [create(queue(n)), send(n, n)]).chain([acknowledge(1, 1)]);
    store.apply(ops.collect()).await.unwrap();
    let ids = [1, 2, 9, 3, 1, 4].map(recipient);
    let kinds = |peeked: Vec<Peeked>| -> String {
        let kind = |peeked: &Peeked| match peeked {
            Peeked::Absent => 'x',
            Peeked::Empty => '-',
            Peeked::Waiting => 'w',
            Peeked::Message(_) => 'm',
            Peeked::Unreadable(_) => '!',
        };
        peeked.iter().map(kind).collect()
    };
    for (limit, expected) in [(0, "-wxw-w"), (1, "-mxw-w"), (2, "-mxm-w"), (3, "-mxm-m"), (9, "-mxm-m")] {
        let looked = store.first_messages(&ids, limit).await.unwrap();
        assert_eq!(kinds(looked.into_iter().map(|looked| looked.first).collect()), expected);
    }
}

pub async fn the_state_of_a_queue_tells_its_size_and_first_message(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    let state = |size, m, quota| {
        let first = MessageSummary { id: message_id(m), timestamp: time(m), quota };
        QueueState { size, first: Some(first) }
    };
    let states = async |store: &Arc<dyn Store>| store.queue_states(&[1, 9].map(recipient)).await.unwrap();
    assert_eq!(states(&store).await, [QueueState::default(); 2]);
    store.apply(vec![send(1, 1), send(1, 2), send(1, 3), send(1, 4)]).await.unwrap();
    assert_eq!(states(&store).await, [state(4, 1, false), QueueState::default()]);
    store.apply(vec![acknowledge(1, 1), acknowledge(1, 2), acknowledge(1, 3)]).await.unwrap();
    assert_eq!(states(&store).await, [state(1, 4, true), QueueState::default()]);
}

pub async fn counts_tell_queues_and_messages(subject: &dyn Subject) {
    let store = open_with_queue(subject).await;
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 1, messages: 0 });
    let ops = vec![create(queue(2)), send(1, 1), send(1, 2), send(1, 3), send(1, 4), send(2, 5)];
    store.apply(ops).await.unwrap();
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 2, messages: 5 });
}
