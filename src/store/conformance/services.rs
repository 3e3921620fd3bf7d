//! Services and the queues that are associated with them.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future;

use super::fixtures::*;
use super::{Limits, Subject};
use crate::protocol::command::{IdsHash, MessageFlags, ServiceQueues};
use crate::protocol::handshake::ServiceRole::{Messaging, Notifier};
use crate::protocol::{QueueId, ServiceId};
use crate::store::op::SendMessage;
use crate::store::{Audience, Enrolled, Op, OpOutcome, Peeked, ServiceRecord, Store};

/// The numbers and hashes of two messaging services and a notifier, in this order.
async fn assert_queues(store: &Arc<dyn Store>, first: &[u8], second: &[u8], notifiers: &[u8]) {
    let expected = |ids: &[u8], id: fn(u8) -> QueueId| ServiceQueues {
        count: ids.len() as i64,
        hash: IdsHash::of(ids.iter().map(|n| id(*n)).collect::<Vec<_>>().iter().map(|id| id.0.as_slice())),
    };
    let of = |n, role| store.service_queues(service_id(n), role);
    assert_eq!(of(1, Messaging).await.unwrap(), expected(first, recipient));
    assert_eq!(of(2, Messaging).await.unwrap(), expected(second, recipient));
    assert_eq!(of(3, Notifier).await.unwrap(), expected(notifiers, notifier_id));
    for check in store.check_services(false).await.unwrap() {
        assert_eq!(check.kept, check.counted);
    }
}

/// A store with services 1 and 2, which receive messages, and 3, which is a notifier.
async fn with_services(subject: &dyn Subject) -> Arc<dyn Store> {
    let store = subject.open(Limits::default()).await;
    enrol_services(&store).await;
    store
}

fn associate(n: u8, service: Option<u8>) -> Op {
    Op::AssociateRecipient { queue: recipient(n), service: service.map(service_id) }
}

fn associate_notifier(n: u8, service: Option<u8>) -> Op {
    Op::AssociateNotifier { queue: recipient(n), notifier: notifier_id(n), service: service.map(service_id) }
}

fn was(service: Option<u8>) -> OpOutcome {
    OpOutcome::Associated { was: service.map(service_id) }
}

pub async fn a_service_is_known_by_its_certificate_in_one_role(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    assert_eq!(store.enrol(service(1, Messaging)).await.unwrap(), Enrolled::New);
    let again = ServiceRecord { id: service_id(9), ..service(1, Messaging) };
    assert_eq!(store.enrol(again.clone()).await.unwrap(), Enrolled::Known(service_id(1)));
    assert_eq!(store.enrol(ServiceRecord { role: Notifier, ..again }).await.unwrap(), Enrolled::OtherRole);
    let none = ServiceQueues { count: 0, hash: IdsHash::default() };
    for (id, role) in [(1, Messaging), (1, Notifier), (9, Messaging)] {
        assert_eq!(store.service_queues(service_id(id), role).await.unwrap(), none);
    }
}

pub async fn however_many_enrol_one_service_it_is_one(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    for certificate in 1..=5 {
        let all = (0..8).map(|n| {
            let record = ServiceRecord { id: service_id(certificate * 20 + n), ..service(certificate, Messaging) };
            let (store, id) = (store.clone(), record.id);
            async move {
                match store.enrol(record).await.unwrap() {
                    Enrolled::Known(known) => (known, false),
                    Enrolled::New => (id, true),
                    Enrolled::OtherRole => panic!("the role is the same"),
                }
            }
        });
        let all = future::join_all(all).await;
        assert!(all.iter().all(|(id, _)| *id == all[0].0), "{all:?}");
        assert_eq!(all.iter().filter(|(_, new)| *new).count(), 1);
    }
}

pub async fn queues_join_move_and_leave_services(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply((1..=3).map(|n| create(rich_queue(n))).collect()).await.unwrap();
    assert_queues(&store, &[], &[], &[]).await;
    let ops = vec![associate(1, Some(1)), associate(2, Some(1)), associate(3, Some(2)), associate_notifier(1, Some(3))];
    assert_eq!(store.apply(ops).await.unwrap(), [was(None), was(None), was(None), was(None)]);
    assert_queues(&store, &[1, 2], &[3], &[1]).await;
    let record = record(&store, 1).await.unwrap();
    assert_eq!(record.recipient_service, Some(service_id(1)));
    assert_eq!(record.notifier.unwrap().service, Some(service_id(3)));
    let ops = vec![associate(1, Some(1)), associate(1, Some(2)), associate(2, None), associate_notifier(1, None)];
    assert_eq!(store.apply(ops).await.unwrap(), [was(Some(1)), was(Some(1)), was(Some(1)), was(Some(3))]);
    assert_queues(&store, &[], &[1, 3], &[]).await;
}

pub async fn an_association_that_can_not_be_is_a_conflict(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply(vec![create(rich_queue(1)), create(queue(2))]).await.unwrap();
    let another = Op::AssociateNotifier { queue: recipient(1), notifier: notifier_id(7), service: Some(service_id(3)) };
    let ops = vec![
        associate(1, Some(9)),
        associate(1, Some(3)),
        associate_notifier(1, Some(1)),
        another,
        associate_notifier(2, Some(3)),
        associate(1, Some(1)),
    ];
    let mut expected = vec![OpOutcome::Conflict; 5];
    expected.push(was(None));
    assert_eq!(store.apply(ops).await.unwrap(), expected);
    assert_eq!(one(&store, associate(8, Some(1))).await, OpOutcome::NoQueue);
    assert_eq!(one(&store, associate_notifier(8, None)).await, OpOutcome::NoQueue);
    assert_queues(&store, &[1], &[], &[]).await;
}

pub async fn a_queue_is_created_in_a_service_and_leaves_it_when_it_is_deleted(subject: &dyn Subject) {
    let store = with_services(subject).await;
    let mut new = rich_queue(1);
    new.record.recipient_service = Some(service_id(1));
    new.record.notifier.as_mut().unwrap().service = Some(service_id(3));
    store.apply(vec![create(new.clone()), create(queue(2)), associate(2, Some(1))]).await.unwrap();
    assert_queues(&store, &[1, 2], &[], &[1]).await;
    let audience = Audience { service: Some(service_id(1)), notifier: new.record.notifier.clone().map(Box::new) };
    assert_eq!(one(&store, Op::DeleteQueue { queue: recipient(1) }).await, OpOutcome::Deleted(audience));
    assert_queues(&store, &[2], &[], &[]).await;
    let audience = Audience { service: Some(service_id(1)), notifier: None };
    assert_eq!(one(&store, Op::DeleteQueue { queue: recipient(2) }).await, OpOutcome::Deleted(audience));
    assert_queues(&store, &[], &[], &[]).await;
}

pub async fn a_notifier_that_is_replaced_or_removed_leaves_its_service(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply((1..=2).map(|n| create(rich_queue(n))).collect()).await.unwrap();
    store.apply(vec![associate_notifier(1, Some(3)), associate_notifier(2, Some(3))]).await.unwrap();
    assert_queues(&store, &[], &[], &[1, 2]).await;
    let set = Op::SetNotifier { queue: recipient(1), notifier: Box::new(notifier(5)) };
    let OpOutcome::NotifierWas(Some(before)) = one(&store, set).await else { panic!("a notifier expected") };
    assert_eq!((before.id, before.service), (notifier_id(1), Some(service_id(3))));
    assert_eq!(record(&store, 1).await.unwrap().notifier.unwrap().service, None);
    assert_queues(&store, &[], &[], &[2]).await;
    one(&store, Op::DeleteNotifier { queue: recipient(2) }).await;
    assert_queues(&store, &[], &[], &[]).await;
}

pub async fn a_message_tells_its_audience(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply(vec![create(rich_queue(1)), associate(1, Some(2)), associate_notifier(1, Some(3))]).await.unwrap();
    let audience = async |n: u8, m: u8, notification: bool| {
        let message = SendMessage { flags: MessageFlags { notification }, ..message(n, m) };
        match one(&store, Op::Send(Box::new(message))).await {
            OpOutcome::Sent(sent) => sent.audience,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(audience(1, 1, false).await, Audience { service: Some(service_id(2)), notifier: None });
    let mut expected = notifier(1);
    expected.service = Some(service_id(3));
    let told = audience(1, 2, true).await;
    assert_eq!(told, Audience { service: Some(service_id(2)), notifier: Some(Box::new(expected)) });
    done(&store, create(queue(2))).await;
    assert_eq!(audience(2, 3, true).await, Audience::default());
}

pub async fn a_look_tells_whose_queue_it_is(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply(vec![create(queue(1)), create(queue(2)), create(queue(3)), send(1, 1), send(3, 2)]).await.unwrap();
    store.apply(vec![associate(1, Some(1)), associate(2, Some(2))]).await.unwrap();
    for limit in [0, 9] {
        let looked = store.first_messages(&[1, 2, 3, 4].map(recipient), limit).await.unwrap();
        let services: Vec<_> = looked.iter().map(|looked| looked.service).collect();
        assert_eq!(services, [Some(service_id(1)), Some(service_id(2)), None, None]);
        let empty: Vec<bool> = looked.iter().map(|looked| matches!(looked.first, Peeked::Empty)).collect();
        assert_eq!(empty, [false, true, false, false]);
    }
}

pub async fn waiting_queues_come_in_pages(subject: &dyn Subject) {
    let store = with_services(subject).await;
    let mut ops: Vec<Op> = (1..=30).map(|n| create(queue(n))).collect();
    ops.extend((1..=30).map(|n| associate(n, Some(if n % 10 == 0 { 2 } else { 1 }))));
    ops.extend((1..=30).filter(|n| n % 3 != 0).map(|n| send(n, n)));
    store.apply(ops).await.unwrap();
    let mut expected: Vec<QueueId> = (1..=30).filter(|n| n % 3 != 0 && n % 10 != 0).map(recipient).collect();
    expected.sort_unstable();
    for limit in [1, 7, 100] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.waiting_queues(service_id(1), after, limit).await.unwrap();
            after = page.last().copied();
            let last = page.len() < limit;
            found.extend(page);
            if last {
                break;
            }
        }
        assert_eq!(found, expected);
    }
    assert_eq!(store.waiting_queues(service_id(8), None, 9).await.unwrap(), []);
}

pub async fn numbers_are_right_however_many_move_queues_between_services(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply((1..=20).map(|n| create(rich_queue(n))).collect()).await.unwrap();
    let movers = (0..8u8).map(|mover| {
        let store = store.clone();
        async move {
            for round in 0..6u8 {
                let queues = (0..10u8).map(|n| 1 + (n * (2 * mover + 1) + round + mover) % 20);
                let to = |n: u8| [Some(1), Some(2), None][usize::from((n + round + mover) % 3)];
                let ops = queues.flat_map(|n| [associate(n, to(n)), associate_notifier(n, to(n).map(|_| 3))]);
                store.apply(ops.collect()).await.unwrap();
            }
        }
    });
    future::join_all(movers).await;
    let mut of = [vec![], vec![], vec![]];
    for n in 1..=20 {
        let record = record(&store, n).await.unwrap();
        match record.recipient_service {
            Some(id) if id == service_id(1) => of[0].push(n),
            Some(_) => of[1].push(n),
            None => {}
        }
        if record.notifier.unwrap().service.is_some() {
            of[2].push(n);
        }
    }
    assert_queues(&store, &of[0], &of[1], &of[2]).await;
}

pub async fn services_are_there_after_reopening(subject: &dyn Subject) {
    let store = with_services(subject).await;
    store.apply(vec![create(rich_queue(1)), associate(1, Some(2)), associate_notifier(1, Some(3))]).await.unwrap();
    store.close().await.unwrap();
    let store = subject.open(Limits::default()).await;
    assert_eq!(store.enrol(service(2, Messaging)).await.unwrap(), Enrolled::Known(service_id(2)));
    assert_queues(&store, &[], &[1], &[1]).await;
}

/// The ID of service `n`.
pub fn service_id(n: u8) -> ServiceId {
    ServiceId([n ^ 0x3c; 24])
}

/// Service `n` in a role.
pub fn service(n: u8, role: crate::protocol::handshake::ServiceRole) -> ServiceRecord {
    ServiceRecord {
        id: service_id(n),
        role,
        certificate_chain: vec![Bytes::from(vec![n; 300]), Bytes::from_static(b"authority")],
        certificate_hash: Bytes::from(vec![n; 32]),
        created_at: crate::store::Day(20_000),
    }
}

/// Enrols services 1 and 2, which receive messages, and 3, which is a notifier.
pub async fn enrol_services(store: &Arc<dyn Store>) {
    for (n, role) in [(1, Messaging), (2, Messaging), (3, Notifier)] {
        assert_eq!(store.enrol(service(n, role)).await.unwrap(), Enrolled::New);
    }
}
