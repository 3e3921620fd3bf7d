use bytes::Bytes;

use super::peer::{send, until};
use super::{Peer, World};
use crate::actors::connection::core::CloseReason;
use crate::protocol::EntityId;
use crate::protocol::command::Command;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::response::Response;
use crate::transport::block_io::Incoming;

fn is_message(response: &Response) -> bool {
    matches!(response, Response::Msg { .. })
}

async fn message(peer: &Peer) -> EntityId {
    let (entity, response) = peer.event().await;
    assert!(is_message(&response), "MSG expected, got {response:?}");
    entity
}

#[actix::test]
async fn a_new_subscriber_takes_over_and_nothing_more_is_delivered_to_the_old_one() {
    let world = World::new();
    let (old, new, sender) = (world.connect(), world.connect(), world.connect());
    let queue = old.create().await;
    new.subscribe(&queue).await;
    assert_eq!(old.event().await, (queue.recipient(), Response::End));
    assert_eq!(sender.ask(queue.sender(), None, send(b"hello")).await, Response::Ok);
    assert_eq!(message(&new).await, queue.recipient());
    assert!(old.take_received().is_empty());
    assert_eq!(old.core.borrow().subscriptions.in_force(), 0);
}

#[actix::test]
async fn a_subscription_is_in_force_before_its_answer_leaves() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    for _ in 0..50 {
        let queue = recipient.create_with(false, crate::protocol::command::QueueRequest::Messaging(None)).await;
        recipient.subscribe(&queue).await;
        assert_eq!(sender.ask(queue.sender(), None, send(b"right after SOK")).await, Response::Ok);
        assert_eq!(message(&recipient).await, queue.recipient());
    }
}

#[actix::test]
async fn messages_come_one_by_one_each_after_the_acknowledgement_before_it() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    let sends: Vec<_> = (0..10u8).map(|n| (queue.sender(), None, send(&[n]))).collect();
    assert_eq!(sender.ask_all(&sends).await, vec![Response::Ok; 10]);
    message(&recipient).await;
    for _ in 0..9 {
        assert!(recipient.take_received().is_empty(), "one unacknowledged message at a time");
        assert!(is_message(&recipient.acknowledge(&queue).await));
    }
    assert_eq!(recipient.acknowledge(&queue).await, Response::Ok);
    assert_eq!(recipient.acknowledge(&queue).await, Response::Err(ErrorType::NoMsg));
}

#[actix::test]
async fn subscribing_again_delivers_the_unacknowledged_message_again() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    sender.ask(queue.sender(), None, send(b"again")).await;
    message(&recipient).await;
    recipient.subscribe(&queue).await;
    message(&recipient).await;
    assert_eq!(recipient.acknowledge(&queue).await, Response::Ok);
}

#[actix::test]
async fn a_sender_subscribed_to_its_own_queue_gets_the_message_before_its_ok() {
    let world = World::new();
    let peer = world.connect();
    let queue = peer.create().await;
    peer.put(&[(queue.sender(), None, send(b"to myself"))]);
    let received = peer.gather(2).await;
    assert!(is_message(received[0].response.as_ref().unwrap()) && received[0].entity_id == queue.recipient());
    assert_eq!(received[1].response, Ok(Response::Ok));
}

#[actix::test]
async fn a_deleted_queue_is_announced_to_its_subscriber_but_not_to_who_deleted_it() {
    let world = World::new();
    let (owner, other) = (world.connect(), world.connect());
    let queue = owner.create().await;
    assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Del).await, Response::Ok);
    assert_eq!(owner.event().await, (queue.recipient(), Response::Deld));
    let own = owner.create().await;
    assert_eq!(owner.ask(own.recipient(), Some(&own.key), Command::Del).await, Response::Ok);
    assert_eq!(owner.ask(own.recipient(), Some(&own.key), Command::Sub).await, Response::Err(ErrorType::Auth));
    assert!(owner.take_received().is_empty());
}

#[actix::test]
async fn deld_is_end_below_version_10() {
    let world = World::new();
    let (owner, other) = (world.connect_as(crate::protocol::Version(9)), world.connect());
    let queue = owner.create().await;
    assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Del).await, Response::Ok);
    assert_eq!(owner.event().await, (queue.recipient(), Response::End));
}

#[actix::test]
async fn get_and_sub_exclude_each_other_on_a_connection() {
    let world = World::new();
    let (recipient, other, sender) = (world.connect(), world.connect(), world.connect());
    let queue = recipient.create().await;
    let prohibited = Response::Err(ErrorType::Cmd(CommandError::Prohibited));
    assert_eq!(recipient.ask(queue.recipient(), Some(&queue.key), Command::Get).await, prohibited);
    assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Get).await, Response::Ok);
    assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Sub).await, prohibited);
    sender.ask(queue.sender(), None, send(b"got")).await;
    message(&recipient).await;
    assert!(is_message(&other.ask(queue.recipient(), Some(&queue.key), Command::Get).await));
    assert_eq!(other.acknowledge(&queue).await, Response::Ok);
}

#[actix::test]
async fn a_connection_that_ended_leaves_no_subscription() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    recipient.put_incoming(Incoming::Closed);
    until("the connection has ended", || recipient.ended()).await;
    assert!(world.services.registry.find(&[queue.id()]).await.unwrap()[0].is_none());
    assert_eq!(sender.ask(queue.sender(), None, send(b"kept")).await, Response::Ok);
    let again = world.connect();
    again.subscribe(&queue).await;
    message(&again).await;
}

#[actix::test]
async fn a_batch_of_subscriptions_is_answered_first_then_each_message_has_a_block() {
    let world = World::new();
    let (owner, sender, recipient) = (world.connect(), world.connect(), world.connect());
    let mut queues = Vec::new();
    for _ in 0..20 {
        let queue = owner.create().await;
        sender.ask(queue.sender(), None, send(b"waiting")).await;
        queues.push(queue);
    }
    let subs: Vec<_> = queues.iter().map(|q| (q.recipient(), Some(&q.key), Command::Sub)).collect();
    recipient.put(&subs);
    until("all blocks", || recipient.payloads_waiting() == 21).await;
    let all = recipient.take_received();
    assert!(all[..20].iter().all(|t| t.response == Ok(Response::Sok(None))));
    assert!(all[20..].iter().all(|t| is_message(t.response.as_ref().unwrap())));
    assert_eq!(all.len(), 40);
}

#[actix::test]
async fn an_end_that_waits_is_void_once_the_queue_is_subscribed_again() {
    let world = World::with(|settings| settings.end_interval = std::time::Duration::from_secs(3600), 128);
    let (first, second) = (world.connect(), world.connect());
    let queue = first.create().await;
    second.subscribe(&queue).await;
    until("the notice waits", || !first.core.borrow().notices.is_empty()).await;
    first.subscribe(&queue).await;
    assert!(first.core.borrow().notices.is_empty());
    until("the other one is told", || !second.core.borrow().notices.is_empty()).await;
}

#[actix::test]
async fn shutdown_finishes_what_is_being_answered() {
    let world = World::new();
    let peer = world.connect();
    let queue = peer.create().await;
    let sends: Vec<_> = (0..50u8).map(|n| (queue.sender(), None, send(&[n]))).collect();
    let ids = peer.put(&sends);
    until("the block is being executed", || peer.wire.read.get() == 2).await;
    peer.core.borrow_mut().close(CloseReason::Shutdown);
    until("the connection has ended", || peer.ended()).await;
    let answers = peer.take_received();
    let answered = ids.iter().filter(|id| answers.iter().any(|t| t.correlation_id == **id)).count();
    assert_eq!(answered, 50);
    assert!(peer.closed());
}

#[actix::test]
async fn who_closes_right_after_asking_is_still_answered() {
    let world = World::new();
    let peer = world.connect();
    let asks = vec![(EntityId::NONE, None, Command::Ping); 50];
    peer.put(&asks);
    peer.put(&asks);
    peer.put_incoming(Incoming::Closed);
    until("the connection has ended", || peer.ended()).await;
    assert_eq!(peer.take_received().len(), 100);
}

#[actix::test]
async fn what_a_sender_sent_right_before_it_left_is_delivered() {
    let world = World::new();
    let recipient = world.connect();
    for _ in 0..20 {
        let (queue, sender) = (recipient.create().await, world.connect());
        sender.put(&[(queue.sender(), None, send(b"and gone"))]);
        until("the block is being executed", || sender.wire.read.get() == 1).await;
        sender.core.borrow_mut().close(CloseReason::Stalled);
        assert_eq!(message(&recipient).await, queue.recipient());
        until("the connection has ended", || sender.ended()).await;
    }
}

#[actix::test]
async fn acknowledging_another_message_is_no_msg() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    sender.ask(queue.sender(), None, send(b"one")).await;
    message(&recipient).await;
    for id in [Bytes::from_static(&[1; 24]), Bytes::from_static(b"short")] {
        let answer = recipient.ask(queue.recipient(), Some(&queue.key), Command::Ack(id)).await;
        assert_eq!(answer, Response::Err(ErrorType::NoMsg));
    }
    assert_eq!(recipient.acknowledge(&queue).await, Response::Ok);
}
