//! Services that are notified: `NSUBS`, and which notifiers are theirs.

use super::super::peer::until;
use super::super::service::{NOTHING, UNKNOWN, ids_with};
use super::super::{Peer, Service, World};
use super::{Notifier, enable, hand_in, notified, nsub, send_notified, subscribe, waiting};
use crate::protocol::command::{Command, IdsHash, ServiceQueues};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, Version};
use crate::transport::block_io::Incoming;

async fn session(world: &World) -> (Service, Peer) {
    let service = world.service(ServiceRole::Notifier).await;
    (service, world.connect_service(&service))
}

fn of<'a>(notifiers: impl IntoIterator<Item = &'a Notifier>) -> ServiceQueues {
    ids_with(notifiers.into_iter().map(Notifier::queue_id))
}

/// What `ENDS` says to the session.
async fn ended(session: &Peer) -> ServiceQueues {
    let (entity, response) = session.event().await;
    assert_eq!(entity, session.as_service.as_ref().unwrap().id());
    let Response::Ends(queues) = response else { panic!("ENDS expected, got {response:?}") };
    queues
}

async fn connection_of(world: &World, service: &Service) -> Option<u64> {
    let found = world.services.notifications.find_services(vec![service.id]).await.unwrap();
    found[0].as_ref().map(|connection| connection.id.0)
}

#[actix::test]
async fn nsubs_is_answered_with_the_number_of_notifiers_and_the_hash_of_their_ids() {
    let world = World::new();
    let (service, session) = session(&world).await;
    let notifiers = world.stored_notifiers(Some(&service), 5).await;
    world.stored_notifiers(None, 2).await;
    session.serve(ids_with(notifiers.iter().map(|notifier| notifier.id))).await;
    session.is_told_nothing().await;
}

#[actix::test]
async fn below_version_19_neither_side_tells_a_hash() {
    let world = World::new();
    let service = world.service(ServiceRole::Notifier).await;
    let notifiers = world.stored_notifiers(Some(&service), 2).await;
    let all = ids_with(notifiers.iter().map(|notifier| notifier.id));
    let without_hash = ServiceQueues { hash: IdsHash::default(), ..all };
    for version in 16..=18 {
        let session = world.connect_service_as(&service, Version(version));
        session.serve(without_hash).await;
        world.connect_service(&service).serve(all).await;
        assert_eq!(ended(&session).await, without_hash);
    }
}

#[actix::test]
async fn a_service_that_subscribes_to_a_notifier_takes_it_from_its_subscriber() {
    let world = World::new();
    let (owner, client, sender, (service, session)) =
        (world.connect(), world.connect(), world.connect(), session(&world).await);
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    subscribe(&session, &notifier).await;
    assert_eq!(client.event().await, (notifier.id.clone(), Response::End));
    assert_eq!(world.stored(&service).await, of([&notifier]));
    send_notified(&sender, &queue).await;
    notifier.open(&session.event().await);
    client.is_told_nothing().await;
    // Once more changes nothing.
    subscribe(&session, &notifier).await;
    session.is_told_nothing().await;
    assert_eq!(world.stored(&service).await, of([&notifier]));
}

#[actix::test]
async fn who_is_no_service_takes_the_notifier_out_of_the_service_which_is_told() {
    let world = World::new();
    let (owner, client, sender, (service, session)) =
        (world.connect(), world.connect(), world.connect(), session(&world).await);
    let (queue, notifier) = notified(&owner).await;
    let (other_queue, other) = notified(&owner).await;
    for notifier in [&notifier, &other] {
        subscribe(&session, notifier).await;
    }
    subscribe(&client, &notifier).await;
    assert_eq!(session.event().await, (notifier.id.clone(), Response::End));
    assert_eq!(world.stored(&service).await, of([&other]));
    for (peer, queue, notifier) in [(&client, &queue, &notifier), (&session, &other_queue, &other)] {
        send_notified(&sender, queue).await;
        notifier.open(&peer.event().await);
    }
    session.is_told_nothing().await;
    session.serve(of([&other])).await;
}

#[actix::test]
async fn another_service_that_subscribes_to_the_notifier_has_it_from_then_on() {
    let world = World::new();
    let (owner, sender) = (world.connect(), world.connect());
    let ((first, mut old), (second, mut new)) = (session(&world).await, session(&world).await);
    let (queue, notifier) = notified(&owner).await;
    subscribe(&old, &notifier).await;
    for round in 0..4 {
        subscribe(&new, &notifier).await;
        assert_eq!(old.event().await, (notifier.id.clone(), Response::End), "round {round}");
        send_notified(&sender, &queue).await;
        notifier.open(&new.event().await);
        old.is_told_nothing().await;
        std::mem::swap(&mut old, &mut new);
    }
    assert_eq!([world.stored(&first).await, world.stored(&second).await], [of([&notifier]), NOTHING]);
}

#[actix::test]
async fn another_session_of_the_service_takes_over_and_nothing_more_is_told_to_the_one_before() {
    let world = World::new();
    let (owner, sender, (service, mut old)) = (world.connect(), world.connect(), session(&world).await);
    let (queue, notifier) = notified(&owner).await;
    let (_, other) = notified(&owner).await;
    let all = of([&notifier, &other]);
    for notifier in [&notifier, &other] {
        subscribe(&old, notifier).await;
    }
    for _ in 0..3 {
        let new = world.connect_service(&service);
        new.serve(all).await;
        assert_eq!(ended(&old).await, all);
        send_notified(&sender, &queue).await;
        notifier.open(&new.event().await);
        old.is_told_nothing().await;
        old = new;
    }
    // So does one that subscribes to a single notifier.
    let new = world.connect_service(&service);
    subscribe(&new, &other).await;
    assert_eq!(ended(&old).await, all);
    send_notified(&sender, &queue).await;
    notifier.open(&new.event().await);
}

#[actix::test]
async fn what_waits_for_the_service_comes_with_its_subscription() {
    let world = World::new();
    let (owner, sender, (service, first)) = (world.connect(), world.connect(), session(&world).await);
    let (queue, notifier) = notified(&owner).await;
    subscribe(&first, &notifier).await;
    first.put_incoming(Incoming::Closed);
    until("the connection has ended", || first.ended()).await;
    send_notified(&sender, &queue).await;
    until("it waits", || waiting(&world) == (1, 0)).await;
    let next = world.connect_service(&service);
    next.serve(of([&notifier])).await;
    notifier.open(&next.event().await);
    until("it is delivered", || waiting(&world) == (0, 0)).await;
}

#[actix::test]
async fn what_the_session_before_has_not_read_comes_to_the_one_that_takes_over() {
    let world = World::new();
    let (service, old) = session(&world).await;
    let notifiers = world.stored_notifiers(Some(&service), 3).await;
    let all = ids_with(notifiers.iter().map(|notifier| notifier.id));
    old.serve(all).await;
    old.block(true);
    old.put(&[(EntityId::NONE, None, Command::Ping)]);
    until("it waits for the client", || old.core.borrow().is_waiting()).await;
    for notifier in &notifiers {
        hand_in(&world, notifier.id, Some(service.id)).await;
    }
    until("they wait", || waiting(&world) == (3, 0)).await;
    let new = world.connect_service(&service);
    new.serve(all).await;
    for _ in 0..3 {
        assert!(matches!(new.event().await.1, Response::Nmsg { .. }));
    }
    old.block(false);
    let told = old.gather(2).await;
    assert_eq!(
        told.iter().map(|t| t.response.clone().unwrap()).collect::<Vec<_>>(),
        [Response::Pong, Response::Ends(all)]
    );
    old.is_told_nothing().await;
}

#[actix::test]
async fn notifiers_of_the_service_that_are_gone_are_told_once_and_count_no_more() {
    let world = World::new();
    let (owner, (service, session)) = (world.connect(), session(&world).await);
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(notified(&owner).await);
        subscribe(&session, &all.last().unwrap().1).await;
    }
    session.serve(of(all.iter().map(|(_, notifier)| notifier))).await;
    for ((queue, notifier), how) in all.iter().zip([Some(Command::Ndel), Some(Command::Del), None]) {
        match how {
            Some(command) => {
                assert_eq!(owner.ask(queue.recipient(), Some(&queue.key), command).await, Response::Ok);
            }
            None => drop(enable(&owner, queue).await),
        }
        assert_eq!(session.event().await, (notifier.id.clone(), Response::Deld));
    }
    session.is_told_nothing().await;
    let left = of([&all[3].1]);
    assert_eq!(world.stored(&service).await, left);
    session.serve(left).await;
    world.connect_service(&service).serve(left).await;
    assert_eq!(ended(&session).await, left);
}

#[actix::test]
async fn a_notifier_taken_while_the_service_is_subscribed_is_served_at_once_and_counted() {
    let world = World::new();
    let (owner, sender, (service, session)) = (world.connect(), world.connect(), session(&world).await);
    session.serve(NOTHING).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let (queue, notifier) = notified(&owner).await;
        subscribe(&session, &notifier).await;
        send_notified(&sender, &queue).await;
        notifier.open(&session.event().await);
        all.push(notifier);
    }
    session.serve(of(&all)).await;
    world.connect_service(&service).serve(of(&all)).await;
    assert_eq!(ended(&session).await, of(&all));
}

#[actix::test]
async fn a_connection_that_ended_leaves_nothing_of_its_service() {
    let world = World::new();
    let (owner, (service, session)) = (world.connect(), session(&world).await);
    let (_, notifier) = notified(&owner).await;
    subscribe(&session, &notifier).await;
    assert_eq!(connection_of(&world, &service).await, Some(session.handle.id.0));
    let successor = world.connect_service(&service);
    successor.serve(of([&notifier])).await;
    for (peer, left) in [(&session, Some(successor.handle.id.0)), (&successor, None)] {
        peer.put_incoming(Incoming::Closed);
        until("the connection has ended", || peer.ended()).await;
        assert_eq!(connection_of(&world, &service).await, left);
    }
}

#[actix::test]
async fn nsubs_is_for_the_service_s_own_session_and_role() {
    let world = World::new();
    let (_, session) = session(&world).await;
    let messaging = world.connect_service(&world.service(ServiceRole::Messaging).await);
    let own = session.as_service.as_ref().unwrap();
    let asks = |peer: &Peer, command: Command| {
        let ask = (own.id(), Some(&own.key()), command);
        peer.put_signed(&[ask], |_| false).remove(0)
    };
    let prohibited = Response::Err(ErrorType::Cmd(CommandError::Prohibited));
    let not_signed = Response::Err(ErrorType::Service);
    let stranger = world.connect_service(&world.service(ServiceRole::Notifier).await);
    for (peer, command, answer) in [
        (&session, Command::Subs(UNKNOWN), &prohibited),
        (&messaging, Command::Nsubs(UNKNOWN), &prohibited),
        (&stranger, Command::Nsubs(UNKNOWN), &not_signed),
        (&world.connect(), Command::Nsubs(UNKNOWN), &not_signed),
    ] {
        let id = asks(peer, command);
        assert_eq!(peer.answer(&id).await, *answer);
    }
    let (_, notifier) = notified(&world.connect()).await;
    assert_eq!(nsub(&messaging, &notifier).await, prohibited);
    session.serve(NOTHING).await;
}
