//! `NEW`.

use bytes::Bytes;
use smp_server::client::{Client, NewQueue, read_link};
use smp_server::protocol::command::{QueueMode, QueueRequest};
use smp_server::protocol::error::{CommandError, ErrorType};
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

use crate::support::{Store, contact_id, for_each_store, link_data, next_message, signing_key, why};

for_each_store!(
    a_queue_is_subscribed_only_if_asked_for,
    modes_are_answered_where_the_version_has_them,
    the_password_must_be_right_where_one_is_set,
    a_password_is_no_matter_where_none_is_set,
    no_queue_is_created_where_that_is_switched_off,
    the_sender_id_of_a_queue_with_a_link_follows_from_the_correlation_id,
    an_id_that_a_client_chose_is_not_given_twice,
    a_key_that_does_not_sign_is_refused,
);

async fn a_queue_is_subscribed_only_if_asked_for(store: Store) {
    let relay = store.relay();
    for version in [6, 9, 15, 20] {
        let mut client = relay.connect_in(version).await;
        let created = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
        created.sender().send(&mut client, b"waits").await.unwrap();
        client.ping().await.unwrap();
        assert_eq!(client.waiting_event(), None, "version {version}");
        created.subscribe(&mut client).await.unwrap();
        next_message(&mut client, &created, b"waits").await;
        let subscribed = NewQueue::messaging().create(&mut client).await.unwrap();
        subscribed.sender().send(&mut client, b"comes").await.unwrap();
        next_message(&mut client, &subscribed, b"comes").await;
    }
}

async fn modes_are_answered_where_the_version_has_them(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let mut client = relay.connect_in(version).await;
        for (new, mode) in [(NewQueue::messaging(), QueueMode::Messaging), (NewQueue::contact(), QueueMode::Contact)] {
            let queue = new.create(&mut client).await.unwrap();
            assert_eq!(queue.ids.mode, (version >= 9).then_some(mode), "version {version}");
            assert_eq!(queue.ids.link_id, None);
        }
    }
}

async fn create_with(client: &mut Client, password: Option<&'static str>) -> Result<(), ErrorType> {
    let new = NewQueue::messaging().with_password(password.map(|password| Bytes::from_static(password.as_bytes())));
    match client.request(new.request().unwrap()).await.unwrap() {
        Response::Ids(_) => Ok(()),
        Response::Err(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

async fn the_password_must_be_right_where_one_is_set(store: Store) {
    let relay = store.relay_with(&[("AUTH", "create_password", "sesame")]);
    for version in [6, 20] {
        let mut client = relay.connect_in(version).await;
        assert_eq!(create_with(&mut client, Some("sesame")).await, Ok(()));
        for wrong in [None, Some(""), Some("sesam"), Some("sesamE"), Some("sesame2")] {
            assert_eq!(create_with(&mut client, wrong).await, Err(ErrorType::Auth), "{wrong:?}");
        }
    }
}

async fn a_password_is_no_matter_where_none_is_set(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    assert_eq!(create_with(&mut client, Some("whatever")).await, Ok(()));
}

async fn no_queue_is_created_where_that_is_switched_off(store: Store) {
    let relay = store.relay_with(&[("AUTH", "new_queues", "off"), ("AUTH", "create_password", "sesame")]);
    let mut client = relay.connect().await;
    for password in [None, Some("sesame")] {
        assert_eq!(create_with(&mut client, password).await, Err(ErrorType::Auth));
    }
    client.ping().await.unwrap();
}

async fn the_sender_id_of_a_queue_with_a_link_follows_from_the_correlation_id(store: Store) {
    let relay = store.relay();
    for version in 15..=20 {
        let mut client = relay.connect_in(version).await;
        let new = NewQueue::messaging().with_invitation(link_data("invitation"));
        let sender_id = new.sender_id();
        let queue = new.create(&mut client).await.unwrap();
        assert_eq!(queue.ids.sender_id, sender_id);
        assert!(queue.ids.link_id.is_some(), "the relay makes an invitation's link ID");

        let link_id = contact_id();
        let new = NewQueue::contact().with_contact_link(link_id.clone(), link_data("contact"));
        let queue = new.create(&mut client).await.unwrap();
        assert_eq!(queue.ids.link_id.as_ref(), Some(&link_id));
        assert_eq!(read_link(&mut client, &link_id).await.unwrap(), (queue.ids.sender_id, link_data("contact")));

        for sender_id in [contact_id(), EntityId::NONE, EntityId(Bytes::from_static(&[1; 23]))] {
            let invitation = QueueRequest::Messaging(Some((sender_id.clone(), link_data("x"))));
            let contact = QueueRequest::Contact(Some((contact_id(), (sender_id, link_data("x")))));
            for queue in [invitation, contact] {
                let mut new = NewQueue::messaging();
                new.queue = Some(queue);
                let prohibited = ErrorType::Cmd(CommandError::Prohibited);
                assert_eq!(why(new.create(&mut client).await), prohibited, "version {version}");
            }
        }
    }
}

async fn an_id_that_a_client_chose_is_not_given_twice(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let link_id = contact_id();
    let new = NewQueue::contact().with_contact_link(link_id.clone(), link_data("first"));
    let repeated = new.clone();
    let queue = new.create(&mut client).await.unwrap();
    assert_eq!(why(repeated.create(&mut client).await), ErrorType::Auth, "the sender ID is taken");
    let other = NewQueue::contact().with_contact_link(link_id.clone(), link_data("second"));
    assert_eq!(why(other.create(&mut client).await), ErrorType::Auth, "the link ID is taken");
    assert_eq!(read_link(&mut client, &link_id).await.unwrap().1, link_data("first"));
    queue.delete(&mut client).await.unwrap();
    let again = NewQueue::contact().with_contact_link(link_id.clone(), link_data("third"));
    again.create(&mut client).await.unwrap();
    assert_eq!(read_link(&mut client, &link_id).await.unwrap().1, link_data("third"));
}

async fn a_key_that_does_not_sign_is_refused(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let request = NewQueue::messaging().request().unwrap().authorized_by(&signing_key());
    assert_eq!(client.request(request).await.unwrap(), Response::Err(ErrorType::Auth));
}
