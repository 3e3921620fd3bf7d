//! `SEND`, `ACK`, `GET`, `OFF`, `DEL`, `QUE`, `PING`.

use bytes::Bytes;
use smp_server::client::{NewQueue, Queue, Sender};
use smp_server::protocol::Version;
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::message::{MessageBody, max_body_length};
use smp_server::protocol::response::{Response, SubscriptionKind};

use crate::support::{Store, body_of, drain, for_each_store, next_message, refused, secured, signing_key, why};

for_each_store!(
    messages_are_as_large_as_the_version_allows_and_no_larger,
    bodies_and_flags_arrive_as_they_were_sent,
    a_message_is_acknowledged_by_its_own_id_or_none,
    a_message_is_got_without_a_subscription,
    a_suspended_queue_is_read_and_not_written,
    a_deleted_queue_is_gone_with_its_messages,
    the_state_of_a_queue_is_told_to_its_recipient,
);

async fn messages_are_as_large_as_the_version_allows_and_no_larger(store: Store) {
    let relay = store.relay();
    let mut newest = relay.connect().await;
    for version in 6..=20 {
        let mut client = relay.connect_in(version).await;
        let (queue, sender) = secured(&mut client).await;
        let longest = max_body_length(Version(version));
        let body = vec![b'm'; longest + 1];
        assert_eq!(why(sender.send(&mut client, &body).await), ErrorType::LargeMsg, "version {version}");
        sender.send(&mut client, &body[1..]).await.unwrap();
        assert!(next_message(&mut client, &queue, &body[1..]).await.is_none());
        // Who receives in another version gets it too.
        sender.send(&mut client, &body[1..]).await.unwrap();
        queue.subscribe(&mut newest).await.unwrap();
        assert!(next_message(&mut newest, &queue, &body[1..]).await.is_none());
    }
}

async fn bodies_and_flags_arrive_as_they_were_sent(store: Store) {
    let relay = store.relay();
    for version in [6, 8, 11, 20] {
        let mut client = relay.connect_in(version).await;
        let (queue, sender) = secured(&mut client).await;
        for body in [b"".as_slice(), b" ", b"#", b"\0\n\xff", b"QUOTA ", &[b' '; 300]] {
            for notification in [false, true] {
                let request = sender.message(MessageFlags { notification }, body);
                assert_eq!(client.request(request).await.unwrap(), Response::Ok);
                let message = queue.message(&mut client).await.unwrap();
                let MessageBody::Sent { flags, body: arrived, .. } = &message.content else { panic!("{message:?}") };
                assert_eq!((flags.notification, &arrived[..]), (notification, body));
                assert!(queue.acknowledge(&mut client, &message.id.0).await.unwrap().is_none());
            }
        }
    }
}

async fn a_message_is_acknowledged_by_its_own_id_or_none(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    assert_eq!(why(queue.acknowledge(&mut client, &[]).await), ErrorType::NoMsg);
    sender.send(&mut client, b"one").await.unwrap();
    let one = queue.message(&mut client).await.unwrap();
    for wrong in [&[1; 24][..], b"odd"] {
        assert_eq!(why(queue.acknowledge(&mut client, wrong).await), ErrorType::NoMsg);
    }
    assert!(queue.acknowledge(&mut client, &one.id.0).await.unwrap().is_none());
    assert_eq!(why(queue.acknowledge(&mut client, &one.id.0).await), ErrorType::NoMsg);
    sender.send(&mut client, b"two").await.unwrap();
    queue.message(&mut client).await.unwrap();
    assert!(queue.acknowledge(&mut client, &[]).await.unwrap().is_none());
    assert_eq!(queue.info(&mut client).await.unwrap().size, 0);
}

async fn a_message_is_got_without_a_subscription(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
    assert!(queue.get(&mut client).await.unwrap().is_none());
    for body in [b"one", b"two"] {
        queue.sender().send(&mut client, body).await.unwrap();
    }
    for _ in 0..2 {
        let got = queue.get(&mut client).await.unwrap().unwrap();
        assert_eq!(body_of(&got), b"one", "until it is acknowledged");
    }
    let got = queue.get(&mut client).await.unwrap().unwrap();
    assert!(queue.acknowledge(&mut client, &got.id.0).await.unwrap().is_none(), "the next one is got, not pushed");
    assert_eq!(drain(&mut client, &queue).await, [b"two"]);
    assert_eq!(client.waiting_event(), None);
}

async fn a_suspended_queue_is_read_and_not_written(store: Store) {
    let relay = store.relay();
    let (mut client, mut other) = (relay.connect().await, relay.connect().await);
    let (queue, sender) = secured(&mut client).await;
    sender.send(&mut client, b"before").await.unwrap();
    queue.suspend(&mut client).await.unwrap();
    queue.suspend(&mut client).await.unwrap();
    assert_eq!(why(sender.send(&mut client, b"after").await), ErrorType::Auth);
    assert_eq!(why(queue.sender().send(&mut client, b"after").await), ErrorType::Auth);
    assert!(next_message(&mut client, &queue, b"before").await.is_none());
    queue.subscribe(&mut other).await.unwrap();
}

async fn a_deleted_queue_is_gone_with_its_messages(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    sender.send(&mut client, b"lost").await.unwrap();
    queue.message(&mut client).await.unwrap();
    queue.delete(&mut client).await.unwrap();
    let requests = [Command::Sub, Command::Get, Command::Que, Command::Off, Command::Del, Command::Ack(Bytes::new())]
        .map(|command| queue.request(command));
    for answer in client.request_all(&requests).await.unwrap() {
        assert_eq!(answer, refused(ErrorType::Auth));
    }
    assert_eq!(why(sender.send(&mut client, b"x").await), ErrorType::Auth);
    assert_eq!(why(sender.secure(&mut client).await), ErrorType::Auth);
}

async fn the_state_of_a_queue_is_told_to_its_recipient(store: Store) {
    let relay = store.relay();
    for version in [6, 20] {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
        let info = queue.info(&mut client).await.unwrap();
        assert_eq!((info.secured, info.notifications, info.size, info.message.is_some()), (false, false, 0, false));
        assert!(info.subscription.is_none());

        secure_and_send(&queue, &mut client).await;
        let info = queue.info(&mut client).await.unwrap();
        let first = info.message.unwrap();
        assert_eq!((info.secured, info.size, first.quota), (true, 2, false));

        let got = queue.get(&mut client).await.unwrap().unwrap();
        let subscription = queue.info(&mut client).await.unwrap().subscription.unwrap();
        assert_eq!(subscription.kind, SubscriptionKind::ProhibitSub);
        use base64::Engine;
        let id = base64::engine::general_purpose::STANDARD.encode(got.id.0);
        assert_eq!((subscription.delivered.as_ref(), &first.id), (Some(&id), &id));
    }
}

async fn secure_and_send(queue: &Queue, client: &mut smp_server::client::Client) {
    let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
    let key = sender.key.as_ref().unwrap().public_key().unwrap();
    queue.secure(client, &key).await.unwrap();
    for body in [b"one", b"two"] {
        sender.send(client, body).await.unwrap();
    }
}
