//! `SUBS`: what it is answered, and what it leaves.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::super::World;
use super::super::peer::{send, until};
use super::super::service::{NOTHING, UNKNOWN, ids_with, queues_with};
use super::super::store::{Call, DirectedStore};
use crate::actors::connection::core::{CloseReason, Patience};
use crate::protocol::Version;
use crate::protocol::command::{IdsHash, ServiceQueues};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole::Messaging;
use crate::protocol::response::Response;
use crate::store::StoreError;
use crate::transport::block_io::Incoming;

#[actix::test]
async fn it_is_answered_with_the_number_of_queues_and_the_xor_of_their_hashes() {
    let world = World::new();
    let (service, other) = (world.service(Messaging).await, world.service(Messaging).await);
    let queues = world.stored_queues(Some(&service), 5).await;
    world.stored_queues(Some(&other), 3).await;
    world.stored_queues(None, 2).await;
    let mut hash = [0; 16];
    for queue in &queues {
        let of_one = ids_with([queue.id()]).hash.0;
        hash.iter_mut().zip(of_one).for_each(|(sum, byte)| *sum ^= byte);
    }
    let expected = ServiceQueues { count: 5, hash: IdsHash(hash) };
    assert_eq!(world.connect_service(&service).subscribe_service(expected).await, Response::Soks(expected));
}

#[actix::test]
async fn a_service_without_queues_is_answered_with_none_and_that_nothing_waits() {
    let world = World::new();
    let session = world.connect_service(&world.service(Messaging).await);
    session.serve(NOTHING).await;
    assert_eq!(session.event().await.1, Response::Alls);
}

#[actix::test]
async fn below_version_19_neither_side_tells_a_hash() {
    let world = World::new();
    let service = world.service(Messaging).await;
    let queues = world.stored_queues(Some(&service), 2).await;
    let session = world.connect_service_as(&service, Version(18));
    let without_hash = ServiceQueues { hash: IdsHash::default(), ..queues_with(&queues) };
    // What it expects is not sent, and so is not known.
    assert_eq!(session.subscribe_service(NOTHING).await, Response::Soks(without_hash));
    let drift = &world.services.counters.drift;
    assert_eq!((drift.none.load(Relaxed), drift.more.load(Relaxed)), (1, 0));
    assert_eq!(session.event().await.1, Response::Alls);
    world.connect_service(&service).serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.1, Response::Ends(without_hash));
}

#[actix::test]
async fn what_a_service_expects_and_has_not_is_counted() {
    let world = World::new();
    let service = world.service(Messaging).await;
    let stored = queues_with(&world.stored_queues(Some(&service), 3).await);
    let other_hash = IdsHash([7; 16]);
    let counted = || {
        let drift = &world.services.counters.drift;
        [&drift.none, &drift.more, &drift.more_queues, &drift.fewer, &drift.fewer_queues, &drift.different]
            .map(|counter| counter.load(Relaxed))
    };
    for (expected, counts) in [
        (stored, [1, 0, 0, 0, 0, 0]),
        (UNKNOWN, [2, 0, 0, 0, 0, 0]),
        (ServiceQueues { count: 1, hash: other_hash }, [2, 1, 2, 0, 0, 0]),
        (NOTHING, [2, 2, 5, 0, 0, 0]),
        (ServiceQueues { count: 7, hash: other_hash }, [2, 2, 5, 1, 4, 0]),
        (ServiceQueues { count: 3, hash: other_hash }, [2, 2, 5, 1, 4, 1]),
    ] {
        let session = world.connect_service(&service);
        assert_eq!(session.subscribe_service(expected).await, Response::Soks(stored), "{expected:?}");
        assert_eq!(counted(), counts, "{expected:?}");
    }
}

#[actix::test]
async fn a_second_one_is_answered_with_what_the_connection_knows_and_looks_for_nothing() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, client) = (world.service(Messaging).await, world.connect());
    let session = world.connect_service(&service);
    let mut queues = vec![session.create().await, session.create().await];
    session.serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.1, Response::Alls);
    queues.push(session.create().await);
    client.subscribe(&queues.remove(0)).await;
    assert_eq!(session.event().await.1, Response::End);
    store.asked(Call::ServiceQueues);
    store.asked(Call::WaitingQueues);
    session.serve(queues_with(&queues)).await;
    session.is_told_nothing().await;
    assert_eq!((store.calls(Call::ServiceQueues), store.calls(Call::WaitingQueues)), (0, 0));
    assert_eq!(world.stored(&service).await, queues_with(&queues));
}

#[actix::test]
async fn it_is_in_force_before_its_answer_leaves() {
    let world = World::new();
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queue = world.stored_queues(Some(&service), 1).await.remove(0);
    for _ in 0..30 {
        let session = world.connect_service(&service);
        session.serve(queues_with([&queue])).await;
        assert_eq!(sender.ask(queue.sender(), None, send(b"right after SOKS")).await, Response::Ok);
        let came = session.event().await;
        // Whether ALLS was there before depends on when the message came.
        let came = if came.1 == Response::Alls { session.event().await } else { came };
        assert!(matches!(came.1, Response::Msg { .. }), "{came:?}");
        assert_eq!(session.acknowledge(&queue).await, Response::Ok);
    }
}

#[actix::test]
async fn one_that_the_store_fails_can_be_tried_again() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let queues = world.stored_queues(Some(&service), 2).await;
    world.store_messages(&queues[..1]).await;
    let session = world.connect_service(&service);
    store.fail(Call::ServiceQueues, StoreError::Failed("disk full".into()));
    assert_eq!(session.subscribe_service(NOTHING).await, Response::Err(ErrorType::Store("failed".into())));
    session.is_told_nothing().await;
    store.work(Call::ServiceQueues);
    session.serve(queues_with(&queues)).await;
    assert_eq!(session.event().await.0, queues[0].recipient());
    assert_eq!(session.event().await.1, Response::Alls);
    assert_eq!(sender.ask(queues[1].sender(), None, send(b"live")).await, Response::Ok);
    assert_eq!(session.event().await.0, queues[1].recipient());
}

#[actix::test]
async fn one_that_failed_leaves_an_earlier_subscription_as_it_was() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (session, sender) = (world.connect_service(&world.service(Messaging).await), world.connect());
    let queue = session.create().await;
    store.fail(Call::ServiceQueues, StoreError::Failed("disk full".into()));
    assert_eq!(session.subscribe_service(NOTHING).await, Response::Err(ErrorType::Store("failed".into())));
    assert_eq!(sender.ask(queue.sender(), None, send(b"live")).await, Response::Ok);
    assert_eq!(session.event().await.0, queue.recipient());
}

#[actix::test]
async fn a_connection_that_ended_leaves_nothing_in_the_registry() {
    let world = World::new();
    let (service, client, sender) = (world.service(Messaging).await, world.connect(), world.connect());
    let session = world.connect_service(&service);
    let (created, taken) = (session.create().await, client.create().await);
    session.subscribe(&taken).await;
    session.serve(queues_with([&created, &taken])).await;
    session.put_incoming(Incoming::Closed);
    until("the connection has ended", || session.ended()).await;
    assert_eq!(world.connection_of(&service).await, None);
    let found = world.services.registry.find(&[created.id(), taken.id()]).await.unwrap();
    assert!(found.iter().all(Option::is_none));
    // They stay the service's: the next connection gets what came meanwhile.
    assert_eq!(sender.ask(taken.sender(), None, send(b"kept")).await, Response::Ok);
    let next = world.connect_service(&service);
    next.serve(queues_with([&created, &taken])).await;
    assert_eq!(next.event().await.0, taken.recipient());
}

#[actix::test]
async fn a_connection_that_ends_late_leaves_its_successor() {
    let world = World::new();
    let (service, sender) = (world.service(Messaging).await, world.connect());
    let old = world.connect_service(&service);
    let queue = old.create().await;
    let new = world.connect_service(&service);
    new.serve(queues_with([&queue])).await;
    old.put_incoming(Incoming::Closed);
    until("the connection has ended", || old.ended()).await;
    assert_eq!(world.connection_of(&service).await, Some(new.handle.id.0));
    assert_eq!(new.event().await.1, Response::Alls);
    assert_eq!(sender.ask(queue.sender(), None, send(b"to the successor")).await, Response::Ok);
    assert_eq!(new.event().await.0, queue.recipient());
}

#[actix::test]
async fn a_connection_that_ends_while_it_subscribes_leaves_nothing() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let service = world.service(Messaging).await;
    let session = world.connect_service(&service);
    let held = store.hold(Call::ServiceQueues);
    session.put_service_subscription(UNKNOWN);
    until("the store is asked", || store.calls(Call::ServiceQueues) == 1).await;
    assert_eq!(world.connection_of(&service).await, Some(session.handle.id.0));
    session.core.borrow_mut().close(CloseReason::Stalled);
    until("it is closed", || session.closed()).await;
    held.add_permits(1);
    until("the connection has ended", || session.ended()).await;
    assert_eq!(world.connection_of(&service).await, None);
}

#[actix::test]
async fn a_subscribed_service_is_not_inactive_however_long_it_is_silent() {
    let world = World::new();
    let service = world.service(Messaging).await;
    let (old, new) = (world.connect_service(&service), world.connect_service(&service));
    old.serve(NOTHING).await;
    new.serve(NOTHING).await;
    old.quiesce().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(7200)).await;
    let patience =
        Patience { inactive: Some(Duration::from_secs(3600)), stalled: Duration::from_secs(60), check_interval: None };
    for peer in [&old, &new] {
        peer.core.borrow_mut().sweep(&patience);
    }
    assert_eq!(new.core.borrow().closing(), None);
    assert_eq!(old.core.borrow().closing(), Some(CloseReason::Inactive), "it has been taken over from");
}
