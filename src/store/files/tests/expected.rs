//! What the reference found in its files, from `expected.json`.

use serde_json::Value;

use crate::protocol::command::{LinkData, MessageFlags, QueueMode};
use crate::protocol::crypto::test_vectors::{array, bytes, vectors};
use crate::protocol::error::BlockingInfo;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{
    Day, DhSecret, Message, MessageContent, NewQueue, Notifier, QueueRecord, QueueStatus, ServiceRecord, Timestamp,
};
use crate::store::transfer::Item;

/// The part for a file.
pub fn expected(file: &str) -> Value {
    vectors("store/expected.json")[file].take()
}

/// The elements of a list.
pub fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().unwrap().iter()
}

fn some<T>(value: &Value, read: impl FnOnce(&Value) -> T) -> Option<T> {
    (!value.is_null()).then(|| read(value))
}

fn key(der: &Value) -> PublicAuthKey {
    PublicAuthKey::from_der(&bytes(der)).unwrap()
}

fn day(seconds: &Value) -> Day {
    Day(i32::try_from(seconds.as_i64().unwrap() / 86_400).unwrap())
}

/// A queue.
pub fn queue(value: &Value) -> NewQueue {
    let link = &value["link"];
    let record = QueueRecord {
        recipient_id: QueueId(array(&value["recipient_id"])),
        sender_id: QueueId(array(&value["sender_id"])),
        recipient_keys: list(value, "recipient_keys").map(key).collect(),
        dh_secret: DhSecret(array(&value["rcv_dh_secret"])),
        sender_key: some(&value["sender_key"], key),
        mode: some(&value["queue_mode"], |mode| match mode.as_str() {
            Some("M") => QueueMode::Messaging,
            _ => QueueMode::Contact,
        }),
        status: status(&value["status"]),
        link_id: some(link, |link| QueueId(array(&link["link_id"]))),
        notifier: some(&value["notifier"], notifier),
        recipient_service: some(&value["rcv_service_id"], |id| ServiceId(array(id))),
        updated_at: some(&value["updated_at"], day),
    };
    let data =
        |link: &Value| LinkData { fixed: bytes(&link["fixed_data"]).into(), user: bytes(&link["user_data"]).into() };
    NewQueue { record, link_data: some(link, data) }
}

fn status(value: &Value) -> QueueStatus {
    match (value.as_str(), value["blocked"].as_str()) {
        (Some("active"), _) => QueueStatus::Active,
        (Some("off"), _) => QueueStatus::Off,
        (_, Some(info)) => QueueStatus::Blocked(BlockingInfo::from_text(info).unwrap()),
        _ => panic!("{value}"),
    }
}

fn notifier(value: &Value) -> Notifier {
    Notifier {
        id: QueueId(array(&value["notifier_id"])),
        key: key(&value["notifier_key"]),
        dh_secret: DhSecret(array(&value["rcv_ntf_dh_secret"])),
        service: some(&value["service_id"], |id| ServiceId(array(id))),
    }
}

/// A service.
pub fn service(value: &Value) -> ServiceRecord {
    ServiceRecord {
        id: ServiceId(array(&value["service_id"])),
        role: match value["role"].as_str() {
            Some("M") => ServiceRole::Messaging,
            _ => ServiceRole::Notifier,
        },
        certificate_chain: list(value, "cert_chain").map(|der| bytes(der).into()).collect(),
        certificate_hash: bytes(&value["cert_hash"]).into(),
        created_at: day(&value["created_at"]),
    }
}

/// A message.
pub fn message(value: &Value) -> Message {
    let content = match value["quota"].as_bool() {
        Some(true) => MessageContent::Quota,
        _ => MessageContent::Sent {
            flags: MessageFlags { notification: value["notification"].as_bool().unwrap() },
            body: bytes(&value["body"]).into(),
        },
    };
    Message {
        id: MessageId(array(&value["msg_id"])),
        sequence: 0,
        timestamp: Timestamp { seconds: value["timestamp"].as_i64().unwrap(), nanoseconds: 0 },
        content,
    }
}

/// Services and queues as a source yields them.
pub fn queues_and_services(value: &Value) -> Vec<Item> {
    let mut services: Vec<_> = list(value, "services").map(service).collect();
    let mut queues: Vec<_> = list(value, "queues").map(queue).collect();
    services.sort_by_key(|service| service.id.0);
    queues.sort_by_key(|queue| queue.record.recipient_id);
    let services = services.into_iter().map(|service| Item::Service(Box::new(service)));
    services.chain(queues.into_iter().map(|queue| Item::Queue(Box::new(queue)))).collect()
}

/// Messages queue by queue.
pub fn messages(value: &Value) -> Vec<Item> {
    list(value, "queues")
        .flat_map(|queue| {
            let id = QueueId(array(&queue["recipient_id"]));
            list(queue, "messages").map(move |value| Item::Message(id, Box::new(message(value))))
        })
        .collect()
}
