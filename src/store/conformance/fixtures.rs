//! Queues, messages and shorthands for the suite.

use std::sync::Arc;

use bytes::Bytes;

use crate::protocol::command::{LinkData, MessageFlags, QueueMode};
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::{MessageId, QueueId};
use crate::store::op::SendMessage;
use crate::store::{
    Day, DhSecret, FirstMessage, Looked, Message, MessageContent, NewQueue, Notifier, Op, OpOutcome, Peeked,
    QueueRecord, QueueStatus, Store, Timestamp,
};

/// The recipient ID of queue `n`.
pub fn recipient(n: u8) -> QueueId {
    QueueId([n; 24])
}

/// The sender ID of queue `n`.
pub fn sender(n: u8) -> QueueId {
    QueueId([n ^ 0x40; 24])
}

/// Link ID `n`.
pub fn link(n: u8) -> QueueId {
    QueueId([n ^ 0x80; 24])
}

/// Notifier ID `n`.
pub fn notifier_id(n: u8) -> QueueId {
    QueueId([n ^ 0xc0; 24])
}

/// Key `n`, of each kind in turn.
pub fn key(n: u8) -> PublicAuthKey {
    match n % 3 {
        0 => PublicAuthKey::Ed25519([n; 32]),
        1 => PublicAuthKey::Ed448(Box::new([n; 57])),
        _ => PublicAuthKey::X25519(PublicDhKey([n; 32])),
    }
}

/// Queue `n`: active, not secured, without link and notifier.
pub fn queue(n: u8) -> NewQueue {
    let record = QueueRecord {
        recipient_id: recipient(n),
        sender_id: sender(n),
        recipient_keys: vec![key(n)],
        dh_secret: DhSecret([n; 32]),
        sender_key: None,
        mode: Some(QueueMode::Messaging),
        status: QueueStatus::Active,
        link_id: None,
        notifier: None,
        recipient_service: None,
        updated_at: Some(Day(20_000)),
    };
    NewQueue { record, link_data: None }
}

/// Queue `n` with link `n` and notifier `n`.
pub fn rich_queue(n: u8) -> NewQueue {
    let mut new = queue(n);
    new.record.link_id = Some(link(n));
    new.link_data = Some(data("fixed", "user"));
    new.record.notifier = Some(notifier(n));
    new
}

/// Notifier `n`.
pub fn notifier(n: u8) -> Notifier {
    Notifier { id: notifier_id(n), key: key(n), dh_secret: DhSecret([n ^ 0xff; 32]), service: None }
}

/// A link's data.
pub fn data(fixed: &'static str, user: &'static str) -> LinkData {
    LinkData { fixed: Bytes::from_static(fixed.as_bytes()), user: Bytes::from_static(user.as_bytes()) }
}

/// Creates queue `n`.
pub fn create(new: NewQueue) -> Op {
    Op::CreateQueue(Box::new(new))
}

/// The ID of message `m`.
pub fn message_id(m: u8) -> MessageId {
    MessageId([m; 24])
}

/// When message `m` is sent.
pub fn time(m: u8) -> Timestamp {
    Timestamp { seconds: 1_700_000_000 + i64::from(m), nanoseconds: 0 }
}

/// Message `m` to queue `n`: its body is `m` bytes.
pub fn message(n: u8, m: u8) -> SendMessage {
    SendMessage {
        queue: recipient(n),
        id: message_id(m),
        timestamp: time(m),
        flags: MessageFlags { notification: m.is_multiple_of(2) },
        body: Bytes::from(vec![m; m.into()]),
        expire_before: None,
        delete_link: false,
    }
}

/// Sends message `m` to queue `n`.
pub fn send(n: u8, m: u8) -> Op {
    Op::Send(Box::new(message(n, m)))
}

/// Acknowledges message `m` of queue `n` and asks for the next.
pub fn acknowledge(n: u8, m: u8) -> Op {
    Op::Acknowledge { queue: recipient(n), message: Some(message_id(m)), with_next: true }
}

/// The number that is the ID of a message and what it was sent as; panics if it is another.
pub fn assert_is_message(found: &Message, m: u8) {
    let sent = message(0, m);
    assert_eq!((found.id, found.timestamp), (sent.id, sent.timestamp));
    assert_eq!(found.content, MessageContent::Sent { flags: sent.flags, body: sent.body });
}

/// The outcome of one operation.
pub async fn one(store: &Arc<dyn Store>, op: Op) -> OpOutcome {
    let mut outcomes = store.apply(vec![op]).await.unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Does one operation that must be done.
pub async fn done(store: &Arc<dyn Store>, op: Op) {
    assert_eq!(one(store, op).await, OpOutcome::Done);
}

/// Deletes queue `n`, which must be there.
pub async fn delete(store: &Arc<dyn Store>, n: u8) {
    let outcome = one(store, Op::DeleteQueue { queue: recipient(n) }).await;
    assert!(matches!(outcome, OpOutcome::Deleted(_)), "{outcome:?}");
}

/// Appends message `m` to queue `n`: its sequence number, and whether the queue was empty.
pub async fn sent(store: &Arc<dyn Store>, n: u8, m: u8) -> (u64, bool) {
    match one(store, send(n, m)).await {
        OpOutcome::Sent(sent) => (sent.sequence, sent.was_empty),
        other => panic!("not sent: {other:?}"),
    }
}

/// What acknowledging answers: deleted, next, more.
pub async fn acknowledged(store: &Arc<dyn Store>, op: Op) -> (bool, Option<Message>, bool) {
    match one(store, op).await {
        OpOutcome::Acknowledged { deleted, next, more } => (deleted, next.map(|next| *next), more),
        other => panic!("not acknowledged: {other:?}"),
    }
}

/// The record of queue `n`.
pub async fn record(store: &Arc<dyn Store>, n: u8) -> Option<QueueRecord> {
    store.queues(crate::store::Party::Recipient, &[recipient(n)]).await.unwrap().remove(0)
}

/// The first message of queue `n`.
pub async fn first(store: &Arc<dyn Store>, n: u8) -> Option<Message> {
    peeked(store.first_messages(&[recipient(n)], 1).await.unwrap().remove(0)).map(|first| first.message)
}

/// The message that was read, if the queue has one; panics if it was not read.
pub fn peeked(looked: Looked) -> Option<FirstMessage> {
    match looked.first {
        Peeked::Absent | Peeked::Empty => None,
        Peeked::Message(first) => Some(*first),
        Peeked::Waiting | Peeked::Unreadable(_) => panic!("not read"),
    }
}

/// The sizes of these queues.
pub async fn sizes(store: &dyn Store, ids: &[QueueId]) -> Vec<u64> {
    store.queue_states(ids).await.unwrap().iter().map(|state| state.size).collect()
}

/// The size of queue `n`.
pub async fn size(store: &Arc<dyn Store>, n: u8) -> u64 {
    sizes(&**store, &[recipient(n)]).await[0]
}

/// The data of link `n`.
pub async fn link_data(store: &Arc<dyn Store>, n: u8) -> Option<LinkData> {
    store.link_data(&[link(n)]).await.unwrap().remove(0)
}

/// Deletes the messages before `before` in steps of `limit`; answers how many.
pub async fn expired(store: &Arc<dyn Store>, before: Timestamp, limit: u32) -> u32 {
    let mut deleted = 0;
    loop {
        let step = store.expire_messages(before, limit).await.unwrap();
        deleted += step.deleted;
        if !step.more {
            return deleted;
        }
    }
}
