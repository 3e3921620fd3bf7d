//! `NKEY`, `NDEL`, `NSUB` and notifications, by ordinary clients.

use bytes::Bytes;
use smp_server::client::{Client, NewQueue, Notifier, NotifierCredentials, Queue, Request};
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::crypto::{PrivateAuthKey, SigningKey};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::message::{MessageBody, NotificationMetadata};
use smp_server::protocol::response::Response;

use crate::support::{
    Store, authenticator_key, body_of, for_each_store, is_told_nothing, next_message, notified, signing_key, until, why,
};

for_each_store!(
    a_notifier_is_told_of_each_message_that_asks_for_it,
    a_queue_is_created_with_its_notifier,
    only_the_notifiers_key_subscribes,
    a_subscription_to_notifications_is_in_force_before_its_answer,
    notifications_wait_for_their_notifier_and_come_once_and_in_order,
    what_a_closed_connection_was_not_told_goes_to_the_next_one,
    who_subscribes_to_notifications_takes_over,
    a_replaced_notifier_is_deleted,
    a_removed_notifier_is_deleted,
    a_deleted_queue_has_no_notifier,
    a_message_that_is_refused_is_not_notified,
    notifications_of_a_connection_share_blocks,
    the_oldest_notifications_of_a_notifier_give_way,
    the_oldest_notifications_of_all_give_way,
);

/// Sends a message that asks for notification and takes it as its recipient: what its notifier is told of it.
async fn send(queue: &Queue, sender: &mut Client, recipient: &mut Client) -> NotificationMetadata {
    queue.sender().send_notified(sender, b"notified").await.unwrap();
    let message = queue.message(recipient).await.unwrap();
    let MessageBody::Sent { seconds, flags, .. } = message.content else { panic!("{message:?}") };
    assert!(flags.notification);
    assert!(queue.acknowledge(recipient, &message.id.0).await.unwrap().is_none());
    NotificationMetadata { message_id: message.id.into(), timestamp: seconds }
}

/// That the notifier is told that it is deleted, in the words of its version, and can subscribe no more.
async fn assert_deleted(notifier: &Notifier, client: &mut Client) {
    let expected = if client.version().0 >= 10 { Response::Deld } else { Response::End };
    assert_eq!(notifier.event(client).await.unwrap().response, expected, "version {:?}", client.version());
    assert_eq!(why(notifier.subscribe(client).await), ErrorType::Auth);
    assert!(is_told_nothing(client).await);
}

async fn a_notifier_is_told_of_each_message_that_asks_for_it(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let (mut recipient, mut client) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let mut sender = relay.connect_in(version).await;
        let (queue, notifier) = notified(&mut recipient).await;
        assert!(notifier.id != queue.ids.recipient_id && notifier.id != queue.ids.sender_id);
        notifier.subscribe(&mut client).await.unwrap();
        for _ in 0..2 {
            // Of this one the notifier hears nothing: the next that it hears of is another.
            queue.sender().send(&mut sender, b"quietly").await.unwrap();
            assert!(next_message(&mut recipient, &queue, b"quietly").await.is_none());
            let expected = send(&queue, &mut sender, &mut recipient).await;
            assert_eq!(notifier.notification(&mut client).await.unwrap(), expected, "version {version}");
        }
        assert!(is_told_nothing(&mut client).await);
    }
}

async fn a_queue_is_created_with_its_notifier(store: Store) {
    let relay = store.relay();
    for version in [6, 16, 17, 20] {
        let mut client = relay.connect_in(version).await;
        let new = NewQueue::messaging().with_notifier(NotifierCredentials::generate());
        let queue = new.create(&mut client).await.unwrap();
        assert_eq!(queue.notifier.is_some(), version >= 17, "version {version}");
        assert_eq!(queue.info(&mut client).await.unwrap().notifications, version >= 17);
        let Some(notifier) = &queue.notifier else { continue };
        let mut other = relay.connect_in(version).await;
        notifier.subscribe(&mut client).await.unwrap();
        let expected = send(&queue, &mut other, &mut client).await;
        assert_eq!(notifier.notification(&mut client).await.unwrap(), expected);
    }
}

async fn only_the_notifiers_key_subscribes(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let ed448 = PrivateAuthKey::Signing(SigningKey::generate_ed448().unwrap());
    for key in [signing_key(), ed448, authenticator_key()] {
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        let credentials = NotifierCredentials::with_key(key);
        let notifier = queue.enable_notifications(&mut client, credentials).await.unwrap();
        let other_keys = [signing_key(), authenticator_key(), queue.key.clone()];
        let mut requests = other_keys.map(|key| notifier.request(Command::Nsub).authorized_by(&key)).to_vec();
        for id in [queue.id(), &queue.ids.sender_id] {
            requests.push(Request::new(id.clone(), Command::Nsub).authorized_by(&notifier.key));
        }
        for answer in client.request_all(&requests).await.unwrap() {
            assert_eq!(answer, Response::Err(ErrorType::Auth));
        }
        let forged = queue.request(Command::Sub).authorized_by(&notifier.key);
        assert_eq!(client.request(forged).await.unwrap(), Response::Err(ErrorType::Auth), "messages are not its own");
        notifier.subscribe(&mut client).await.unwrap();
    }
}

/// Again and again: a race would show now and then only.
async fn a_subscription_to_notifications_is_in_force_before_its_answer(store: Store) {
    let relay = store.relay();
    let (mut recipient, mut sender) = (relay.connect().await, relay.connect().await);
    let (mut first, mut second) = (relay.connect().await, relay.connect().await);
    for _ in 0..10 {
        let (queue, notifier) = notified(&mut recipient).await;
        for client in [&mut first, &mut second] {
            notifier.subscribe(client).await.unwrap();
            let expected = send(&queue, &mut sender, &mut recipient).await;
            assert_eq!(notifier.notification(client).await.unwrap(), expected);
        }
        assert_eq!(notifier.event(&mut first).await.unwrap().response, Response::End);
    }
}

async fn notifications_wait_for_their_notifier_and_come_once_and_in_order(store: Store) {
    let relay = store.relay();
    let (mut recipient, mut sender) = (relay.connect().await, relay.connect().await);
    let (queue, notifier) = notified(&mut recipient).await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(send(&queue, &mut sender, &mut recipient).await);
    }
    let mut client = relay.connect().await;
    notifier.subscribe(&mut client).await.unwrap();
    expected.push(send(&queue, &mut sender, &mut recipient).await);
    for metadata in expected {
        assert_eq!(notifier.notification(&mut client).await.unwrap(), metadata);
    }
    notifier.subscribe(&mut client).await.unwrap();
    let last = send(&queue, &mut sender, &mut recipient).await;
    assert_eq!(notifier.notification(&mut client).await.unwrap(), last, "and none of those before");
    assert!(is_told_nothing(&mut client).await);
}

async fn what_a_closed_connection_was_not_told_goes_to_the_next_one(store: Store) {
    let relay = store.relay();
    let (mut recipient, mut sender) = (relay.connect().await, relay.connect().await);
    let (queue, notifier) = notified(&mut recipient).await;
    let mut client = relay.connect().await;
    notifier.subscribe(&mut client).await.unwrap();
    let told = send(&queue, &mut sender, &mut recipient).await;
    assert_eq!(notifier.notification(&mut client).await.unwrap(), told);
    client.close();
    let untold = send(&queue, &mut sender, &mut recipient).await;
    let mut next = relay.connect().await;
    notifier.subscribe(&mut next).await.unwrap();
    assert_eq!(notifier.notification(&mut next).await.unwrap(), untold);
}

async fn who_subscribes_to_notifications_takes_over(store: Store) {
    let relay = store.relay();
    for version in [6, 10, 20] {
        let (mut recipient, mut sender) = (relay.connect().await, relay.connect().await);
        let (queue, notifier) = notified(&mut recipient).await;
        let mut clients = [relay.connect_in(version).await, relay.connect_in(version).await];
        notifier.subscribe(&mut clients[1]).await.unwrap();
        for _ in 0..4 {
            let [mut new, mut old] = clients;
            notifier.subscribe(&mut new).await.unwrap();
            let expected = send(&queue, &mut sender, &mut recipient).await;
            assert_eq!(notifier.notification(&mut new).await.unwrap(), expected);
            assert_eq!(notifier.event(&mut old).await.unwrap().response, Response::End, "version {version}");
            assert!(is_told_nothing(&mut old).await, "version {version}");
            clients = [old, new];
        }
    }
}

async fn a_replaced_notifier_is_deleted(store: Store) {
    let relay = store.relay();
    for version in [6, 9, 10, 20] {
        let (mut recipient, mut client) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let mut sender = relay.connect_in(version).await;
        let (queue, old) = notified(&mut recipient).await;
        old.subscribe(&mut client).await.unwrap();
        let same_key = NotifierCredentials::with_key(old.key.clone());
        let new = queue.enable_notifications(&mut recipient, same_key).await.unwrap();
        assert_ne!(new.id, old.id);
        assert_deleted(&old, &mut client).await;
        // What waits for a notifier goes with it.
        send(&queue, &mut sender, &mut recipient).await;
        let new = queue.enable_notifications(&mut recipient, NotifierCredentials::generate()).await.unwrap();
        new.subscribe(&mut client).await.unwrap();
        let expected = send(&queue, &mut sender, &mut recipient).await;
        assert_eq!(new.notification(&mut client).await.unwrap(), expected, "version {version}");
    }
}

async fn a_removed_notifier_is_deleted(store: Store) {
    let relay = store.relay();
    for version in [6, 10, 20] {
        let (mut recipient, mut client) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let (queue, notifier) = notified(&mut recipient).await;
        notifier.subscribe(&mut client).await.unwrap();
        assert!(queue.info(&mut recipient).await.unwrap().notifications);
        for _ in 0..2 {
            queue.disable_notifications(&mut recipient).await.unwrap();
        }
        assert!(!queue.info(&mut recipient).await.unwrap().notifications);
        assert_deleted(&notifier, &mut client).await;
        queue.sender().send_notified(&mut client, b"nobody is told").await.unwrap();
        let message = queue.message(&mut recipient).await.unwrap();
        assert_eq!(body_of(&message), b"nobody is told");
    }
}

async fn a_deleted_queue_has_no_notifier(store: Store) {
    let relay = store.relay();
    for version in [6, 10, 20] {
        let (mut recipient, mut client) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let (queue, notifier) = notified(&mut recipient).await;
        notifier.subscribe(&mut client).await.unwrap();
        queue.delete(&mut recipient).await.unwrap();
        assert_deleted(&notifier, &mut client).await;
        assert!(is_told_nothing(&mut recipient).await);
    }
}

async fn a_message_that_is_refused_is_not_notified(store: Store) {
    let relay = store.relay_with(&[("STORE_LOG", "message_queue_quota", "2")]);
    let (mut recipient, mut client) = (relay.connect().await, relay.connect().await);
    let (queue, notifier) = notified(&mut recipient).await;
    notifier.subscribe(&mut client).await.unwrap();
    for _ in 0..2 {
        queue.sender().send_notified(&mut client, b"fits").await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(why(queue.sender().send_notified(&mut client, b"too many").await), ErrorType::Quota);
    }
    let mut message = queue.message(&mut recipient).await.unwrap();
    for _ in 0..2 {
        let told = notifier.notification(&mut client).await.unwrap();
        assert_eq!(told.message_id, Bytes::from(message.id));
        message = queue.acknowledge(&mut recipient, &message.id.0).await.unwrap().unwrap();
    }
    assert!(matches!(message.content, MessageBody::Quota { .. }));
    assert!(queue.acknowledge(&mut recipient, &message.id.0).await.unwrap().is_none());
    let expected = send(&queue, &mut client, &mut recipient).await;
    assert_eq!(notifier.notification(&mut client).await.unwrap(), expected, "the marker is not told");
}

/// Queues with notifiers, created in as few blocks as they fit in.
async fn many_notified(client: &mut Client, count: usize) -> Vec<Queue> {
    let new = (0..count).map(|_| NewQueue::messaging().with_notifier(NotifierCredentials::generate()));
    let new: Vec<_> = new.map(NewQueue::only_created).collect();
    let requests: Vec<_> = new.iter().map(|new| new.request().unwrap()).collect();
    let answers = client.request_all(&requests).await.unwrap();
    new.into_iter().zip(answers).map(|(new, answer)| new.created(answer).unwrap()).collect()
}

/// Sends a message to each queue, in as few blocks as they fit in.
async fn send_to_all(queues: &[Queue], client: &mut Client) {
    let flags = MessageFlags { notification: true };
    let messages: Vec<_> = queues.iter().map(|queue| queue.sender().message(flags, b"notified")).collect();
    assert!(client.request_all(&messages).await.unwrap().iter().all(|answer| *answer == Response::Ok));
}

fn notifier(queue: &Queue) -> &Notifier {
    queue.notifier.as_ref().unwrap()
}

async fn notifications_of_a_connection_share_blocks(store: Store) {
    const QUEUES: usize = 120;
    let relay = store.relay_with(&[("NOTIFICATIONS", "delivery_interval_ms", "1000")]);
    let (mut owner, mut client) = (relay.connect().await, relay.connect().await);
    let queues = many_notified(&mut owner, QUEUES).await;
    let subscriptions: Vec<_> = queues.iter().map(|queue| notifier(queue).request(Command::Nsub)).collect();
    assert!(client.request_all(&subscriptions).await.unwrap().iter().all(|answer| *answer == Response::Sok(None)));
    send_to_all(&queues, &mut owner).await;
    let mut blocks = Vec::new();
    let mut told = Vec::new();
    until("all notifications", async || {
        let received = client.receive().await.unwrap();
        blocks.push(received.len());
        told.extend(received.into_iter().map(|transmission| transmission.entity_id));
        told.len() >= QUEUES
    })
    .await;
    let expected: Vec<_> = queues.iter().map(|queue| notifier(queue).id.clone()).collect();
    assert_eq!(told, expected, "in the order in which they were sent");
    // One for each window that the sending took, and one for each that was full.
    assert!(blocks.len() <= 10, "{blocks:?}");
}

async fn the_oldest_notifications_of_a_notifier_give_way(store: Store) {
    let relay = store.relay_with(&[("NOTIFICATIONS", "pending_per_notifier", "3")]);
    let (mut recipient, mut client) = (relay.connect().await, relay.connect().await);
    let (queue, notifier) = notified(&mut recipient).await;
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.push(send(&queue, &mut client, &mut recipient).await);
    }
    notifier.subscribe(&mut client).await.unwrap();
    for metadata in &sent[2..] {
        assert_eq!(notifier.notification(&mut client).await.unwrap(), *metadata);
    }
}

async fn the_oldest_notifications_of_all_give_way(store: Store) {
    let relay = store.relay_with(&[("NOTIFICATIONS", "pending_total", "4")]);
    let (mut owner, mut client) = (relay.connect().await, relay.connect().await);
    let queues = many_notified(&mut owner, 6).await;
    send_to_all(&queues, &mut owner).await;
    for queue in &queues {
        notifier(queue).subscribe(&mut client).await.unwrap();
    }
    for queue in &queues[2..] {
        let event = client.event().await.unwrap();
        assert_eq!((event.entity_id, event.response.name()), (notifier(queue).id.clone(), "NMSG"));
    }
    assert!(is_told_nothing(&mut client).await);
}
