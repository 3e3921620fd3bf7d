//! The whole life of a queue, in each version, with each kind of key.

use smp_server::client::{Client, NewQueue, Queue, Sender};
use smp_server::protocol::Version;
use smp_server::protocol::command::QueueMode;
use smp_server::protocol::crypto::{PrivateAuthKey, SigningKey};
use smp_server::protocol::error::ErrorType;

use crate::support::{Store, authenticator_key, body_of, for_each_store, next_message, signing_key, why};

for_each_store!(
    a_queue_lives_from_new_to_del_in_each_version_with_each_kind_of_key,
    a_client_without_alpn_speaks_version_6,
    a_client_without_a_session_key_is_served_in_each_version,
);

/// The kinds of key that this version has.
fn keys(version: u16) -> Vec<PrivateAuthKey> {
    let mut keys = vec![signing_key(), PrivateAuthKey::Signing(SigningKey::generate_ed448().unwrap())];
    if version >= Version::AUTHENTICATED_COMMANDS.0 {
        keys.push(authenticator_key());
    }
    keys
}

async fn a_queue_lives_from_new_to_del_in_each_version_with_each_kind_of_key(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let mut recipient = relay.connect_in(version).await;
        let mut sender = relay.connect_in(version).await;
        for (recipient_key, sender_key) in keys(version).into_iter().zip(keys(version)) {
            let queue = NewQueue::messaging().with_key(recipient_key).create(&mut recipient).await.unwrap();
            let mode = (version >= Version::SENDER_SECURES.0).then_some(QueueMode::Messaging);
            assert_eq!(queue.ids.mode, mode, "version {version}");
            live(&mut recipient, &mut sender, &queue, sender_key).await;
        }
    }
}

async fn live(recipient: &mut Client, client: &mut Client, queue: &Queue, sender_key: PrivateAuthKey) {
    queue.sender().send(client, b"hello").await.unwrap();
    assert!(next_message(recipient, queue, b"hello").await.is_none());
    secure(recipient, client, queue, &sender_key).await;
    let sender = Sender::with_key(queue.ids.sender_id.clone(), sender_key);
    for body in [b"one", b"two"] {
        sender.send(client, body).await.unwrap();
    }
    let one = queue.message(recipient).await.unwrap();
    let two = queue.acknowledge(recipient, &one.id.0).await.unwrap().unwrap();
    assert_eq!([body_of(&one), body_of(&two)], [b"one", b"two"]);
    let info = queue.info(recipient).await.unwrap();
    assert_eq!((info.secured, info.size), (true, 1));
    assert!(queue.acknowledge(recipient, &two.id.0).await.unwrap().is_none());
    queue.suspend(recipient).await.unwrap();
    assert_eq!(why(sender.send(client, b"suspended").await), ErrorType::Auth);
    queue.delete(recipient).await.unwrap();
    assert_eq!(why(queue.subscribe(recipient).await), ErrorType::Auth);
    assert_eq!(why(sender.send(client, b"deleted").await), ErrorType::Auth);
}

/// By the sender where the version has that.
async fn secure(recipient: &mut Client, client: &mut Client, queue: &Queue, key: &PrivateAuthKey) {
    if client.version() >= Version::SENDER_SECURES {
        Sender::with_key(queue.ids.sender_id.clone(), key.clone()).secure(client).await.unwrap();
    } else {
        queue.secure(recipient, &key.public_key().unwrap()).await.unwrap();
    }
    assert_eq!(why(queue.sender().send(client, b"not mine").await), ErrorType::Auth);
}

async fn a_client_without_alpn_speaks_version_6(store: Store) {
    let relay = store.relay();
    let options = smp_server::client::ConnectOptions { alpn: false, ..Default::default() };
    let mut recipient = relay.connect_with(&options).await.unwrap();
    let mut sender = relay.connect_with(&options).await.unwrap();
    assert_eq!(recipient.version(), Version(6));
    let queue = NewQueue::messaging().create(&mut recipient).await.unwrap();
    live(&mut recipient, &mut sender, &queue, signing_key()).await;
}

async fn a_client_without_a_session_key_is_served_in_each_version(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let options = smp_server::client::ConnectOptions { session_key: false, ..Default::default() };
        let options = options.with_version(Version(version));
        let mut recipient = relay.connect_with(&options).await.unwrap();
        let queue = NewQueue::messaging().create(&mut recipient).await.unwrap();
        queue.sender().send(&mut recipient, b"in plain blocks").await.unwrap();
        assert!(next_message(&mut recipient, &queue, b"in plain blocks").await.is_none());
    }
}
