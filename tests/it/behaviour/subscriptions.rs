//! `SUB`: who gets a queue's messages, and when.

use smp_server::client::{Client, NewQueue, Queue};
use smp_server::protocol::command::Command;
use smp_server::protocol::error::{CommandError, ErrorType};
use smp_server::protocol::response::Response;

use crate::support::{Store, body_of, for_each_store, next_message, secured, until, why};

for_each_store!(
    who_subscribes_takes_over_and_the_previous_subscriber_gets_nothing_more,
    a_subscriber_is_told_that_its_queue_was_deleted,
    who_deletes_its_own_queue_is_not_told,
    a_subscription_is_in_force_before_its_answer,
    one_message_at_a_time_is_delivered_and_never_again_after_its_ack,
    a_message_that_was_not_acknowledged_is_delivered_again,
    what_a_closed_connection_did_not_acknowledge_goes_to_the_next_one,
    sub_and_get_exclude_each_other_on_a_connection,
    a_sender_subscribed_to_its_own_queue_gets_the_message_before_its_ok,
);

async fn ended(client: &mut Client, queue: &Queue) -> Response {
    queue.event(client).await.unwrap().response
}

async fn who_subscribes_takes_over_and_the_previous_subscriber_gets_nothing_more(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let mut clients = [relay.connect_in(version).await, relay.connect_in(version).await];
        let mut sender = relay.connect_in(version).await;
        let queue = NewQueue::messaging().create(&mut clients[1]).await.unwrap();
        for round in 0..4_u8 {
            let [mut new, mut old] = clients;
            queue.subscribe(&mut new).await.unwrap();
            assert_eq!(ended(&mut old, &queue).await, Response::End, "version {version}");
            queue.sender().send(&mut sender, &[round]).await.unwrap();
            let message = queue.message(&mut new).await.unwrap();
            assert_eq!(body_of(&message), [round]);
            assert_eq!(why(queue.acknowledge(&mut old, &message.id.0).await), ErrorType::NoMsg);
            queue.acknowledge(&mut new, &message.id.0).await.unwrap();
            old.ping().await.unwrap();
            assert_eq!(old.waiting_event(), None, "version {version}");
            clients = [old, new];
        }
    }
}

async fn a_subscriber_is_told_that_its_queue_was_deleted(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let (mut subscriber, mut other) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let queue = NewQueue::messaging().create(&mut subscriber).await.unwrap();
        queue.delete(&mut other).await.unwrap();
        let expected = if version >= 10 { Response::Deld } else { Response::End };
        assert_eq!(ended(&mut subscriber, &queue).await, expected, "version {version}");
    }
}

async fn who_deletes_its_own_queue_is_not_told(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().create(&mut client).await.unwrap();
    queue.delete(&mut client).await.unwrap();
    client.ping().await.unwrap();
    assert_eq!(client.waiting_event(), None);
}

/// Again and again: a race would show now and then only.
async fn a_subscription_is_in_force_before_its_answer(store: Store) {
    let relay = store.relay();
    let (mut recipient, mut other) = (relay.connect().await, relay.connect().await);
    let mut sender = relay.connect().await;
    for round in 0..30_u8 {
        let queue = NewQueue::messaging().create(&mut recipient).await.unwrap();
        queue.sender().send(&mut sender, &[round]).await.unwrap();
        assert!(next_message(&mut recipient, &queue, &[round]).await.is_none());
        queue.subscribe(&mut other).await.unwrap();
        queue.sender().send(&mut sender, &[round, 1]).await.unwrap();
        assert!(next_message(&mut other, &queue, &[round, 1]).await.is_none());
    }
}

async fn one_message_at_a_time_is_delivered_and_never_again_after_its_ack(store: Store) {
    let relay = store.relay();
    let (mut recipient, mut sending) = (relay.connect().await, relay.connect().await);
    let (queue, sender) = secured(&mut recipient).await;
    let bodies: Vec<[u8; 1]> = (0..60).map(|n| [n]).collect();
    // One at a time, so that they come while others are acknowledged.
    let sends = async {
        for body in &bodies {
            sender.send(&mut sending, body).await.unwrap();
        }
    };
    let mut received = Vec::new();
    let mut next = None;
    let takes = async {
        while received.len() < bodies.len() {
            let message = match next.take() {
                Some(message) => message,
                None => queue.message(&mut recipient).await.unwrap(),
            };
            recipient.ping().await.unwrap();
            assert_eq!(recipient.waiting_event(), None, "another one before the ACK");
            received.extend(body_of(&message).first().map(|n| [*n]));
            next = queue.acknowledge(&mut recipient, &message.id.0).await.unwrap();
        }
    };
    tokio::join!(sends, takes);
    assert_eq!(received, bodies);
    recipient.ping().await.unwrap();
    assert_eq!((next, recipient.waiting_event()), (None, None), "nothing comes twice");
}

async fn a_message_that_was_not_acknowledged_is_delivered_again(store: Store) {
    let relay = store.relay();
    for version in [6, 20] {
        let mut client = relay.connect_in(version).await;
        let (queue, sender) = secured(&mut client).await;
        sender.send(&mut client, b"again").await.unwrap();
        let first = queue.message(&mut client).await.unwrap();
        queue.subscribe(&mut client).await.unwrap();
        assert_eq!(queue.message(&mut client).await.unwrap(), first);
        queue.acknowledge(&mut client, &first.id.0).await.unwrap();
        queue.subscribe(&mut client).await.unwrap();
        client.ping().await.unwrap();
        assert_eq!(client.waiting_event(), None);
    }
}

async fn what_a_closed_connection_did_not_acknowledge_goes_to_the_next_one(store: Store) {
    let relay = store.relay();
    let (mut first, mut second) = (relay.connect().await, relay.connect().await);
    let (queue, sender) = secured(&mut first).await;
    sender.send(&mut second, b"kept").await.unwrap();
    queue.message(&mut first).await.unwrap();
    first.close();
    queue.subscribe(&mut second).await.unwrap();
    assert!(next_message(&mut second, &queue, b"kept").await.is_none());
}

async fn sub_and_get_exclude_each_other_on_a_connection(store: Store) {
    let relay = store.relay();
    let prohibited = ErrorType::Cmd(CommandError::Prohibited);
    for version in [6, 20] {
        let (mut client, mut other) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        assert_eq!(why(queue.get(&mut client).await), prohibited);
        assert!(queue.get(&mut other).await.unwrap().is_none());
        assert_eq!(why(queue.subscribe(&mut other).await), prohibited);
        client.ping().await.unwrap();
        assert_eq!(client.waiting_event(), None, "GET takes no subscription over");
        queue.sender().send(&mut other, b"still subscribed").await.unwrap();
        assert!(next_message(&mut client, &queue, b"still subscribed").await.is_none());
    }
}

async fn a_sender_subscribed_to_its_own_queue_gets_the_message_before_its_ok(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    client.submit(&[sender.message(Default::default(), b"to myself")]).await.unwrap();
    let mut names = Vec::new();
    until("both", async || {
        let received = client.receive().await.unwrap();
        names.extend(received.into_iter().map(|transmission| transmission.response.unwrap().name()));
        names.len() >= 2
    })
    .await;
    assert_eq!(names, ["MSG", "OK"]);
    let answer = client.request(queue.request(Command::Ack(Default::default()))).await.unwrap();
    assert_eq!(answer, Response::Ok);
}
