//! Random operations against a store and against the simplest thing that does the same: outcomes and contents are equal.
//!
//! IDs come from small pools, so that they clash; time only goes forward, as stores differ in what they do otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::fixtures::*;
use super::services::{enrol_services, service_id};
use super::{Limits, Subject};
use crate::protocol::QueueId;
use crate::protocol::command::LinkData;
use crate::protocol::error::{BlockingInfo, BlockingReason};
use crate::store::op::SendMessage;
use crate::store::{
    Audience, Counts, Day, Message, MessageContent, NewQueue, Op, OpOutcome, Party, QueueRecord, QueueStatus, Sent,
    Store, Timestamp,
};

const QUEUES: u8 = 3;
const QUOTA: u32 = 3;

/// What is done: a batch, or an expiry.
#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<Op>),
    Expire { before: Timestamp, limit: u32 },
}

/// Compares a store that `subject` makes with the model, for some dozens of sequences of steps.
pub fn compare(subject: impl Fn() -> Box<dyn Subject>) {
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let result = runner.run(&steps(), |steps| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare_steps(&*subject(), steps));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

async fn compare_steps(subject: &dyn Subject, steps: Vec<Step>) {
    let store = subject.open(Limits { quota: QUOTA, ..Limits::default() }).await;
    enrol_services(&store).await;
    let mut model = Model::default();
    let mut last_numbers = BTreeMap::new();
    for step in steps {
        match step {
            Step::Apply(ops) => {
                let expected: Vec<_> = ops.iter().map(|op| model.apply(op)).collect();
                let mut outcomes = store.apply(ops.clone()).await.unwrap();
                for (op, outcome) in ops.iter().zip(&mut outcomes) {
                    strip_sequence(op, outcome, &mut last_numbers);
                }
                assert_eq!(outcomes, expected);
            }
            Step::Expire { before, limit } => {
                assert_eq!(expired(&store, before, limit).await, model.expire(before));
            }
        }
        assert_same_contents(&store, &model).await;
    }
    store.close().await.unwrap();
}

/// Sets sequence numbers, which are the store's own, to the model's 0; those of a queue's messages must grow.
fn strip_sequence(op: &Op, outcome: &mut OpOutcome, last: &mut BTreeMap<QueueId, u64>) {
    match outcome {
        OpOutcome::Sent(sent) => {
            let last = last.insert(*op.queue(), sent.sequence);
            assert!(last.is_none_or(|last| last < sent.sequence));
            sent.sequence = 0;
        }
        OpOutcome::Acknowledged { next: Some(next), .. } => next.sequence = 0,
        OpOutcome::Deleted(_) => {
            last.remove(op.queue());
        }
        _ => {}
    }
}

async fn assert_same_contents(store: &Arc<dyn Store>, model: &Model) {
    let pool = |id: fn(u8) -> QueueId| (0..QUEUES).map(id).collect::<Vec<_>>();
    for (party, id) in [
        (Party::Recipient, recipient as fn(u8) -> QueueId),
        (Party::Sender, sender),
        (Party::Link, link),
        (Party::Notifier, notifier_id),
    ] {
        let expected: Vec<_> = pool(id).iter().map(|id| model.find(party, id).map(|q| q.record.clone())).collect();
        assert_eq!(store.queues(party, &pool(id)).await.unwrap(), expected);
    }
    let expected: Vec<_> =
        pool(link).iter().map(|id| model.find(Party::Link, id).and_then(|q| q.data.clone())).collect();
    assert_eq!(store.link_data(&pool(link)).await.unwrap(), expected);
    let queues: Vec<_> = pool(recipient).iter().map(|id| model.queues.get(id)).collect();
    let sizes: Vec<_> = queues.iter().map(|queue| queue.map_or(0, |queue| queue.messages.len() as u64)).collect();
    assert_eq!(super::fixtures::sizes(&**store, &pool(recipient)).await, sizes);
    let first = store.first_messages(&pool(recipient), QUEUES.into()).await.unwrap().into_iter();
    let first: Vec<_> =
        first.map(|first| peeked(first).map(|first| Message { sequence: 0, ..first.message })).collect();
    let expected: Vec<_> = queues.iter().map(|queue| queue.and_then(|queue| queue.messages.front().cloned())).collect();
    assert_eq!(first, expected);
    for check in store.check_services(false).await.unwrap() {
        assert_eq!(check.kept, check.counted);
    }
    let counts = Counts { queues: model.queues.len() as u64, messages: sizes.iter().sum() };
    assert_eq!(store.counts().await.unwrap(), counts);
}

#[derive(Default)]
struct Model {
    queues: BTreeMap<QueueId, ModelQueue>,
}

struct ModelQueue {
    record: QueueRecord,
    data: Option<LinkData>,
    messages: VecDeque<Message>,
}

impl Model {
    fn find(&self, party: Party, id: &QueueId) -> Option<&ModelQueue> {
        self.queues.values().find(|queue| named(&queue.record, party) == Some(*id))
    }

    fn apply(&mut self, op: &Op) -> OpOutcome {
        match op {
            Op::CreateQueue(new) => self.create(new),
            Op::SetLink { queue, link_id, data } => self.set_link(queue, *link_id, data),
            Op::SetNotifier { queue, notifier } => {
                let taken = self.find(Party::Notifier, &notifier.id).map(|owner| owner.record.recipient_id);
                match self.queues.get_mut(queue) {
                    None => OpOutcome::NoQueue,
                    Some(_) if taken.is_some_and(|owner| owner != *queue) => OpOutcome::Duplicate,
                    Some(q) => OpOutcome::NotifierWas(q.record.notifier.replace((**notifier).clone()).map(Box::new)),
                }
            }
            Op::DeleteQueue { queue } => match self.queues.remove(queue) {
                Some(queue) => OpOutcome::Deleted(queue.audience(true)),
                None => OpOutcome::NoQueue,
            },
            op => match self.queues.get_mut(op.queue()) {
                Some(queue) => queue.apply(op),
                None => OpOutcome::NoQueue,
            },
        }
    }

    fn create(&mut self, new: &NewQueue) -> OpOutcome {
        let parties = [Party::Recipient, Party::Sender, Party::Link, Party::Notifier];
        let taken = parties.into_iter().any(|party| {
            let id = named(&new.record, party);
            id.is_some_and(|id| self.find(party, &id).is_some())
        });
        if taken {
            return OpOutcome::Duplicate;
        }
        let queue = ModelQueue { record: new.record.clone(), data: new.link_data.clone(), messages: VecDeque::new() };
        self.queues.insert(new.record.recipient_id, queue);
        OpOutcome::Done
    }

    fn set_link(&mut self, queue: &QueueId, link_id: QueueId, data: &LinkData) -> OpOutcome {
        let taken = self.find(Party::Link, &link_id).is_some();
        let Some(queue) = self.queues.get_mut(queue) else { return OpOutcome::NoQueue };
        match (queue.record.link_id, &queue.data) {
            (Some(own), Some(current)) if own != link_id || current.fixed != data.fixed => return OpOutcome::Conflict,
            (None, _) if taken => return OpOutcome::Duplicate,
            _ => {}
        }
        queue.record.link_id = Some(link_id);
        queue.data = Some(data.clone());
        OpOutcome::Done
    }

    fn expire(&mut self, before: Timestamp) -> u32 {
        let mut deleted = 0;
        for queue in self.queues.values_mut() {
            let expired = queue.expired(before);
            queue.messages.drain(..expired);
            deleted += expired as u32;
        }
        deleted
    }
}

impl ModelQueue {
    fn apply(&mut self, op: &Op) -> OpOutcome {
        match op {
            Op::SecureQueue { key, .. } => match &self.record.sender_key {
                Some(current) if current != key => return OpOutcome::Conflict,
                _ => self.record.sender_key = Some(key.clone()),
            },
            Op::SetRecipientKeys { keys, .. } => self.record.recipient_keys = keys.clone(),
            Op::DeleteLink { .. } => self.delete_link(),
            Op::DeleteNotifier { .. } => return OpOutcome::NotifierWas(self.record.notifier.take().map(Box::new)),
            Op::SuspendQueue { .. } => self.record.status = QueueStatus::Off,
            Op::BlockQueue { info, .. } => self.record.status = QueueStatus::Blocked(info.clone()),
            Op::UnblockQueue { .. } => self.record.status = QueueStatus::Active,
            Op::Touch { day, .. } => self.record.updated_at = Some(*day),
            Op::AssociateRecipient { service, .. } => {
                if service.is_some_and(|id| ![1, 2].map(service_id).contains(&id)) {
                    return OpOutcome::Conflict;
                }
                return OpOutcome::Associated { was: std::mem::replace(&mut self.record.recipient_service, *service) };
            }
            Op::AssociateNotifier { notifier, service, .. } => {
                let known = service.is_none_or(|id| id == service_id(3));
                return match self.record.notifier.as_mut().filter(|own| own.id == *notifier && known) {
                    Some(own) => OpOutcome::Associated { was: std::mem::replace(&mut own.service, *service) },
                    None => OpOutcome::Conflict,
                };
            }
            Op::Send(message) => return self.send(message),
            Op::Acknowledge { message, with_next, .. } => {
                let head = self.messages.front().filter(|head| message.is_none_or(|message| message == head.id));
                let deleted = head.is_some_and(|head| head.content != MessageContent::Quota);
                if head.is_some() {
                    self.messages.pop_front();
                }
                let next = self.messages.front().filter(|_| *with_next).cloned().map(Box::new);
                return OpOutcome::Acknowledged { deleted, next, more: !self.messages.is_empty() };
            }
            Op::CreateQueue(_) | Op::SetLink { .. } | Op::SetNotifier { .. } | Op::DeleteQueue { .. } => {
                panic!("done by the model itself")
            }
        }
        OpOutcome::Done
    }

    fn audience(&self, with_notifier: bool) -> Audience {
        let notifier = self.record.notifier.clone().filter(|_| with_notifier).map(Box::new);
        Audience { service: self.record.recipient_service, notifier }
    }

    fn delete_link(&mut self) {
        self.record.link_id = None;
        self.data = None;
    }

    /// How many messages at its head are expired.
    fn expired(&self, before: Timestamp) -> usize {
        let expired = |message: &&Message| message.timestamp < before && message.content != MessageContent::Quota;
        self.messages.iter().take_while(expired).count()
    }

    fn send(&mut self, message: &SendMessage) -> OpOutcome {
        if self.record.status != QueueStatus::Active {
            return OpOutcome::Conflict;
        }
        if message.delete_link {
            self.delete_link();
        }
        let expired = message.expire_before.map_or(0, |before| self.expired(before));
        self.messages.drain(..expired);
        if self.messages.back().is_some_and(|last| last.content == MessageContent::Quota) {
            return OpOutcome::Quota;
        }
        let (size, full) = (self.messages.len(), self.messages.len() >= QUOTA as usize);
        let content = match full {
            true => MessageContent::Quota,
            false => MessageContent::Sent { flags: message.flags, body: message.body.clone() },
        };
        self.messages.push_back(Message { id: message.id, sequence: 0, timestamp: message.timestamp, content });
        match full {
            true => OpOutcome::Quota,
            false => OpOutcome::Sent(Sent {
                sequence: 0,
                was_empty: size == 0,
                expired: expired as u32,
                audience: self.audience(message.flags.notification),
            }),
        }
    }
}

fn named(record: &QueueRecord, party: Party) -> Option<QueueId> {
    match party {
        Party::Recipient => Some(record.recipient_id),
        Party::Sender => Some(record.sender_id),
        Party::Link => record.link_id,
        Party::Notifier => record.notifier.as_ref().map(|notifier| notifier.id),
    }
}

/// Up to 24 steps, the messages of which are numbered in their order.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        9 => prop::collection::vec(op(), 1..6).prop_map(Step::Apply),
        1 => (any::<u8>(), 1..4_u32).prop_map(|(m, limit)| Step::Expire { before: time(m), limit }),
    ];
    prop::collection::vec(step, 1..24).prop_map(|mut steps| {
        steps.iter_mut().fold(0, number_messages);
        steps
    })
}

/// Gives the messages of a step IDs and times after `m`; an acknowledgement or expiry names one from among the last few.
fn number_messages(mut m: u8, step: &mut Step) -> u8 {
    match step {
        Step::Expire { before, .. } => *before = time(m.saturating_sub(before.seconds as u8 % 6)),
        Step::Apply(ops) => {
            for op in ops {
                match op {
                    Op::Send(message) => {
                        m += 1;
                        (message.id, message.timestamp) = (message_id(m), time(m));
                        message.expire_before = message.expire_before.map(|_| time(m.saturating_sub(4)));
                    }
                    Op::Acknowledge { message: Some(message), .. } => {
                        *message = message_id(m.saturating_sub(message.0[0] % 6));
                    }
                    _ => {}
                }
            }
        }
    }
    m
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..QUEUES;
    prop_oneof![
        4 => new_queue().prop_map(create),
        6 => (n.clone(), any::<u8>(), any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(n, m, expire, delete_link)| {
            let expire_before = expire.then(|| time(0));
            Op::Send(Box::new(SendMessage { expire_before, delete_link, ..message(n, m % 40) }))
        }),
        6 => (n.clone(), prop::option::weighted(0.7, any::<u8>()), any::<bool>()).prop_map(|(n, m, with_next)| {
            Op::Acknowledge { queue: recipient(n), message: m.map(message_id), with_next }
        }),
        5 => (n, 0..QUEUES, 0..14_u8).prop_map(|(n, other, which)| change(recipient(n), other, which)),
    ]
}

/// One of the changes of queue that are neither creation nor about messages.
fn change(queue: QueueId, other: u8, which: u8) -> Op {
    match which {
        0 => Op::SecureQueue { queue, key: key(other) },
        1 => Op::SetRecipientKeys { queue, keys: (0..=other).map(key).collect() },
        2 => Op::SetLink { queue, link_id: link(other), data: data(["", "f"][usize::from(other % 2)], "new") },
        3 => Op::DeleteLink { queue },
        4 => Op::SetNotifier { queue, notifier: Box::new(notifier(other)) },
        5 => Op::DeleteNotifier { queue },
        6 => Op::BlockQueue { queue, info: BlockingInfo { reason: BlockingReason::Spam, notice: None } },
        7 => Op::UnblockQueue { queue },
        8 => Op::DeleteQueue { queue },
        // Of other services than these there are none in this role.
        10 | 11 => Op::AssociateRecipient { queue, service: (other > 0).then(|| service_id(which + other - 10)) },
        12 | 13 => {
            let service = (which > 12).then(|| service_id(3 - other % 2));
            Op::AssociateNotifier { queue, notifier: notifier_id(other), service }
        }
        _ => Op::Touch { queue, day: Day(other.into()) },
    }
}

fn new_queue() -> impl Strategy<Value = NewQueue> {
    let n = 0..QUEUES;
    (n.clone(), n.clone(), prop::option::of(n.clone()), prop::option::weighted(0.3, n), prop::bool::weighted(0.1))
        .prop_map(|(n, s, l, t, off)| {
            let mut new = queue(n);
            new.record.sender_id = sender(s);
            new.record.link_id = l.map(link);
            new.link_data = l.map(|_| data("f", "user"));
            new.record.notifier = t.map(notifier);
            new.record.status = if off { QueueStatus::Off } else { QueueStatus::Active };
            new
        })
}
