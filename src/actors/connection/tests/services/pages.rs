//! What waits when a service subscribes: it is found by pages and delivered, then comes `ALLS`.

use std::collections::HashSet;
use std::time::Duration;

use super::super::peer::{Ask, Queue, send, settle, until};
use super::super::service::{Service, UNKNOWN, queues_with};
use super::super::store::{Call, DirectedStore};
use super::super::{Peer, World};
use crate::actors::connection::fetch::PAGE;
use crate::protocol::command::Command;
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole::Messaging;
use crate::protocol::response::Response;
use crate::protocol::{CorrelationId, EntityId};
use crate::store::{Op, StoreError};

/// A service whose queues each have a message waiting.
async fn waiting(world: &World, count: usize) -> (Service, Vec<Queue>) {
    let service = world.service(Messaging).await;
    let queues = world.stored_queues(Some(&service), count).await;
    world.store_messages(&queues).await;
    (service, queues)
}

/// Subscribes, and reads nothing: as much waits as there is room for.
async fn begin_unread(session: &Peer) {
    session.block(true);
    session.put_service_subscription(UNKNOWN);
    until("no more room", || session.core.borrow().outbound.room() == 0).await;
}

/// The queues whose messages come, each once, until `ALLS`; what else comes, but for answers.
async fn all_that_comes(session: &Peer) -> (HashSet<EntityId>, Vec<(EntityId, Response)>) {
    let (mut came, mut others) = (HashSet::new(), Vec::new());
    loop {
        let next = session.gather(1).await.remove(0);
        if next.correlation_id != CorrelationId::NONE {
            continue;
        }
        match (next.entity_id, next.response.unwrap()) {
            (entity, Response::Alls) => {
                assert_eq!(entity, EntityId::NONE);
                return (came, others);
            }
            (entity, Response::Msg { .. }) => assert!(came.insert(entity), "each message once"),
            other => others.push(other),
        }
    }
}

fn recipients(queues: &[Queue]) -> HashSet<EntityId> {
    queues.iter().map(Queue::recipient).collect()
}

/// Empties queues beside all connections.
async fn empty(world: &World, queues: &[Queue]) {
    let empty = |queue: &Queue| Op::Acknowledge { queue: queue.id(), message: None, with_next: false };
    world.services.store.apply(queues.iter().map(empty).collect()).await.unwrap();
}

#[actix::test]
async fn the_first_message_of_each_queue_comes_and_then_once_that_this_was_all() {
    let world = World::new();
    let (service, queues) = waiting(&world, 50).await;
    let empty = world.stored_queues(Some(&service), 5).await;
    world.store_messages(&queues).await;
    let session = world.connect_service(&service);
    session.serve(queues_with(queues.iter().chain(&empty))).await;
    assert_eq!(all_that_comes(&session).await, (recipients(&queues), vec![]));
    session.is_told_nothing().await;
    assert!(matches!(session.acknowledge(&queues[0]).await, Response::Msg { .. }), "the second one");
    session.serve(queues_with(queues.iter().chain(&empty))).await;
    session.is_told_nothing().await;
}

#[actix::test]
async fn a_client_that_does_not_read_holds_back_the_messages_and_the_next_page() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |settings| settings.client_blocks = 4);
    let (service, queues) = waiting(&world, PAGE + 1).await;
    let session = world.connect_service(&service);
    begin_unread(&session).await;
    for _ in 0..20 {
        settle().await;
        let core = session.core.borrow();
        assert!(core.outbound.len() <= 4 && core.subscriptions.waiting() <= PAGE);
    }
    assert_eq!(store.asked(Call::WaitingQueues), [PAGE], "one page is looked for");
    let asked = store.asked(Call::FirstMessages);
    assert!(asked.iter().all(|queues| *queues <= 4), "no more than there is room for: {asked:?}");
    // That a queue was emptied meanwhile, however many, holds up nothing.
    empty(&world, &queues[10..]).await;
    session.block(false);
    let (came, others) = all_that_comes(&session).await;
    assert!(came.is_superset(&recipients(&queues[..10])) && others.is_empty());
    assert!(came.len() <= 10 + 5, "what was read before: {}", came.len());
    assert_eq!(store.asked(Call::WaitingQueues).len(), 1);
}

#[actix::test]
async fn the_queues_behind_a_full_page_are_found_too() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, mut queues) = waiting(&world, 2 * PAGE).await;
    queues.sort_by_key(Queue::id);
    // All of the second page, and the first and the last of the first one, keep theirs.
    let session = world.connect_service(&service);
    let held = store.hold(Call::WaitingQueues);
    session.put_service_subscription(UNKNOWN);
    until("a page is looked for", || store.calls(Call::WaitingQueues) == 1).await;
    empty(&world, &queues[1..PAGE - 1]).await;
    held.add_permits(1);
    until("the next is looked for", || store.calls(Call::WaitingQueues) == 2).await;
    empty(&world, &queues[PAGE + 1..2 * PAGE - 1]).await;
    held.add_permits(2);
    let left: HashSet<EntityId> =
        [0, PAGE - 1, PAGE, 2 * PAGE - 1].into_iter().map(|place| queues[place].recipient()).collect();
    assert_eq!(all_that_comes(&session).await, (left, vec![]));
    // The second page was full as well: only the third shows that it was the last.
    assert_eq!(store.asked(Call::WaitingQueues), [PAGE; 3]);
}

#[actix::test]
async fn messages_that_come_while_it_is_looked_come_once() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (service, queues) = waiting(&world, 30).await;
    let empty = world.stored_queues(Some(&service), 10).await;
    let (session, sender) = (world.connect_service(&service), world.connect());
    begin_unread(&session).await;
    let sends: Vec<Ask<'_>> =
        queues.iter().chain(&empty).map(|queue| (queue.sender(), None, send(b"meanwhile"))).collect();
    assert_eq!(sender.ask_all(&sends).await, vec![Response::Ok; 40]);
    session.block(false);
    let (mut came, _) = all_that_comes(&session).await;
    assert!(came.is_superset(&recipients(&queues)));
    while came.len() < 40 {
        assert!(came.insert(session.event().await.0), "each message once");
    }
    session.is_told_nothing().await;
}

#[actix::test]
async fn a_queue_that_is_subscribed_by_itself_while_it_waits_comes_once_and_is_waited_for() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (service, mut queues) = waiting(&world, 30).await;
    queues.sort_by_key(Queue::id);
    let session = world.connect_service(&service);
    begin_unread(&session).await;
    // Those that come last are not delivered yet.
    session.put(&[28, 29].map(|place: usize| (queues[place].recipient(), Some(&queues[place].key), Command::Sub)));
    session.block(false);
    let (came, others) = all_that_comes(&session).await;
    assert_eq!((came, others), (recipients(&queues), vec![]));
    session.is_told_nothing().await;
}

#[actix::test]
async fn queues_that_leave_or_are_deleted_while_they_wait_do_not_hold_up_the_end() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (service, mut queues) = waiting(&world, 30).await;
    queues.sort_by_key(Queue::id);
    let (session, client) = (world.connect_service(&service), world.connect());
    begin_unread(&session).await;
    // Those that come last are not delivered yet.
    let (released, deleted) = (&queues[28], &queues[29]);
    client.subscribe(released).await;
    assert_eq!(client.event().await.0, released.recipient());
    assert_eq!(client.ask(deleted.recipient(), Some(&deleted.key), Command::Del).await, Response::Ok);
    session.block(false);
    let (came, mut told) = all_that_comes(&session).await;
    assert_eq!(came, recipients(&queues[..28]));
    while told.len() < 2 {
        told.push(session.event().await);
    }
    let told: HashSet<EntityId> = told
        .into_iter()
        .map(|(entity, response)| {
            assert_eq!(response, if entity == released.recipient() { Response::End } else { Response::Deld });
            entity
        })
        .collect();
    assert_eq!(told, recipients(&queues[28..]));
    session.is_told_nothing().await;
}

#[actix::test]
async fn a_message_that_cannot_be_read_is_told_and_does_not_hold_up_the_end() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, queues) = waiting(&world, 5).await;
    store.damage(queues[2].id());
    let session = world.connect_service(&service);
    session.serve(queues_with(&queues)).await;
    let (came, others) = all_that_comes(&session).await;
    assert_eq!(came.len(), 4);
    assert_eq!(others, [(queues[2].recipient(), Response::Err(ErrorType::Store("failed".into())))]);
}

#[actix::test]
async fn a_store_that_fails_is_asked_again_a_second_later() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, queues) = waiting(&world, 5).await;
    let session = world.connect_service(&service);
    tokio::time::pause();
    let failure = || StoreError::Failed("disk full".into());
    store.fail(Call::WaitingQueues, failure());
    store.fail(Call::FirstMessages, failure());
    session.serve(queues_with(&queues)).await;
    for call in [Call::WaitingQueues, Call::FirstMessages] {
        until("the store fails", || store.calls(call) == 1).await;
        session.is_told_nothing().await;
        assert_eq!(store.asked(call).len(), 1, "it is not asked again at once");
        store.work(call);
        tokio::time::advance(Duration::from_millis(1001)).await;
    }
    assert_eq!(all_that_comes(&session).await, (recipients(&queues), vec![]));
}

#[actix::test]
async fn who_is_taken_over_from_meanwhile_gets_no_more_and_the_successor_gets_all() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (service, queues) = waiting(&world, 30).await;
    let (old, new) = (world.connect_service(&service), world.connect_service(&service));
    begin_unread(&old).await;
    new.serve(queues_with(&queues)).await;
    assert_eq!(all_that_comes(&new).await, (recipients(&queues), vec![]));
    old.quiesce_unread().await;
    old.block(false);
    let mut before = 0;
    loop {
        match old.event().await.1 {
            Response::Msg { .. } => before += 1,
            Response::Ends(ended) => break assert_eq!(ended, queues_with(&queues)),
            other => panic!("{other:?}"),
        }
    }
    assert!(before <= 5, "{before} messages were on their way");
    old.quiesce().await;
    assert!(old.take_received().iter().all(|t| t.correlation_id != CorrelationId::NONE));
}

#[actix::test]
async fn a_page_that_was_found_too_late_is_of_no_use() {
    let store = DirectedStore::new();
    let world = World::on(store.clone(), |_| {});
    let (service, queues) = waiting(&world, 3).await;
    let (old, new) = (world.connect_service(&service), world.connect_service(&service));
    let held = store.hold(Call::WaitingQueues);
    old.serve(queues_with(&queues)).await;
    until("a page is looked for", || store.calls(Call::WaitingQueues) == 1).await;
    store.let_go(Call::WaitingQueues);
    new.serve(queues_with(&queues)).await;
    assert_eq!(all_that_comes(&new).await, (recipients(&queues), vec![]));
    held.add_permits(1);
    assert_eq!(old.event().await.1, Response::Ends(queues_with(&queues)));
    old.is_told_nothing().await;
    assert_eq!(old.core.borrow().subscriptions.waiting(), 0);
}
