//! Which service a queue belongs to: whoever subscribed to it last.

use super::super::peer::{Ask, Queue, new, send, signing_key};
use super::super::service::{NOTHING, UNKNOWN, queues_with, subscription};
use super::super::{Peer, World};
use crate::actors::connection::tests::Service;
use crate::protocol::EntityId;
use crate::protocol::command::{Command, QueueRequest};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole::Messaging;
use crate::protocol::response::Response;

fn is_message(response: &Response) -> bool {
    matches!(response, Response::Msg { .. })
}

async fn message_of(peer: &Peer, queue: &Queue) {
    let (entity, response) = peer.event().await;
    assert!(entity == queue.recipient() && is_message(&response), "MSG expected, got {response:?}");
}

/// A connection of a new service.
async fn session(world: &World) -> (Service, Peer) {
    let service = world.service(Messaging).await;
    (service, world.connect_service(&service))
}

#[actix::test]
async fn a_queue_created_by_a_service_is_the_services() {
    let world = World::new();
    let (service, session) = session(&world).await;
    let queues = [session.create().await, session.create().await];
    for queue in &queues {
        assert_eq!(queue.ids.service_id, Some(EntityId(service.id.into())));
    }
    assert_eq!(world.stored(&service).await, queues_with(&queues));
    // Its subscription is that of the service: the registry has none for the queue.
    assert!(world.services.registry.find(&[queues[0].id()]).await.unwrap()[0].is_none());
    assert_eq!(world.connection_of(&service).await, Some(session.handle.id.0));
}

#[actix::test]
async fn a_service_creates_no_queue_that_it_does_not_subscribe_to() {
    let world = World::new();
    let (service, session) = session(&world).await;
    let key = signing_key();
    let answer = session.ask(EntityId::NONE, Some(&key), new(&key, false, QueueRequest::Messaging(None))).await;
    assert_eq!(answer, Response::Err(ErrorType::Cmd(CommandError::Prohibited)));
    assert_eq!(world.stored(&service).await, NOTHING);
    assert_eq!(world.services.store.counts().await.unwrap().queues, 0);
}

#[actix::test]
async fn a_subscription_signed_by_a_service_takes_the_queue_from_its_subscriber() {
    let world = World::new();
    let (client, sender, (service, session)) = (world.connect(), world.connect(), session(&world).await);
    let queue = client.create().await;
    session.subscribe(&queue).await;
    assert_eq!(client.event().await, (queue.recipient(), Response::End));
    assert_eq!(world.stored(&service).await, queues_with([&queue]));
    assert_eq!(sender.ask(queue.sender(), None, send(b"to the service")).await, Response::Ok);
    message_of(&session, &queue).await;
    client.is_told_nothing().await;
    assert_eq!(client.core.borrow().subscriptions.in_force(), 0);
    assert!(world.services.registry.find(&[queue.id()]).await.unwrap()[0].is_none());
}

#[actix::test]
async fn what_waits_in_a_queue_comes_with_the_subscription_that_associates_it() {
    let world = World::new();
    let (_, session) = session(&world).await;
    let queues = world.stored_queues(None, 20).await;
    world.store_messages(&queues).await;
    let subs: Vec<Ask<'_>> = queues.iter().map(|queue| (queue.recipient(), Some(&queue.key), Command::Sub)).collect();
    let answers = session.ask_all(&subs).await;
    assert_eq!(answers, vec![Response::Sok(Some(session.as_service.as_ref().unwrap().id())); 20]);
    let mut came = std::collections::HashSet::new();
    for _ in 0..20 {
        let (entity, response) = session.event().await;
        assert!(is_message(&response) && came.insert(entity), "each message once");
    }
}

#[actix::test]
async fn a_service_that_subscribes_again_gets_the_unacknowledged_message_again_and_nothing_else_changes() {
    let world = World::new();
    let (sender, (service, session)) = (world.connect(), session(&world).await);
    let queue = session.create().await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"again")).await, Response::Ok);
    message_of(&session, &queue).await;
    session.subscribe(&queue).await;
    message_of(&session, &queue).await;
    assert_eq!(session.acknowledge(&queue).await, Response::Ok);
    session.is_told_nothing().await;
    assert_eq!(world.stored(&service).await, queues_with([&queue]));
}

#[actix::test]
async fn the_subscription_of_who_is_no_service_releases_the_queue_and_the_service_is_told() {
    let world = World::new();
    let (client, sender, (service, session)) = (world.connect(), world.connect(), session(&world).await);
    let queues = [session.create().await, session.create().await];
    assert_eq!(sender.ask(queues[0].sender(), None, send(b"not acknowledged")).await, Response::Ok);
    message_of(&session, &queues[0]).await;
    client.subscribe(&queues[0]).await;
    assert_eq!(session.event().await, (queues[0].recipient(), Response::End));
    message_of(&client, &queues[0]).await;
    assert_eq!(session.acknowledge(&queues[0]).await, Response::Err(ErrorType::NoMsg));
    assert_eq!(client.acknowledge(&queues[0]).await, Response::Ok);
    assert_eq!(world.stored(&service).await, queues_with(&queues[1..]));
    assert_eq!(sender.ask(queues[0].sender(), None, send(b"to the client")).await, Response::Ok);
    message_of(&client, &queues[0]).await;
    session.is_told_nothing().await;
    // The other one is still served.
    assert_eq!(sender.ask(queues[1].sender(), None, send(b"to the service")).await, Response::Ok);
    message_of(&session, &queues[1]).await;
}

#[actix::test]
async fn a_queue_is_released_from_a_service_that_has_no_connection() {
    let world = World::new();
    let (client, service) = (world.connect(), world.service(Messaging).await);
    let queues = world.stored_queues(Some(&service), 2).await;
    client.subscribe(&queues[0]).await;
    assert_eq!(world.stored(&service).await, queues_with(&queues[1..]));
    let session = world.connect_service(&service);
    session.serve(queues_with(&queues[1..])).await;
    assert_eq!(session.event().await.1, Response::Alls);
    session.is_told_nothing().await;
}

#[actix::test]
async fn another_service_that_subscribes_to_the_queue_has_it_from_then_on() {
    let world = World::new();
    let sender = world.connect();
    let ((first, mut old), (second, mut new)) = (session(&world).await, session(&world).await);
    let queue = old.create().await;
    for round in 0..4u8 {
        new.subscribe(&queue).await;
        assert_eq!(old.event().await, (queue.recipient(), Response::End));
        assert_eq!(sender.ask(queue.sender(), None, send(&[round])).await, Response::Ok);
        message_of(&new, &queue).await;
        assert_eq!(new.acknowledge(&queue).await, Response::Ok);
        old.is_told_nothing().await;
        let owner = if round % 2 == 0 { [NOTHING, queues_with([&queue])] } else { [queues_with([&queue]), NOTHING] };
        assert_eq!([world.stored(&first).await, world.stored(&second).await], owner, "round {round}");
        std::mem::swap(&mut old, &mut new);
    }
}

#[actix::test]
async fn a_queue_of_a_service_that_somebody_else_deletes_is_told_and_counts_no_more() {
    let world = World::new();
    let (other, (service, session)) = (world.connect(), session(&world).await);
    let queues = [session.create().await, session.create().await];
    session.serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.1, Response::Alls);
    assert_eq!(other.ask(queues[0].recipient(), Some(&queues[0].key), Command::Del).await, Response::Ok);
    assert_eq!(session.event().await, (queues[0].recipient(), Response::Deld));
    session.serve(queues_with(&queues[1..])).await;
    assert_eq!(world.stored(&service).await, queues_with(&queues[1..]));
}

#[actix::test]
async fn a_queue_of_a_service_that_the_service_deletes_counts_no_more_and_nobody_is_told() {
    let world = World::new();
    let (sender, (service, session)) = (world.connect(), session(&world).await);
    let queues = [session.create().await, session.create().await];
    session.serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.1, Response::Alls);
    assert_eq!(sender.ask(queues[0].sender(), None, send(b"unacknowledged")).await, Response::Ok);
    message_of(&session, &queues[0]).await;
    assert_eq!(session.ask(queues[0].recipient(), Some(&queues[0].key), Command::Del).await, Response::Ok);
    session.is_told_nothing().await;
    assert!(session.core.borrow().subscriptions.usage(&queues[0].id()).is_none());
    session.serve(queues_with(&queues[1..])).await;
    assert_eq!(world.stored(&service).await, queues_with(&queues[1..]));
}

#[actix::test]
async fn queues_that_a_block_creates_or_takes_are_in_the_answer_to_its_subscription_to_all() {
    let world = World::new();
    let (client, (service, session)) = (world.connect(), session(&world).await);
    let (taken, key) = (client.create().await, signing_key());
    let own = session.as_service.as_ref().unwrap();
    let asks = [
        (EntityId::NONE, Some(&key), new(&key, true, QueueRequest::Messaging(None))),
        (taken.recipient(), Some(&taken.key), Command::Sub),
        (own.id(), Some(&own.key()), subscription(&service, UNKNOWN)),
    ];
    let answers = session.ask_all(&asks).await;
    let Response::Ids(ids) = &answers[0] else { panic!("IDS expected, got {:?}", answers[0]) };
    let created = Queue { key: key.clone(), ids: (**ids).clone() };
    let both = queues_with([&taken, &created]);
    assert_eq!(answers[1..], [Response::Sok(Some(own.id())), Response::Soks(both)]);
    // It is also what the connection goes on counting from.
    session.serve(both).await;
    assert_eq!(world.stored(&service).await, both);
}
