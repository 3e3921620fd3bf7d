//! Messages to the queues of a service that has a connection.

use super::super::peer::{Queue, send, until};
use super::super::service::queues_with;
use super::super::store::{Call, DirectedStore};
use super::super::{Peer, World};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole::Messaging;
use crate::protocol::response::Response;
use crate::store::StoreError;

async fn session(world: &World) -> Peer {
    world.connect_service(&world.service(Messaging).await)
}

async fn message_of(peer: &Peer, queue: &Queue) {
    let (entity, response) = peer.event().await;
    assert!(
        entity == queue.recipient() && matches!(response, Response::Msg { .. }),
        "MSG expected, got {response:?} of {entity:?}"
    );
}

/// A connection that has subscribed to its service, which has these queues.
async fn serving(world: &World, count: usize) -> (Peer, Vec<Queue>) {
    let service = world.service(Messaging).await;
    let queues = world.stored_queues(Some(&service), count).await;
    let session = world.connect_service(&service);
    session.serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.1, Response::Alls);
    (session, queues)
}

#[actix::test]
async fn a_queue_created_or_taken_while_the_service_is_subscribed_is_served_at_once() {
    let world = World::new();
    let ((session, _), client, sender) = (serving(&world, 3).await, world.connect(), world.connect());
    for _ in 0..10 {
        let (created, taken) = (session.create().await, client.create().await);
        assert_eq!(sender.ask(created.sender(), None, send(b"created")).await, Response::Ok);
        message_of(&session, &created).await;
        session.subscribe(&taken).await;
        assert_eq!(sender.ask(taken.sender(), None, send(b"taken")).await, Response::Ok);
        message_of(&session, &taken).await;
    }
}

#[actix::test]
async fn a_queue_created_before_the_service_subscribes_to_all_is_served_too() {
    let world = World::new();
    let (session, sender) = (session(&world).await, world.connect());
    let queue = session.create().await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"created")).await, Response::Ok);
    message_of(&session, &queue).await;
}

#[actix::test]
async fn messages_of_a_queue_come_one_by_one_each_after_the_acknowledgement_before_it() {
    let world = World::new();
    let ((session, queues), sender) = (serving(&world, 1).await, world.connect());
    let sends: Vec<_> = (0..10u8).map(|n| (queues[0].sender(), None, send(&[n]))).collect();
    assert_eq!(sender.ask_all(&sends).await, vec![Response::Ok; 10]);
    message_of(&session, &queues[0]).await;
    for _ in 0..9 {
        session.is_told_nothing().await;
        assert!(matches!(session.acknowledge(&queues[0]).await, Response::Msg { .. }));
    }
    assert_eq!(session.acknowledge(&queues[0]).await, Response::Ok);
    assert_eq!(session.acknowledge(&queues[0]).await, Response::Err(ErrorType::NoMsg));
}

/// A service has many queues: only those with something on its way cost its connection memory.
#[actix::test]
async fn a_queue_whose_messages_are_all_acknowledged_is_forgotten_and_served_on() {
    let world = World::new();
    let ((session, queues), sender) = (serving(&world, 1).await, world.connect());
    let created = session.create().await;
    for queue in [&queues[0], &created] {
        assert!(session.core.borrow().subscriptions.usage(&queue.id()).is_none());
        for _ in 0..3 {
            assert_eq!(sender.ask(queue.sender(), None, send(b"x")).await, Response::Ok);
            message_of(&session, queue).await;
            assert!(session.core.borrow().subscriptions.usage(&queue.id()).is_some());
            assert_eq!(session.acknowledge(queue).await, Response::Ok);
            assert!(session.core.borrow().subscriptions.usage(&queue.id()).is_none());
        }
    }
}

#[actix::test]
async fn a_service_that_sends_to_its_own_queue_gets_the_message() {
    let world = World::new();
    let (session, queues) = serving(&world, 1).await;
    for _ in 0..3 {
        assert_eq!(session.ask(queues[0].sender(), None, send(b"to myself")).await, Response::Ok);
        message_of(&session, &queues[0]).await;
        assert_eq!(session.acknowledge(&queues[0]).await, Response::Ok);
    }
}

#[actix::test]
async fn services_get_the_messages_of_their_own_queues_only() {
    let world = World::new();
    let (first, second, sender) = (serving(&world, 2).await, serving(&world, 2).await, world.connect());
    for (session, queues) in [&first, &second] {
        for queue in queues {
            assert_eq!(sender.ask(queue.sender(), None, send(b"mine")).await, Response::Ok);
            message_of(session, queue).await;
        }
    }
    first.0.is_told_nothing().await;
    second.0.is_told_nothing().await;
}

#[actix::test]
async fn messages_for_a_service_that_does_not_read_wait_in_the_store_and_come_when_it_does() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let ((session, queues), sender) = (serving(&world, 30).await, world.connect());
    session.block(true);
    for queue in &queues {
        assert_eq!(sender.ask(queue.sender(), None, send(b"pushed")).await, Response::Ok);
    }
    until("all were offered", || session.handle.events.gate().depth() == 0).await;
    assert!(session.core.borrow().outbound.len() <= 4);
    session.block(false);
    let mut came = std::collections::HashSet::new();
    for _ in 0..30 {
        assert!(came.insert(session.event().await.0), "each message once");
    }
    session.is_told_nothing().await;
}

#[actix::test]
async fn a_message_that_was_perhaps_stored_is_looked_for() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let ((session, queues), sender) = (serving(&world, 2).await, world.connect());
    store.fail_when_done(Call::Apply, StoreError::Failed("the connection broke".into()));
    for (peer, queue) in [(&sender, &queues[0]), (&session, &queues[1])] {
        let answer = peer.ask(queue.sender(), None, send(b"stored")).await;
        assert_eq!(answer, Response::Err(ErrorType::Store("failed".into())));
        message_of(&session, queue).await;
    }
}

/// A message that was on its way when its queue left the service is not the service's.
#[actix::test]
async fn what_was_sent_to_a_queue_before_it_left_the_service_is_not_delivered_after() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let ((session, queues), sender, client) = (serving(&world, 1).await, world.connect(), world.connect());
    // The message is stored, and its sender not told yet.
    let held = store.hold(Call::Apply);
    sender.put(&[(queues[0].sender(), None, send(b"on its way"))]);
    until("it is stored", || store.calls(Call::Apply) > 0).await;
    while world.services.store.counts().await.unwrap().messages == 0 {}
    store.let_go(Call::Apply);
    client.subscribe(&queues[0]).await;
    message_of(&client, &queues[0]).await;
    assert_eq!(session.event().await, (queues[0].recipient(), Response::End));
    held.add_permits(2);
    assert_eq!(sender.gather(1).await[0].response, Ok(Response::Ok));
    session.is_told_nothing().await;
    assert!(session.core.borrow().subscriptions.usage(&queues[0].id()).is_none());
}
