//! What tests of transfers share: random contents, and reading a source into memory to compare it.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Item, Put, Sink, Source};
use crate::protocol::command::{LinkData, MessageFlags, QueueMode};
use crate::protocol::error::{BlockingInfo, BlockingReason, ClientNotice};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{
    Day, DhSecret, Message, MessageContent, NewQueue, Notifier, QueueRecord, QueueStatus, ServiceRecord, Timestamp,
};

/// Everything that a store holds, without the numbers of messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// By ID.
    pub services: BTreeMap<[u8; 24], ServiceRecord>,
    /// By recipient ID.
    pub queues: BTreeMap<QueueId, NewQueue>,
    /// By recipient ID; no entry for empty queues.
    pub messages: BTreeMap<QueueId, Vec<Message>>,
}

impl Contents {
    /// Random contents of so many queues, of which each third has up to `messages` messages.
    pub fn random(queues: u32, messages: u64) -> Self {
        let mut contents = Contents::default();
        for n in 0..3 {
            let service = random_service(n);
            contents.services.insert(service.id.0, service);
        }
        let services: Vec<_> = contents.services.values().map(|service| (service.role, service.id)).collect();
        let of = |role| services.iter().find(|(r, _)| *r == role).map(|(_, id)| *id);
        let ids = [of(ServiceRole::Messaging), of(ServiceRole::Notifier)];
        for n in 0..queues {
            let queue = random_queue(n, ids);
            let id = queue.record.recipient_id;
            if n % 3 == 0 && messages > 0 {
                let count = 1 + u64::from(byte()) % messages;
                contents
                    .messages
                    .insert(id, (0..count).map(|m| random_message(m, m + 1 == count && n % 2 == 0)).collect());
            }
            contents.queues.insert(id, queue);
        }
        contents
    }

    /// In the order in which stores give them.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        let services = self.services.values().map(|service| Item::Service(Box::new(service.clone())));
        let queues = self.queues.iter().flat_map(|(id, queue)| {
            let messages = self.messages.get(id).into_iter().flatten();
            let messages = messages.map(|message| Item::Message(*id, Box::new(message.clone())));
            std::iter::once(Item::Queue(Box::new(queue.clone()))).chain(messages)
        });
        services.chain(queues)
    }
}

/// Puts all of `contents`, and asserts that nothing was refused.
pub fn fill(sink: &mut dyn Sink, contents: &Contents) {
    copy(&mut Items(contents.items()), sink);
}

/// Moves everything, and asserts that nothing is damaged or refused.
pub fn copy(source: &mut dyn Source, sink: &mut dyn Sink) {
    while let Some(item) = source.next(&mut |damage| panic!("{damage}")).unwrap() {
        let put = sink.put(item).unwrap();
        assert!(matches!(put, Put::Stored | Put::Present), "{put:?}");
    }
    assert_eq!(sink.settle().unwrap(), super::Rejected::default());
}

/// Reads everything, and asserts that nothing is damaged.
pub fn contents(source: &mut dyn Source) -> Contents {
    let mut contents = Contents::default();
    while let Some(item) = source.next(&mut |damage| panic!("{damage}")).unwrap() {
        match item {
            Item::Service(service) => {
                assert!(contents.services.insert(service.id.0, *service).is_none());
            }
            Item::Queue(queue) => {
                assert!(contents.queues.insert(queue.record.recipient_id, *queue).is_none());
            }
            Item::Message(queue, message) => {
                let message = Message { sequence: 0, ..*message };
                contents.messages.entry(queue).or_default().push(message);
            }
        }
    }
    contents
}

/// Items as a source.
pub struct Items<I>(pub I);

impl<I: Iterator<Item = Item>> Source for Items<I> {
    fn next(&mut self, _: &mut dyn FnMut(super::Damage)) -> Result<Option<Item>, super::TransferError> {
        Ok(self.0.next())
    }

    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}

/// A message of this time (its ID is random).
pub fn sent(queue: QueueId, seconds: u64, body: Bytes) -> Item {
    let content = MessageContent::Sent { flags: MessageFlags { notification: false }, body };
    let timestamp = Timestamp { seconds: seconds as i64, nanoseconds: 0 };
    Item::Message(queue, Box::new(Message { id: MessageId(random()), sequence: 0, timestamp, content }))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

fn byte() -> u8 {
    random::<1>()[0]
}

fn random_key() -> PublicAuthKey {
    match byte() % 3 {
        0 => PublicAuthKey::Ed25519(random()),
        1 => PublicAuthKey::Ed448(Box::new(random())),
        _ => PublicAuthKey::X25519(PublicDhKey(random())),
    }
}

fn some<T>(value: impl FnOnce() -> T) -> Option<T> {
    byte().is_multiple_of(2).then(value)
}

fn random_queue(n: u32, [messaging, notifier]: [Option<ServiceId>; 2]) -> NewQueue {
    let link = some(|| QueueId(random()));
    let blocked = |reason, notice| QueueStatus::Blocked(BlockingInfo { reason, notice });
    let record = QueueRecord {
        recipient_id: QueueId(random()),
        sender_id: QueueId(random()),
        recipient_keys: (0..1 + byte() % 3).map(|_| random_key()).collect(),
        dh_secret: DhSecret(random()),
        sender_key: some(random_key),
        mode: some(|| if n.is_multiple_of(2) { QueueMode::Messaging } else { QueueMode::Contact }),
        status: match n % 6 {
            0 => QueueStatus::Off,
            1 => blocked(BlockingReason::Spam, None),
            2 => blocked(BlockingReason::Content, Some(ClientNotice { ttl: Some(3_600) })),
            _ => QueueStatus::Active,
        },
        link_id: link,
        notifier: some(|| Notifier {
            id: QueueId(random()),
            key: random_key(),
            dh_secret: DhSecret(random()),
            service: some(|| notifier).flatten(),
        }),
        recipient_service: some(|| messaging).flatten(),
        updated_at: Some(Day(19_000 + i32::from(byte()))),
    };
    let data = || LinkData { fixed: random::<20>().to_vec().into(), user: random::<30>().to_vec().into() };
    NewQueue { record, link_data: link.map(|_| data()) }
}

fn random_message(n: u64, quota: bool) -> Message {
    let flags = MessageFlags { notification: byte().is_multiple_of(2) };
    let body = match byte() % 4 {
        0 => Bytes::new(),
        1 => vec![byte(); 16_000].into(),
        _ => random::<64>().to_vec().into(),
    };
    let content = if quota { MessageContent::Quota } else { MessageContent::Sent { flags, body } };
    let timestamp = Timestamp { seconds: 1_700_000_000 + n as i64, nanoseconds: 0 };
    Message { id: MessageId(random()), sequence: 0, timestamp, content }
}

fn random_service(n: u8) -> ServiceRecord {
    let role = [ServiceRole::Messaging, ServiceRole::Notifier, ServiceRole::Messaging][usize::from(n % 3)];
    ServiceRecord {
        id: ServiceId(random()),
        role,
        certificate_chain: vec![certificate(), certificate()],
        certificate_hash: random::<32>().to_vec().into(),
        created_at: Day(20_000),
    }
}

/// Something that stands for a certificate in DER: a SEQUENCE.
fn certificate() -> Bytes {
    [&[0x30, 0x28][..], &random::<40>()].concat().into()
}
