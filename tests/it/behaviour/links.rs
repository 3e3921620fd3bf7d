//! Short links: `LSET`, `LDEL`, `LKEY`, `LGET`.

use bytes::Bytes;
use smp_server::client::{NewQueue, Sender, open_link, read_link};
use smp_server::protocol::command::LinkData;
use smp_server::protocol::error::ErrorType;

use crate::support::{Store, contact_id, for_each_store, link_data, signing_key, why};

for_each_store!(
    a_contact_address_is_read_changed_and_deleted,
    a_link_is_added_to_a_queue_that_has_none,
    an_invitation_is_opened_by_one_sender_as_often_as_it_likes,
    an_invitation_is_gone_after_the_first_message_of_its_sender,
    link_data_of_the_largest_size_is_kept,
);

async fn a_contact_address_is_read_changed_and_deleted(store: Store) {
    let relay = store.relay();
    for version in 15..=20 {
        let (mut owner, mut reader) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let link_id = contact_id();
        let new = NewQueue::contact().with_contact_link(link_id.clone(), link_data("first"));
        let queue = new.create(&mut owner).await.unwrap();
        let sender_id = queue.ids.sender_id.clone();
        assert_eq!(read_link(&mut reader, &link_id).await.unwrap(), (sender_id.clone(), link_data("first")));
        queue.set_link(&mut owner, link_id.clone(), link_data("second")).await.unwrap();
        assert_eq!(read_link(&mut reader, &link_id).await.unwrap(), (sender_id, link_data("second")));

        let other_fixed = LinkData { fixed: Bytes::from_static(b"other"), ..link_data("third") };
        assert_eq!(why(queue.set_link(&mut owner, link_id.clone(), other_fixed).await), ErrorType::Auth);
        assert_eq!(why(queue.set_link(&mut owner, contact_id(), link_data("third")).await), ErrorType::Auth);
        assert_eq!(why(open_link(&mut reader, &link_id, &signing_key()).await), ErrorType::Auth, "not an invitation");
        assert_eq!(read_link(&mut reader, &link_id).await.unwrap().1, link_data("second"));

        queue.delete_link(&mut owner).await.unwrap();
        queue.delete_link(&mut owner).await.unwrap();
        assert_eq!(why(read_link(&mut reader, &link_id).await), ErrorType::Auth);
        queue.sender().send(&mut reader, b"the address goes on").await.unwrap();
    }
}

async fn a_link_is_added_to_a_queue_that_has_none(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let contact = NewQueue::contact().create(&mut client).await.unwrap();
    let link_id = contact_id();
    contact.set_link(&mut client, link_id.clone(), link_data("added")).await.unwrap();
    assert_eq!(read_link(&mut client, &link_id).await.unwrap(), (contact.ids.sender_id.clone(), link_data("added")));
    let other = NewQueue::contact().create(&mut client).await.unwrap();
    assert_eq!(why(other.set_link(&mut client, link_id.clone(), link_data("stolen")).await), ErrorType::Auth);
    assert_eq!(read_link(&mut client, &link_id).await.unwrap().1, link_data("added"));
}

async fn an_invitation_is_opened_by_one_sender_as_often_as_it_likes(store: Store) {
    let relay = store.relay();
    for version in 15..=20 {
        let (mut owner, mut invited) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let new = NewQueue::messaging().with_invitation(link_data("invitation"));
        let queue = new.create(&mut owner).await.unwrap();
        let link_id = queue.ids.link_id.clone().unwrap();
        assert_eq!(why(read_link(&mut invited, &link_id).await), ErrorType::Auth, "it is not public");
        let key = signing_key();
        let expected = (queue.ids.sender_id.clone(), link_data("invitation"));
        for _ in 0..2 {
            assert_eq!(open_link(&mut invited, &link_id, &key).await.unwrap(), expected);
        }
        assert_eq!(why(open_link(&mut invited, &link_id, &signing_key()).await), ErrorType::Auth);
        assert!(queue.info(&mut owner).await.unwrap().secured);
        assert_eq!(
            why(queue.set_link(&mut owner, link_id, link_data("late")).await),
            ErrorType::Auth,
            "a secured queue needs no link"
        );
    }
}

async fn an_invitation_is_gone_after_the_first_message_of_its_sender(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let new = NewQueue::messaging().with_invitation(link_data("once"));
    let queue = new.create(&mut client).await.unwrap();
    let link_id = queue.ids.link_id.clone().unwrap();
    queue.sender().send(&mut client, b"not secured yet").await.unwrap();
    let key = signing_key();
    open_link(&mut client, &link_id, &key).await.unwrap();
    let sender = Sender::with_key(queue.ids.sender_id.clone(), key.clone());
    sender.send(&mut client, b"secured").await.unwrap();
    assert_eq!(why(open_link(&mut client, &link_id, &key).await), ErrorType::Auth);
    sender.send(&mut client, b"again").await.unwrap();
}

async fn link_data_of_the_largest_size_is_kept(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    // As clients pad it: both parts encrypted.
    let data = LinkData { fixed: vec![1; 2_048].into(), user: vec![2; 13_784].into() };
    let link_id = contact_id();
    let new = NewQueue::contact().with_contact_link(link_id.clone(), data.clone());
    new.create(&mut client).await.unwrap();
    assert_eq!(read_link(&mut client, &link_id).await.unwrap().1, data);
}
