//! Every kind of record comes back from its line.

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;

use super::{ServiceParty, StoreLogRecord};
use crate::protocol::command::{LinkData, QueueMode};
use crate::protocol::error::{BlockingInfo, BlockingReason, ClientNotice};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::{QueueId, ServiceId};
use crate::store::record::{Day, DhSecret, NewQueue, Notifier, QueueRecord, QueueStatus, ServiceRecord};

fn id() -> impl Strategy<Value = QueueId> {
    any::<[u8; 24]>().prop_map(QueueId)
}

fn service_id() -> impl Strategy<Value = ServiceId> {
    any::<[u8; 24]>().prop_map(ServiceId)
}

fn key() -> impl Strategy<Value = PublicAuthKey> {
    prop_oneof![
        any::<[u8; 32]>().prop_map(PublicAuthKey::Ed25519),
        prop::collection::vec(any::<u8>(), 57)
            .prop_map(|key| PublicAuthKey::Ed448(Box::new(key.try_into().expect("57 bytes")))),
        any::<[u8; 32]>().prop_map(|key| PublicAuthKey::X25519(PublicDhKey(key))),
    ]
}

fn keys() -> impl Strategy<Value = Vec<PublicAuthKey>> {
    prop::collection::vec(key(), 1..4)
}

fn secret() -> impl Strategy<Value = DhSecret> {
    any::<[u8; 32]>().prop_map(DhSecret)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from)
}

fn data() -> impl Strategy<Value = LinkData> {
    (bytes(), bytes()).prop_map(|(fixed, user)| LinkData { fixed, user })
}

fn day() -> impl Strategy<Value = Day> {
    any::<i32>().prop_map(Day)
}

fn notifier() -> impl Strategy<Value = Notifier> {
    (id(), key(), secret(), option::of(service_id())).prop_map(|(id, key, dh_secret, service)| Notifier {
        id,
        key,
        dh_secret,
        service,
    })
}

fn blocking() -> impl Strategy<Value = BlockingInfo> {
    let reason = prop_oneof![Just(BlockingReason::Spam), Just(BlockingReason::Content)];
    let notice = option::of(option::of(any::<i64>()).prop_map(|ttl| ClientNotice { ttl }));
    (reason, notice).prop_map(|(reason, notice)| BlockingInfo { reason, notice })
}

fn status() -> impl Strategy<Value = QueueStatus> {
    prop_oneof![Just(QueueStatus::Active), Just(QueueStatus::Off), blocking().prop_map(QueueStatus::Blocked)]
}

fn mode() -> impl Strategy<Value = Option<QueueMode>> {
    option::of(prop_oneof![Just(QueueMode::Messaging), Just(QueueMode::Contact)])
}

fn queue() -> impl Strategy<Value = NewQueue> {
    let first = (id(), id(), keys(), secret(), option::of(key()), mode());
    let rest =
        (status(), option::of((id(), data())), option::of(notifier()), option::of(service_id()), option::of(day()));
    (first, rest).prop_map(|(first, rest)| {
        let (recipient_id, sender_id, recipient_keys, dh_secret, sender_key, mode) = first;
        let (status, link, notifier, recipient_service, updated_at) = rest;
        let (link_id, link_data) = link.unzip();
        let record = QueueRecord {
            recipient_id,
            sender_id,
            recipient_keys,
            dh_secret,
            sender_key,
            mode,
            status,
            link_id,
            notifier,
            recipient_service,
            updated_at,
        };
        NewQueue { record, link_data }
    })
}

fn service() -> impl Strategy<Value = ServiceRecord> {
    let role = prop_oneof![Just(ServiceRole::Messaging), Just(ServiceRole::Notifier), Just(ServiceRole::Proxy)];
    // An empty certificate alone looks like none; there are no empty certificates.
    let certificate = prop::collection::vec(any::<u8>(), 1..60).prop_map(Bytes::from);
    let chain = prop::collection::vec(certificate, 0..4);
    (service_id(), role, chain, bytes(), day()).prop_map(
        |(id, role, certificate_chain, certificate_hash, created_at)| ServiceRecord {
            id,
            role,
            certificate_chain,
            certificate_hash,
            created_at,
        },
    )
}

fn record() -> impl Strategy<Value = StoreLogRecord> {
    use StoreLogRecord as Record;
    let party = prop_oneof![Just(ServiceParty::Recipient), Just(ServiceParty::Notifier)];
    prop_oneof![
        queue().prop_map(|queue| Record::CreateQueue(Box::new(queue))),
        (id(), id(), data()).prop_map(|(queue, link_id, data)| Record::SetLink { queue, link_id, data }),
        id().prop_map(|queue| Record::DeleteLink { queue }),
        (id(), key()).prop_map(|(queue, key)| Record::SecureQueue { queue, key }),
        (id(), keys()).prop_map(|(queue, keys)| Record::SetRecipientKeys { queue, keys }),
        (id(), notifier()).prop_map(|(queue, it)| Record::SetNotifier { queue, notifier: Box::new(it) }),
        id().prop_map(|queue| Record::DeleteNotifier { queue }),
        id().prop_map(|queue| Record::SuspendQueue { queue }),
        (id(), blocking()).prop_map(|(queue, info)| Record::BlockQueue { queue, info }),
        id().prop_map(|queue| Record::UnblockQueue { queue }),
        id().prop_map(|queue| Record::DeleteQueue { queue }),
        (id(), day()).prop_map(|(queue, day)| Record::Touch { queue, day }),
        service().prop_map(|service| Record::NewService(Box::new(service))),
        (id(), party, option::of(service_id())).prop_map(|(queue, party, service)| Record::SetQueueService {
            queue,
            party,
            service
        }),
    ]
}

/// Records in whose lines signs of equality are padding and nothing else.
fn record_without_names() -> impl Strategy<Value = StoreLogRecord> {
    use StoreLogRecord as Record;
    prop_oneof![
        (id(), id(), data()).prop_map(|(queue, link_id, data)| Record::SetLink { queue, link_id, data }),
        (id(), key()).prop_map(|(queue, key)| Record::SecureQueue { queue, key }),
        (id(), keys()).prop_map(|(queue, keys)| Record::SetRecipientKeys { queue, keys }),
    ]
}

proptest! {
    #[test]
    fn every_record_comes_back_from_its_line(record in record()) {
        let mut line = Vec::new();
        record.write(&mut line);
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(StoreLogRecord::read(&line), Ok(record));
    }

    #[test]
    fn padding_may_be_left_out(record in record_without_names()) {
        let mut line = Vec::new();
        record.write(&mut line);
        line.retain(|byte| *byte != b'=');
        prop_assert_eq!(StoreLogRecord::read(&line), Ok(record));
    }
}

#[test]
fn a_record_needs_all_its_fields_and_no_more() {
    let id = "AkTHLeWvnKFSE7YVQ3zTXG9EsuDGM7NP";
    let lines = [
        "DELETE",
        "DELETE ",
        &format!("DELETE {id} "),
        &format!("DELETE  {id}"),
        &format!("DELETE {id}A"),
        &format!("delete {id}"),
        &format!("REMOVE {id}"),
        &format!("TIME {id} x"),
        &format!("TIME {id} 99999999999999999999"),
        &format!("TIME {id} 9223372036854775807"),
        &format!("QUEUE_SERVICE {id} R"),
        &format!("QUEUE_SERVICE {id} S "),
        &format!("BLOCK {id} reason=spamx"),
        &format!("BLOCK {id} reason=spam,notice={{"),
        &format!("KEYS {id} "),
        &format!("SECURE {id} AAAA"),
        &format!("CREATE rid={id}"),
        "NEW_SERVICE service_id=",
    ];
    for line in lines {
        assert!(StoreLogRecord::read(line.as_bytes()).is_err(), "{line}");
    }
}
