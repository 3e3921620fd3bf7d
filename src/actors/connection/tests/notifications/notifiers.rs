//! `NKEY`, `NDEL`, `NSUB`, and what their subscribers are told.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::super::World;
use super::super::peer::{Queue, new, send, signing_key, until};
use super::{Notifier, enable, notified, nsub, send_notified, subscribe, waiting};
use crate::actors::connection::core::{CloseReason, Patience};
use crate::protocol::EntityId;
use crate::protocol::command::{Command, NewNotifier, QueueRequest};
use crate::protocol::crypto::{DhKeyPair, random_queue_id};
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::store::Peeked;
use crate::transport::block_io::Incoming;

#[actix::test]
async fn a_message_that_asks_for_it_is_notified_and_others_are_not() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"quietly")).await, Response::Ok);
    assert!(matches!(owner.event().await.1, Response::Msg { .. }));
    client.is_told_nothing().await;
    assert_eq!(owner.acknowledge(&queue).await, Response::Ok);
    send_notified(&sender, &queue).await;
    let told = notifier.open(&client.event().await);
    let first = world.services.store.first_messages(&[queue.id()], 1).await.unwrap().remove(0).first;
    let Peeked::Message(first) = first else { panic!("a message expected") };
    assert_eq!((&told.message_id[..], told.timestamp), (&first.message.id.0[..], first.message.timestamp.seconds));
    client.is_told_nothing().await;
}

#[actix::test]
async fn each_message_of_a_queue_is_notified_whether_or_not_the_one_before_was_acknowledged() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    let mut told = std::collections::HashSet::new();
    for _ in 0..3 {
        send_notified(&sender, &queue).await;
        assert!(told.insert(notifier.open(&client.event().await).message_id), "of another message each");
    }
}

#[actix::test]
async fn what_was_sent_before_the_subscription_comes_with_it() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    for _ in 0..3 {
        send_notified(&sender, &queue).await;
    }
    until("they wait", || waiting(&world) == (3, 0)).await;
    subscribe(&client, &notifier).await;
    for _ in 0..3 {
        notifier.open(&client.event().await);
    }
    until("they are delivered", || waiting(&world) == (0, 0)).await;
}

#[actix::test]
async fn a_new_subscriber_takes_over_and_nothing_more_is_told_to_the_old_one() {
    let world = World::new();
    let (owner, sender) = (world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    let mut old = world.connect();
    subscribe(&old, &notifier).await;
    for _ in 0..3 {
        let new = world.connect();
        subscribe(&new, &notifier).await;
        assert_eq!(old.event().await, (notifier.id.clone(), Response::End));
        send_notified(&sender, &queue).await;
        notifier.open(&new.event().await);
        old.is_told_nothing().await;
        old = new;
    }
}

#[actix::test]
async fn subscribing_again_takes_over_from_nobody() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    for _ in 0..3 {
        subscribe(&client, &notifier).await;
    }
    client.is_told_nothing().await;
    send_notified(&sender, &queue).await;
    notifier.open(&client.event().await);
    client.is_told_nothing().await;
}

#[actix::test]
async fn only_the_key_of_the_notifier_subscribes_to_it() {
    let world = World::new();
    let (owner, client) = (world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    let auth = Response::Err(ErrorType::Auth);
    for (id, key) in [
        (notifier.id.clone(), &signing_key()),
        (notifier.id.clone(), &queue.key),
        (queue.recipient(), &notifier.key),
        (queue.sender(), &notifier.key),
        (random_queue_id().into(), &notifier.key),
    ] {
        assert_eq!(client.ask(id, Some(key), Command::Nsub).await, auth);
    }
    assert_eq!(
        world.services.notifications.are_subscribed(client.handle.id, vec![notifier.queue_id()]).await,
        Ok(vec![false])
    );
}

#[actix::test]
async fn a_notifier_that_is_replaced_is_gone_with_all_that_waits_for_it() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, old) = notified(&owner).await;
    send_notified(&sender, &queue).await;
    until("it waits", || waiting(&world).0 == 1).await;
    let (other_queue, other) = notified(&owner).await;
    subscribe(&client, &other).await;
    let new = enable(&owner, &queue).await;
    assert_ne!(new.id, old.id);
    until("it is dropped", || waiting(&world).0 == 0).await;
    assert_eq!(nsub(&client, &old).await, Response::Err(ErrorType::Auth));
    subscribe(&client, &new).await;
    // One that is subscribed is told.
    let newest = enable(&owner, &queue).await;
    assert_eq!(client.event().await, (new.id.clone(), Response::Deld));
    subscribe(&client, &newest).await;
    send_notified(&sender, &queue).await;
    newest.open(&client.event().await);
    send_notified(&sender, &other_queue).await;
    other.open(&client.event().await);
    client.is_told_nothing().await;
}

#[actix::test]
async fn a_notifier_that_is_removed_is_told_to_its_subscriber() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    let ndel = || owner.ask(queue.recipient(), Some(&queue.key), Command::Ndel);
    assert_eq!(ndel().await, Response::Ok);
    assert_eq!(client.event().await, (notifier.id.clone(), Response::Deld));
    assert_eq!(ndel().await, Response::Ok, "also when there is none");
    send_notified(&sender, &queue).await;
    client.is_told_nothing().await;
    assert_eq!(nsub(&client, &notifier).await, Response::Err(ErrorType::Auth));
    assert_eq!(waiting(&world), (0, 0));
}

#[actix::test]
async fn a_deleted_queue_is_told_to_the_subscriber_of_its_notifier() {
    let world = World::new();
    let (owner, client) = (world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    assert_eq!(owner.ask(queue.recipient(), Some(&queue.key), Command::Del).await, Response::Ok);
    assert_eq!(client.event().await, (notifier.id.clone(), Response::Deld));
    client.is_told_nothing().await;
}

#[actix::test]
async fn who_removes_its_own_notifier_is_told_nothing() {
    let world = World::new();
    let client = world.connect();
    for command in [Command::Ndel, Command::Del] {
        let (queue, notifier) = notified(&client).await;
        subscribe(&client, &notifier).await;
        assert_eq!(client.ask(queue.recipient(), Some(&queue.key), command).await, Response::Ok);
        client.is_told_nothing().await;
    }
    let (queue, notifier) = notified(&client).await;
    subscribe(&client, &notifier).await;
    enable(&client, &queue).await;
    client.is_told_nothing().await;
}

#[actix::test]
async fn a_notifier_made_with_its_queue_is_notified_too() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (key, notifier_key) = (signing_key(), signing_key());
    let own = DhKeyPair::generate();
    let Command::New(mut request) = new(&key, true, QueueRequest::Messaging(None)) else { unreachable!() };
    request.notifier = Some(NewNotifier { key: notifier_key.public_key().unwrap(), dh_key: own.public });
    let answer = owner.ask(EntityId::NONE, Some(&key), Command::New(request)).await;
    let Response::Ids(ids) = answer else { panic!("IDS expected, got {answer:?}") };
    let (id, server_key) = ids.notifier.clone().unwrap();
    let notifier = Notifier { id, key: notifier_key, secret: own.secret.agree(&server_key).unwrap() };
    subscribe(&client, &notifier).await;
    send_notified(&sender, &Queue { key, ids: *ids }).await;
    notifier.open(&client.event().await);
}

#[actix::test]
async fn a_connection_that_ended_leaves_no_subscription_to_notifiers() {
    let world = World::new();
    let (owner, client, sender) = (world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&client, &notifier).await;
    client.put_incoming(Incoming::Closed);
    until("the connection has ended", || client.ended()).await;
    let of_client = |peer| world.services.notifications.are_subscribed(peer, vec![notifier.queue_id()]);
    assert_eq!(of_client(client.handle.id).await, Ok(vec![false]));
    assert_eq!(world.services.notification_metrics.subscriptions.load(Relaxed), 0);
    send_notified(&sender, &queue).await;
    until("it waits", || waiting(&world) == (1, 0)).await;
    let next = world.connect();
    subscribe(&next, &notifier).await;
    notifier.open(&next.event().await);
}

#[actix::test]
async fn a_connection_that_ends_late_leaves_its_successor() {
    let world = World::new();
    let (owner, old, new, sender) = (world.connect(), world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    subscribe(&old, &notifier).await;
    subscribe(&new, &notifier).await;
    old.put_incoming(Incoming::Closed);
    until("the connection has ended", || old.ended()).await;
    send_notified(&sender, &queue).await;
    notifier.open(&new.event().await);
}

#[actix::test]
async fn a_connection_is_inactive_only_once_its_notifiers_are_gone() {
    let world = World::new();
    let (owner, removed, taken_over, subscribed) = (world.connect(), world.connect(), world.connect(), world.connect());
    let (queue, notifier) = notified(&owner).await;
    let (_, other) = notified(&owner).await;
    subscribe(&removed, &notifier).await;
    subscribe(&taken_over, &other).await;
    subscribe(&subscribed, &other).await;
    assert_eq!(owner.ask(queue.recipient(), Some(&queue.key), Command::Ndel).await, Response::Ok);
    assert_eq!(removed.event().await.1, Response::Deld);
    assert_eq!(taken_over.event().await.1, Response::End);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(7200)).await;
    let patience =
        Patience { inactive: Some(Duration::from_secs(3600)), stalled: Duration::from_secs(60), check_interval: None };
    for (peer, closes) in [(&removed, true), (&taken_over, true), (&subscribed, false)] {
        peer.core.borrow_mut().sweep(&patience);
        assert_eq!(peer.core.borrow().closing(), closes.then_some(CloseReason::Inactive));
    }
}
