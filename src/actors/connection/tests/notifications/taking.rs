//! A connection takes its notifications when it can send them, in parts.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

use super::super::peer::{settle, until};
use super::super::service::ids_with;
use super::super::{Peer, Service, World};
use super::{hand_in, notified, send_notified, subscribe, waiting};
use crate::actors::connection::core::CloseReason;
use crate::actors::connection::notifications::PART;
use crate::protocol::command::Command;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, QueueId};

/// More notifications than are taken at a time, for a service.
async fn many(world: &World) -> (Service, Vec<QueueId>) {
    let service = world.service(ServiceRole::Notifier).await;
    let notifiers: Vec<QueueId> =
        world.stored_notifiers(Some(&service), PART / 4 + 20).await.into_iter().map(|notifier| notifier.id).collect();
    for notifier in &notifiers {
        for _ in 0..4 {
            hand_in(world, *notifier, Some(service.id)).await;
        }
    }
    until("they wait", || waiting(world) == (PART as u64 + 80, 0)).await;
    (service, notifiers)
}

/// So many notifications, each once.
async fn gather(peer: &Peer, count: usize) -> Vec<(EntityId, [u8; 24])> {
    let mut came = Vec::new();
    while came.len() < count {
        match peer.event().await {
            (notifier, Response::Nmsg { nonce, .. }) => came.push((notifier, nonce)),
            other => panic!("NMSG expected, got {other:?}"),
        }
    }
    assert_eq!(came.iter().map(|(_, nonce)| nonce).collect::<HashSet<_>>().len(), count, "each once");
    came
}

#[actix::test]
async fn they_are_taken_part_by_part_and_each_comes_once() {
    let world = World::new();
    let (service, notifiers) = many(&world).await;
    let session = world.connect_service(&service);
    session.serve(ids_with(notifiers.clone())).await;
    let came = gather(&session, PART + 80).await;
    for notifier in notifiers {
        assert_eq!(came.iter().filter(|(came, _)| *came == notifier.into()).count(), 4);
    }
    until("they are delivered", || waiting(&world) == (0, 0)).await;
    session.is_told_nothing().await;
    assert_eq!(world.services.notification_metrics.delivered.load(Relaxed), PART as u64 + 80);
}

#[actix::test]
async fn nothing_is_taken_while_something_else_waits_to_be_written() {
    let world = World::with(|settings| settings.client_blocks = 2, 128);
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    client.block(true);
    for _ in 0..3 {
        client.put(&[(EntityId::NONE, None, Command::Ping)]);
    }
    until("it is full", || client.core.borrow().outbound.room() == 0).await;
    send_notified(&sender, &queue).await;
    until("it waits", || client.core.borrow().has_notifications()).await;
    for _ in 0..20 {
        settle().await;
    }
    assert_eq!(waiting(&world), (1, 0));
    client.block(false);
    let received = client.gather(4).await;
    assert!(matches!(received[3].response, Ok(Response::Nmsg { .. })), "behind what waited before");
    until("it is delivered", || waiting(&world) == (0, 0)).await;
}

#[actix::test]
async fn what_was_taken_and_not_written_comes_to_the_next_subscriber() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    client.block(true);
    send_notified(&sender, &queue).await;
    until("it is taken", || waiting(&world) == (1, 1)).await;
    client.core.borrow_mut().close(CloseReason::Stalled);
    until("the connection has ended", || client.ended()).await;
    assert_eq!(waiting(&world), (1, 0));
    let next = world.connect();
    subscribe(&next, &notifier).await;
    notifier.open(&next.event().await);
}

#[actix::test]
async fn what_was_written_does_not_come_again() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    send_notified(&sender, &queue).await;
    notifier.open(&client.event().await);
    client.core.borrow_mut().close(CloseReason::Inactive);
    until("the connection has ended", || client.ended()).await;
    let next = world.connect();
    subscribe(&next, &notifier).await;
    next.is_told_nothing().await;
    assert_eq!(waiting(&world), (0, 0));
}

#[actix::test]
async fn what_a_client_has_not_taken_goes_to_who_takes_over_from_it() {
    let world = World::new();
    let (owner, old, new, sender) = (world.connect(), world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&old, &notifier).await;
    old.block(true);
    old.put(&[(EntityId::NONE, None, Command::Ping)]);
    until("it waits for the client", || old.core.borrow().is_waiting()).await;
    send_notified(&sender, &queue).await;
    until("it waits", || old.core.borrow().has_notifications()).await;
    subscribe(&new, &notifier).await;
    notifier.open(&new.event().await);
    old.block(false);
    let told = old.gather(2).await;
    assert_eq!(told.iter().map(|t| t.response.clone().unwrap()).collect::<Vec<_>>(), [Response::Pong, Response::End]);
    old.is_told_nothing().await;
}
