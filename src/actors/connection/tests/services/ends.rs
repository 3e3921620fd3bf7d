//! Another connection of the service takes over: `ENDS`, and nothing more to the one before.

use std::time::Duration;

use bytes::Bytes;

use super::super::peer::{Queue, send, until};
use super::super::service::{NOTHING, Service, queues_with};
use super::super::store::{Call, DirectedStore};
use super::super::{Peer, World};
use crate::actors::connection::subscription::Delivered;
use crate::actors::connection::{ConnectionEvent, Delivery};
use crate::actors::registry::Epoch;
use crate::protocol::command::{Command, ServiceQueues};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole::Messaging;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, MessageId};

async fn message_of(peer: &Peer, queue: &Queue) {
    let (entity, response) = peer.event().await;
    assert!(
        entity == queue.recipient() && matches!(response, Response::Msg { .. }),
        "MSG expected, got {response:?} of {entity:?}"
    );
}

/// A new connection that has subscribed to its service, nothing of which waits.
async fn serving(world: &World, service: &Service, queues: ServiceQueues) -> Peer {
    let session = world.connect_service(service);
    session.serve(queues).await;
    assert_eq!(session.event().await.1, Response::Alls);
    session
}

async fn ended(session: &Peer) -> ServiceQueues {
    let (entity, response) = session.event().await;
    assert_eq!(entity, session.as_service.as_ref().unwrap().id());
    let Response::Ends(queues) = response else { panic!("ENDS expected, got {response:?}") };
    queues
}

#[actix::test]
async fn who_subscribes_to_all_takes_over_and_nothing_more_is_delivered_to_the_one_before() {
    let world = World::new();
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queues = world.stored_queues(Some(&service), 3).await;
    let all = queues_with(&queues);
    let mut old = serving(&world, &service, all).await;
    for _ in 0..4 {
        let new = serving(&world, &service, all).await;
        assert_eq!(ended(&old).await, all);
        for queue in &queues {
            assert_eq!(sender.ask(queue.sender(), None, send(b"to the new one")).await, Response::Ok);
            message_of(&new, queue).await;
            assert_eq!(new.acknowledge(queue).await, Response::Ok);
        }
        old.is_told_nothing().await;
        old = new;
    }
}

#[actix::test]
async fn who_creates_a_queue_or_takes_one_takes_over_all() {
    let world = World::new();
    let (service, client, sender) = (world.service(Messaging).await, world.connect(), world.connect());
    let first = world.stored_queues(Some(&service), 1).await.remove(0);
    let old = serving(&world, &service, queues_with([&first])).await;
    let creating = world.connect_service(&service);
    let second = creating.create().await;
    assert_eq!(ended(&old).await, queues_with([&first]));
    let (taking, third) = (world.connect_service(&service), client.create().await);
    taking.subscribe(&third).await;
    assert_eq!(ended(&creating).await, queues_with([&second]), "what it was told of");
    for queue in [&first, &second, &third] {
        assert_eq!(sender.ask(queue.sender(), None, send(b"to the last one")).await, Response::Ok);
        message_of(&taking, queue).await;
    }
    old.is_told_nothing().await;
    creating.is_told_nothing().await;
}

#[actix::test]
async fn it_says_what_came_and_left_since_the_subscription() {
    let world = World::new();
    let (service, client) = (world.service(Messaging).await, world.connect());
    let mut queues = world.stored_queues(Some(&service), 4).await;
    let old = serving(&world, &service, queues_with(&queues)).await;
    client.subscribe(&queues.remove(0)).await;
    assert_eq!(old.event().await.1, Response::End);
    let (by_other, by_itself) = (queues.remove(0), queues.remove(0));
    let del = Command::Del;
    assert_eq!(client.ask(by_other.recipient(), Some(&by_other.key), del.clone()).await, Response::Ok);
    assert_eq!(old.event().await.1, Response::Deld);
    assert_eq!(old.ask(by_itself.recipient(), Some(&by_itself.key), del).await, Response::Ok);
    queues.push(old.create().await);
    queues.push(client.create().await);
    old.subscribe(&queues[2]).await;
    // Once more changes nothing.
    old.subscribe(&queues[2]).await;
    old.subscribe(&queues[0]).await;
    serving(&world, &service, queues_with(&queues)).await;
    assert_eq!(ended(&old).await, queues_with(&queues));
}

#[actix::test]
async fn what_was_not_acknowledged_is_delivered_again_to_the_successor_and_cannot_be_by_the_one_before() {
    let world = World::new();
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queue = world.stored_queues(Some(&service), 1).await.remove(0);
    let old = serving(&world, &service, queues_with([&queue])).await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"unacknowledged")).await, Response::Ok);
    message_of(&old, &queue).await;
    let new = world.connect_service(&service);
    new.serve(queues_with([&queue])).await;
    message_of(&new, &queue).await;
    assert_eq!(new.event().await.1, Response::Alls);
    assert_eq!(ended(&old).await, queues_with([&queue]));
    assert_eq!(old.acknowledge(&queue).await, Response::Err(ErrorType::NoMsg));
    assert_eq!(new.acknowledge(&queue).await, Response::Ok);
}

#[actix::test]
async fn what_waited_for_room_at_the_one_before_is_not_delivered_to_it_any_more() {
    let world = World::with(|settings| settings.client_blocks = 2, 128);
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queues = world.stored_queues(Some(&service), 10).await;
    let old = serving(&world, &service, queues_with(&queues)).await;
    old.block(true);
    for queue in &queues {
        assert_eq!(sender.ask(queue.sender(), None, send(b"pushed")).await, Response::Ok);
    }
    old.quiesce_unread().await;
    let new = world.connect_service(&service);
    new.serve(queues_with(&queues)).await;
    for _ in 0..10 {
        assert!(matches!(new.event().await.1, Response::Msg { .. }));
    }
    until("it is told", || !old.core.borrow().service.as_ref().unwrap().in_force()).await;
    old.block(false);
    let mut before = 0;
    loop {
        match old.event().await.1 {
            Response::Msg { .. } => before += 1,
            other => break assert_eq!(other, Response::Ends(queues_with(&queues))),
        }
    }
    assert!(before <= 3, "two waited, one was being written: {before}");
    old.is_told_nothing().await;
}

#[actix::test]
async fn the_one_before_can_take_it_back() {
    let world = World::new();
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queue = world.stored_queues(Some(&service), 1).await.remove(0);
    let all = queues_with([&queue]);
    let (first, second) = (serving(&world, &service, all).await, world.connect_service(&service));
    for round in 0..6u8 {
        let (old, new) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
        new.serve(all).await;
        assert_eq!(new.event().await.1, Response::Alls, "round {round}: it has asked anew");
        assert_eq!(ended(old).await, all);
        assert_eq!(sender.ask(queue.sender(), None, send(&[round])).await, Response::Ok);
        message_of(new, &queue).await;
        assert_eq!(new.acknowledge(&queue).await, Response::Ok);
        old.is_told_nothing().await;
    }
}

#[actix::test]
async fn it_is_told_before_the_answer_that_subscribes_to_all_again() {
    let world = World::with(|settings| settings.end_interval = Duration::from_secs(3600), 128);
    let service = world.service(Messaging).await;
    let all = queues_with(&world.stored_queues(Some(&service), 2).await);
    let (first, second) = (serving(&world, &service, all).await, serving(&world, &service, all).await);
    until("the notice waits", || first.core.borrow().has_notices()).await;
    first.serve(all).await;
    assert!(!first.core.borrow().has_notices());
    assert_eq!(first.event().await.1, Response::Ends(all));
    assert_eq!(first.event().await.1, Response::Alls);
    until("the other one is told", || second.core.borrow().has_notices()).await;
}

#[actix::test]
async fn services_take_over_their_own_subscriptions_only() {
    let world = World::new();
    let (service, other) = (world.service(Messaging).await, world.service(Messaging).await);
    let queues = world.stored_queues(Some(&service), 1).await;
    let session = serving(&world, &service, queues_with(&queues)).await;
    let strangers = (serving(&world, &other, NOTHING).await, serving(&world, &other, NOTHING).await);
    assert_eq!(ended(&strangers.0).await, NOTHING);
    session.is_told_nothing().await;
    assert_eq!(world.connection_of(&service).await, Some(session.handle.id.0));
    assert_ne!(strangers.0.as_service.as_ref().unwrap().id(), EntityId(service.id.into()));
}

/// Whoever found the connection before in the registry tells it late.
#[actix::test]
async fn what_is_told_to_the_one_before_after_its_end_is_of_no_use() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queue = world.stored_queues(Some(&service), 1).await.remove(0);
    let all = queues_with([&queue]);
    let (old, new) = (serving(&world, &service, all).await, serving(&world, &service, all).await);
    assert_eq!(ended(&old).await, all);
    assert_eq!(sender.ask(queue.sender(), None, send(b"late")).await, Response::Ok);
    message_of(&new, &queue).await;
    store.asked(Call::FirstMessages);
    let (queue, message) = (queue.id(), Delivered { id: MessageId([1; 24]), sequence: 1 });
    for event in [
        ConnectionEvent::Deliver(Delivery { queue, message, body: Bytes::new() }),
        ConnectionEvent::Doubt { queue },
        ConnectionEvent::Released { queue },
        ConnectionEvent::Deleted { queue },
        ConnectionEvent::ServiceEnded { epoch: Epoch(1) },
    ] {
        let told = format!("{event:?}");
        old.handle.events.post(event).await.unwrap();
        old.is_told_nothing().await;
        assert_eq!(store.calls(Call::FirstMessages), 0, "{told}");
    }
}
