//! Queues and their fields.

use super::fixtures::*;
use super::{Limits, Subject};
use crate::protocol::command::QueueMode;
use crate::protocol::error::{BlockingInfo, BlockingReason, ClientNotice};
use crate::store::{Contents, Counts, Day, Op, OpOutcome, Party, QueueStatus};

pub async fn a_created_queue_is_found_by_each_of_its_ids(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(rich_queue(1))).await;
    let expected = vec![Some(rich_queue(1).record)];
    for (party, id) in [
        (Party::Recipient, recipient(1)),
        (Party::Sender, sender(1)),
        (Party::Notifier, notifier_id(1)),
        (Party::Link, link(1)),
    ] {
        assert_eq!(store.queues(party, &[id]).await.unwrap(), expected, "{party:?}");
    }
    assert_eq!(store.queues(Party::Sender, &[recipient(1)]).await.unwrap(), [None]);
}

pub async fn a_queue_keeps_all_of_its_fields(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let mut queues = [queue(1), rich_queue(2), queue(3), queue(4)];
    queues[0].record.recipient_keys = vec![key(1), key(2), key(3)];
    queues[0].record.sender_key = Some(key(4));
    queues[0].record.mode = None;
    queues[1].record.mode = Some(QueueMode::Contact);
    queues[2].record.status = QueueStatus::Off;
    queues[2].record.updated_at = None;
    let info = BlockingInfo { reason: BlockingReason::Content, notice: Some(ClientNotice { ttl: Some(1) }) };
    queues[3].record.status = QueueStatus::Blocked(info);
    for (n, new) in (1..).zip(queues) {
        done(&store, create(new.clone())).await;
        assert_eq!(record(&store, n).await, Some(new.record));
    }
}

pub async fn answers_stand_in_the_order_of_the_ids_with_none_for_absent_ones(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(queue(1)), create(rich_queue(2)), send(2, 7)]).await.unwrap();
    let ids = [2, 9, 1, 2].map(recipient);
    let found = store.queues(Party::Recipient, &ids).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|queue| queue.map(|queue| queue.sender_id)).collect();
    assert_eq!(found, [Some(sender(2)), None, Some(sender(1)), Some(sender(2))]);
    assert_eq!(sizes(&*store, &ids).await, [1, 0, 0, 1]);
    let first = store.first_messages(&ids, 4).await.unwrap();
    let secrets: Vec<_> = first.into_iter().map(|first| peeked(first).map(|first| first.dh_secret)).collect();
    let secret = Some(queue(2).record.dh_secret.clone());
    assert_eq!(secrets, [secret.clone(), None, None, secret]);
    let links = store.link_data(&[9, 2].map(link)).await.unwrap();
    assert_eq!(links, [None, Some(data("fixed", "user"))]);
    assert!(store.queues(Party::Recipient, &[]).await.unwrap().is_empty());
}

pub async fn queues_to_subscribe_are_those_that_are_there_and_full_ones_are_not_called_empty(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(rich_queue(1)), create(queue(2)), send(2, 1), create(queue(3)), send(3, 1)]).await.unwrap();
    store.apply(vec![acknowledge(3, 1)]).await.unwrap();
    let ids = [4, 3, 2, 1].map(recipient);
    let found = store.queues_to_subscribe(&ids).await.unwrap();
    let records: Vec<_> = found.iter().map(|found| found.as_ref().map(|(record, _)| record.clone())).collect();
    assert_eq!(records, store.queues(Party::Recipient, &ids).await.unwrap());
    assert_eq!(found[2].as_ref().map(|(_, contents)| *contents), Some(Contents::Unknown));
    // What can be told from afar is told of both empty ones, or of none.
    let empty = |at: usize| found[at].as_ref().is_some_and(|(_, contents)| *contents == Contents::Empty);
    assert_eq!(empty(1), empty(3));
}

pub async fn an_id_that_is_taken_is_a_duplicate_and_changes_nothing(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(rich_queue(1))).await;
    let mut clashing = [rich_queue(2), rich_queue(2), rich_queue(2), rich_queue(2)];
    clashing[0].record.recipient_id = recipient(1);
    clashing[1].record.sender_id = sender(1);
    clashing[2].record.link_id = Some(link(1));
    clashing[3].record.notifier = Some(notifier(1));
    for new in clashing {
        assert_eq!(one(&store, create(new)).await, OpOutcome::Duplicate);
    }
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 1, messages: 0 });
    assert_eq!(record(&store, 1).await, Some(rich_queue(1).record));
    assert_eq!(link_data(&store, 2).await, None);
    done(&store, create(rich_queue(2))).await;
}

pub async fn a_queue_without_recipient_keys_or_with_half_a_link_is_a_conflict(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let mut broken = [queue(1), queue(1), queue(1)];
    broken[0].record.recipient_keys.clear();
    broken[1].record.link_id = Some(link(1));
    broken[2].link_data = Some(data("fixed", "user"));
    for new in broken {
        assert_eq!(one(&store, create(new)).await, OpOutcome::Conflict);
    }
    assert_eq!(record(&store, 1).await, None);
}

pub async fn securing_again_is_done_with_the_same_key_and_a_conflict_with_another(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    let secure = |k| Op::SecureQueue { queue: recipient(1), key: key(k) };
    done(&store, secure(5)).await;
    done(&store, secure(5)).await;
    assert_eq!(one(&store, secure(6)).await, OpOutcome::Conflict);
    assert_eq!(record(&store, 1).await.unwrap().sender_key, Some(key(5)));
}

pub async fn recipient_keys_are_replaced(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    let set = |keys| Op::SetRecipientKeys { queue: recipient(1), keys };
    done(&store, set(vec![key(7), key(8)])).await;
    assert_eq!(one(&store, set(vec![])).await, OpOutcome::Conflict);
    assert_eq!(record(&store, 1).await.unwrap().recipient_keys, [key(7), key(8)]);
}

pub async fn a_queue_is_suspended_blocked_and_unblocked(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    let queue = recipient(1);
    let info = BlockingInfo { reason: BlockingReason::Spam, notice: None };
    for (op, status) in [
        (Op::BlockQueue { queue, info: info.clone() }, QueueStatus::Blocked(info.clone())),
        (Op::SuspendQueue { queue }, QueueStatus::Off),
        (Op::SuspendQueue { queue }, QueueStatus::Off),
        (Op::BlockQueue { queue, info: info.clone() }, QueueStatus::Blocked(info)),
        (Op::UnblockQueue { queue }, QueueStatus::Active),
    ] {
        done(&store, op).await;
        assert_eq!(record(&store, 1).await.unwrap().status, status);
    }
}

pub async fn the_day_of_last_use_is_noted(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    for _again in 0..2 {
        done(&store, Op::Touch { queue: recipient(1), day: Day(20_001) }).await;
        assert_eq!(record(&store, 1).await.unwrap().updated_at, Some(Day(20_001)));
    }
}

pub async fn a_notifier_is_set_replaced_and_removed(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(queue(1)), create(rich_queue(2))]).await.unwrap();
    let queue = recipient(1);
    let set = |n| Op::SetNotifier { queue, notifier: Box::new(notifier(n)) };
    let was = |n: Option<u8>| OpOutcome::NotifierWas(n.map(|n| Box::new(notifier(n))));
    assert_eq!(one(&store, Op::DeleteNotifier { queue }).await, was(None));
    assert_eq!(one(&store, set(5)).await, was(None));
    assert_eq!(one(&store, set(6)).await, was(Some(5)));
    assert_eq!(one(&store, set(2)).await, OpOutcome::Duplicate);
    assert_eq!(record(&store, 1).await.unwrap().notifier, Some(notifier(6)));
    let ids = [5, 6].map(notifier_id);
    let found = store.queues(Party::Notifier, &ids).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    assert_eq!(one(&store, Op::DeleteNotifier { queue }).await, was(Some(6)));
    assert_eq!(record(&store, 1).await.unwrap().notifier, None);
    assert_eq!(store.queues(Party::Notifier, &ids).await.unwrap(), [None, None]);
}

pub async fn operations_on_an_absent_queue_answer_no_queue(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    let queue = recipient(1);
    let ops = vec![
        Op::SecureQueue { queue, key: key(1) },
        Op::SetRecipientKeys { queue, keys: vec![key(1)] },
        Op::SetLink { queue, link_id: link(1), data: data("fixed", "user") },
        Op::DeleteLink { queue },
        Op::SetNotifier { queue, notifier: Box::new(notifier(1)) },
        Op::DeleteNotifier { queue },
        Op::SuspendQueue { queue },
        Op::BlockQueue { queue, info: BlockingInfo { reason: BlockingReason::Spam, notice: None } },
        Op::UnblockQueue { queue },
        Op::DeleteQueue { queue },
        Op::Touch { queue, day: Day(1) },
        send(1, 1),
        acknowledge(1, 1),
    ];
    let expected = vec![OpOutcome::NoQueue; ops.len()];
    assert_eq!(store.apply(ops).await.unwrap(), expected);
    assert_eq!(store.counts().await.unwrap(), Counts::default());
}

pub async fn a_deleted_queue_leaves_nothing_and_frees_its_ids(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(rich_queue(1)), send(1, 1), send(1, 2), create(queue(2)), send(2, 3)]).await.unwrap();
    delete(&store, 1).await;
    assert_eq!(store.counts().await.unwrap(), Counts { queues: 1, messages: 1 });
    assert_eq!((record(&store, 1).await, link_data(&store, 1).await), (None, None));
    assert_eq!((first(&store, 1).await, size(&store, 1).await), (None, 0));
    assert_eq!(one(&store, Op::DeleteQueue { queue: recipient(1) }).await, OpOutcome::NoQueue);
    done(&store, create(rich_queue(1))).await;
    assert_eq!((first(&store, 1).await, size(&store, 1).await), (None, 0));
    assert_is_message(&first(&store, 2).await.unwrap(), 3);
}
