//! `KEY`, `SKEY`, `RKEY`: who may send and who may receive.

use smp_server::client::{NewQueue, Sender};
use smp_server::protocol::command::Command;
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::response::Response;

use crate::support::{Store, for_each_store, next_message, refused, signing_key, why};

for_each_store!(
    the_recipient_secures_a_queue_once_and_for_all,
    the_sender_secures_a_queue_once_and_for_all,
    a_contact_address_is_not_secured_by_its_sender,
    recipient_keys_are_replaced_in_contact_addresses_only,
    a_secured_queue_takes_only_what_its_sender_signed,
);

async fn the_recipient_secures_a_queue_once_and_for_all(store: Store) {
    let relay = store.relay();
    for version in [6, 8, 20] {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        let (key, other) = (signing_key().public_key().unwrap(), signing_key().public_key().unwrap());
        queue.secure(&mut client, &key).await.unwrap();
        queue.secure(&mut client, &key).await.unwrap();
        assert_eq!(why(queue.secure(&mut client, &other).await), ErrorType::Auth);
        assert!(queue.info(&mut client).await.unwrap().secured);
    }
}

async fn the_sender_secures_a_queue_once_and_for_all(store: Store) {
    let relay = store.relay();
    for version in 9..=20 {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
        let other = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
        sender.secure(&mut client).await.unwrap();
        sender.secure(&mut client).await.unwrap();
        assert_eq!(why(other.secure(&mut client).await), ErrorType::Auth, "version {version}");
        let key = other.key.as_ref().unwrap().public_key().unwrap();
        assert_eq!(why(queue.secure(&mut client, &key).await), ErrorType::Auth, "version {version}");
        sender.send(&mut client, b"mine").await.unwrap();
        assert_eq!(why(other.send(&mut client, b"not mine").await), ErrorType::Auth);
        assert!(next_message(&mut client, &queue, b"mine").await.is_none());
    }
}

async fn a_contact_address_is_not_secured_by_its_sender(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let queue = NewQueue::contact().create(&mut client).await.unwrap();
    let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
    assert_eq!(why(sender.secure(&mut client).await), ErrorType::Auth);
    queue.sender().send(&mut client, b"anyone may").await.unwrap();
    assert!(next_message(&mut client, &queue, b"anyone may").await.is_none());
}

async fn recipient_keys_are_replaced_in_contact_addresses_only(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let messaging = NewQueue::messaging().create(&mut client).await.unwrap();
    let keys = [signing_key(), signing_key()];
    let public: Vec<_> = keys.iter().map(|key| key.public_key().unwrap()).collect();
    assert_eq!(why(messaging.replace_keys(&mut client, public.clone()).await), ErrorType::Auth);

    let mut contact = NewQueue::contact().create(&mut client).await.unwrap();
    contact.replace_keys(&mut client, public).await.unwrap();
    assert_eq!(why(contact.info(&mut client).await), ErrorType::Auth, "the old key is void");
    for key in keys {
        contact.key = key;
        contact.info(&mut client).await.unwrap();
    }
    contact.delete(&mut client).await.unwrap();
}

async fn a_secured_queue_takes_only_what_its_sender_signed(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().create(&mut client).await.unwrap();
    let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
    assert_eq!(why(sender.send(&mut client, b"signed").await), ErrorType::Auth, "nobody's key is set yet");
    sender.secure(&mut client).await.unwrap();
    let unsigned = queue.sender().message(Default::default(), b"unsigned");
    let signed = sender.message(Default::default(), b"signed");
    let by_recipient = queue.request(Command::Send(Default::default(), b"r".as_slice().into()));
    let answers = client.request_all(&[unsigned, signed, by_recipient]).await.unwrap();
    assert_eq!(answers, [refused(ErrorType::Auth), Response::Ok, refused(ErrorType::Auth)]);
    assert!(next_message(&mut client, &queue, b"signed").await.is_none());
}
