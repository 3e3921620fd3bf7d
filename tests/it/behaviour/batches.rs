//! Many commands in a block.

use bytes::Bytes;
use smp_server::client::{Client, NewQueue, Request};
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::ids::{CorrelationId, EntityId};
use smp_server::protocol::response::Response;

use crate::support::{Store, body_of, for_each_store, is_refused, next_message, refused, secured, signing_key};

for_each_store!(
    a_block_of_255_mixed_commands_is_answered_in_order,
    commands_of_a_block_are_executed_in_their_order,
    ten_sends_of_a_block_are_stored_in_their_order,
    a_batch_of_subscriptions_is_answered_before_its_messages,
    refused_commands_do_not_hinder_the_others_of_their_block,
);

/// A correlation ID of two bytes, so that 255 commands fit in a block.
fn short_id(n: u8) -> CorrelationId {
    CorrelationId(Bytes::copy_from_slice(&[b'c', n]))
}

/// Correlation IDs and names of the next `count` answers, in the order in which they came.
async fn answers(client: &mut Client, count: usize) -> Vec<(CorrelationId, &'static str)> {
    let mut answers = Vec::new();
    while answers.len() < count {
        let received = client.receive().await.unwrap().into_iter();
        answers.extend(received.map(|t| (t.correlation_id, t.response.unwrap().name())));
    }
    answers
}

async fn a_block_of_255_mixed_commands_is_answered_in_order(store: Store) {
    let relay = store.relay();
    for version in [6, 7, 11, 16, 20] {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
        let commands = (0..255).map(|n: u8| match n % 16 {
            0 => (queue.request(Command::Que), "INFO"),
            1 => (queue.sender().message(MessageFlags::default(), &[n]), "OK"),
            2 => (queue.request(Command::Ldel), "OK"),
            _ => (Request::plain(Command::Ping), "PONG"),
        });
        let (requests, names): (Vec<_>, Vec<_>) = commands.unzip();
        let ids: Vec<_> = (0..255).map(short_id).collect();
        let requests: Vec<_> =
            requests.into_iter().zip(&ids).map(|(request, id)| request.with_correlation_id(id.clone())).collect();
        client.submit(&requests).await.unwrap();
        let expected: Vec<_> = ids.into_iter().zip(names).collect();
        assert_eq!(answers(&mut client, 255).await, expected, "version {version}");
        assert_eq!(queue.info(&mut client).await.unwrap().size, 16);
    }
}

async fn commands_of_a_block_are_executed_in_their_order(store: Store) {
    let relay = store.relay();
    for version in [9, 15, 20] {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        let key = signing_key();
        let signed = |command| Request::new(queue.ids.sender_id.clone(), command).authorized_by(&key);
        let body = |text: &'static [u8]| Command::Send(MessageFlags::default(), Bytes::from_static(text));
        let requests = [
            queue.sender().message(MessageFlags::default(), b"unsecured"),
            signed(Command::Skey(key.public_key().unwrap())),
            queue.sender().message(MessageFlags::default(), b"too late"),
            signed(body(b"secured")),
            queue.request(Command::Que),
            queue.request(Command::Off),
            signed(body(b"suspended")),
            queue.request(Command::Del),
            queue.request(Command::Que),
        ];
        let answers = client.request_all(&requests).await.unwrap();
        let names: Vec<_> = answers.iter().map(Response::name).collect();
        assert_eq!(names, ["OK", "OK", "ERR", "OK", "INFO", "OK", "ERR", "OK", "ERR"], "version {version}");
        let Response::Info(info) = &answers[4] else { panic!() };
        assert_eq!((info.secured, info.size), (true, 2));
    }
}

async fn ten_sends_of_a_block_are_stored_in_their_order(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let mut client = relay.connect_in(version).await;
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        let requests: Vec<_> = (0..10_u8).map(|n| queue.sender().message(MessageFlags::default(), &[n])).collect();
        assert_eq!(client.request_all(&requests).await.unwrap(), vec![Response::Ok; 10]);
        let mut next = Some(queue.message(&mut client).await.unwrap());
        let mut received = Vec::new();
        while let Some(message) = next {
            received.extend_from_slice(body_of(&message));
            next = queue.acknowledge(&mut client, &message.id.0).await.unwrap();
        }
        assert_eq!(received, (0..10).collect::<Vec<u8>>(), "version {version}");
    }
}

async fn a_batch_of_subscriptions_is_answered_before_its_messages(store: Store) {
    let relay = store.relay();
    for version in [6, 15, 20] {
        let (mut owner, mut client) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let mut queues = Vec::new();
        for _ in 0..40 {
            let queue = NewQueue::messaging().only_created().create(&mut owner).await.unwrap();
            queue.sender().send(&mut owner, b"first").await.unwrap();
            queues.push(queue);
        }
        let requests: Vec<_> = queues.iter().map(|queue| queue.request(Command::Sub)).collect();
        client.submit(&requests).await.unwrap();
        let names: Vec<_> = answers(&mut client, 80).await.into_iter().map(|(_, name)| name).collect();
        let answer = if version >= 16 { "SOK" } else { "OK" };
        let first_message = names.iter().position(|name| *name == "MSG").unwrap();
        assert!(names[..first_message].iter().all(|name| *name == answer), "version {version}: {names:?}");
        assert_eq!(names.iter().filter(|name| **name == "MSG").count(), 40);
        for queue in &queues {
            assert!(queue.acknowledge(&mut client, &[]).await.unwrap().is_none());
        }
    }
}

async fn refused_commands_do_not_hinder_the_others_of_their_block(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    let absent = EntityId(Bytes::from_static(&[7; 24]));
    let requests = [
        queue.request(Command::Que).authorized_by(&signing_key()),
        sender.message(MessageFlags::default(), b"good"),
        Request::new(absent, Command::Sub).authorized_by(&signing_key()),
        Request::plain(Command::Get),
        Request::plain(Command::Ping),
    ];
    let answers = client.request_all(&requests).await.unwrap();
    assert_eq!([&answers[0], &answers[2]], [&refused(ErrorType::Auth), &refused(ErrorType::Auth)]);
    assert_eq!((&answers[1], &answers[4]), (&Response::Ok, &Response::Pong));
    assert!(is_refused(&answers[3]));
    assert!(next_message(&mut client, &queue, b"good").await.is_none());
}
