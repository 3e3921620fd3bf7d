use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::World;
use super::peer::{Queue, send, settle, signing_key, until};
use crate::actors::connection::core::{CloseReason, Patience};
use crate::actors::connection::subscription::Delivered;
use crate::actors::connection::{ConnectionEvent, Delivery, MAILBOX};
use crate::actors::mailbox::SendError;
use crate::protocol::command::{Command, LinkData, QueueRequest};
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, MessageId, QueueId};

/// As many queues of one recipient, each with a message waiting.
async fn queues(world: &World, count: usize) -> Vec<Queue> {
    let (owner, sender) = (world.connect(), world.connect());
    let mut queues = Vec::new();
    for _ in 0..count {
        let queue = owner.create().await;
        assert_eq!(sender.ask(queue.sender(), None, send(&[7; 16_000])).await, Response::Ok);
        queues.push(queue);
    }
    queues
}

#[actix::test]
async fn a_client_that_never_reads_costs_at_most_its_blocks_and_gets_everything_once_it_reads() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let queues = queues(&world, 30).await;
    let recipient = world.connect();
    recipient.block(true);
    let subs: Vec<_> = queues.iter().map(|q| (q.recipient(), Some(&q.key), Command::Sub)).collect();
    recipient.put(&subs);
    until("the subscriptions are made", || recipient.core.borrow().subscriptions.in_force() == 30).await;
    settle().await;
    // Answers to the block itself are always taken, so one payload more than the limit may wait.
    assert!(recipient.core.borrow().outbound.len() <= 5, "{}", recipient.core.borrow().outbound.len());
    recipient.block(false);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..30 {
        let (entity, response) = recipient.event().await;
        assert!(matches!(response, Response::Msg { .. }));
        assert!(seen.insert(entity), "each message once");
    }
}

#[actix::test]
async fn messages_sent_to_a_client_that_does_not_read_are_fetched_when_it_does() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (recipient, sender) = (world.connect(), world.connect());
    let mut queues = Vec::new();
    for _ in 0..30 {
        queues.push(recipient.create().await);
    }
    recipient.block(true);
    for queue in &queues {
        assert_eq!(sender.ask(queue.sender(), None, send(b"pushed")).await, Response::Ok);
    }
    until("all were offered", || recipient.handle.events.gate().depth() == 0).await;
    assert!(recipient.core.borrow().outbound.len() <= 4);
    recipient.block(false);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..30 {
        assert!(seen.insert(recipient.event().await.0), "each message once");
    }
    assert!(world.services.counters.outbound_full.load(Ordering::Relaxed) > 0);
}

#[actix::test]
async fn a_client_that_only_sends_is_not_read_once_its_answers_have_no_room() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let peer = world.connect();
    peer.block(true);
    for _ in 0..100 {
        peer.put(&[(EntityId::NONE, None, Command::Ping)]);
    }
    until("it stopped reading", || peer.core.borrow().outbound.room() == 0).await;
    settle().await;
    // Four wait, one is being written, one may be in execution.
    assert!(peer.wire.read.get() <= 6, "{} blocks were read", peer.wire.read.get());
    peer.block(false);
    until("all answers", || {
        peer.receive();
        peer.wire.read.get() == 100
    })
    .await;
}

#[actix::test]
async fn large_answers_of_one_block_wait_for_room() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let queues = queues(&world, 40).await;
    let recipient = world.connect();
    recipient.block(true);
    let gets: Vec<_> = queues.iter().map(|q| (q.recipient(), Some(&q.key), Command::Get)).collect();
    let ids = recipient.put(&gets);
    until("no more room", || recipient.core.borrow().outbound.room() == 0).await;
    settle().await;
    assert!(recipient.core.borrow().outbound.len() <= 4 + 8, "{}", recipient.core.borrow().outbound.len());
    recipient.block(false);
    let mut received = Vec::new();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while received.len() < ids.len() && std::time::Instant::now() < deadline {
        received.extend(recipient.take_received());
        settle().await;
    }
    let order: Vec<_> = received.iter().map(|t| t.correlation_id.clone()).collect();
    assert_eq!(order, ids, "answers keep the order of the commands");
    assert!(received.iter().all(|t| matches!(t.response, Ok(Response::Msg { .. }))));
}

#[actix::test]
async fn a_full_mailbox_refuses_through_each_of_a_hundred_handles() {
    let world = World::new();
    let peer = world.connect();
    let handles: Vec<_> = (0..100).map(|_| Arc::clone(&peer.handle)).collect();
    let delivery = || {
        let message = Delivered { id: MessageId([1; 24]), sequence: 1 };
        ConnectionEvent::Deliver(Delivery { queue: QueueId([1; 24]), message, body: Bytes::new() })
    };
    let outcomes: Vec<_> = (0..1000).map(|n| handles[n % 100].events.try_post(delivery())).collect();
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), MAILBOX);
    assert_eq!(outcomes.iter().filter(|o| **o == Err(SendError::Full)).count(), 1000 - MAILBOX);
    until("it takes its mail", || peer.handle.events.gate().depth() == 0).await;
}

#[actix::test]
async fn ends_and_deletions_are_coalesced_into_one_set() {
    let interval = Duration::from_millis(1);
    let world = World::with(
        |settings| {
            settings.client_blocks = 1;
            settings.end_interval = interval;
        },
        128,
    );
    let (first, second) = (world.connect(), world.connect());
    let mut queues = Vec::new();
    for _ in 0..50 {
        queues.push(first.create().await);
    }
    first.block(true);
    first.put(&[(EntityId::NONE, None, Command::Ping), (EntityId::NONE, None, Command::Ping)]);
    for queue in &queues {
        second.subscribe(queue).await;
    }
    until("all were noted", || first.core.borrow().subscriptions.in_force() == 0).await;
    assert!(first.core.borrow().outbound.len() <= 2);
    first.block(false);
    let mut ended = std::collections::HashSet::new();
    while ended.len() < 50 {
        let (entity, response) = first.event().await;
        assert_eq!(response, Response::End);
        assert!(ended.insert(entity), "one END a queue");
    }
}

#[actix::test]
async fn a_stalled_client_is_closed_and_one_that_takes_a_byte_now_and_then_is_not() {
    let world = World::new();
    let peer = world.connect();
    settle().await;
    tokio::time::pause();
    let patience = Patience { inactive: None, stalled: Duration::from_secs(60), check_interval: None };
    peer.block(true);
    peer.put(&[(EntityId::NONE, None, Command::Ping)]);
    settle().await;
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(59)).await;
        peer.core.borrow_mut().sweep(&patience);
        settle().await;
        assert!(!peer.ended());
        peer.block(false);
        settle().await;
        peer.block(true);
        peer.put(&[(EntityId::NONE, None, Command::Ping)]);
        settle().await;
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    peer.core.borrow_mut().sweep(&patience);
    for _ in 0..100 {
        settle().await;
    }
    assert!(peer.ended());
    assert_eq!(world.services.counters.stalled.load(Ordering::Relaxed), 1);
}

#[actix::test]
async fn a_client_that_does_not_finish_a_block_is_closed() {
    let world = World::new();
    let peer = world.connect();
    settle().await;
    tokio::time::pause();
    let patience = Patience { inactive: None, stalled: Duration::from_secs(60), check_interval: None };
    for finishes in [true, false] {
        peer.wire.partial.set(true);
        peer.wire.wake();
        settle().await;
        tokio::time::advance(Duration::from_secs(59)).await;
        if finishes {
            peer.wire.partial.set(false);
            peer.put(&[(EntityId::NONE, None, Command::Ping)]);
            settle().await;
            tokio::time::advance(Duration::from_secs(59)).await;
        } else {
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        peer.core.borrow_mut().sweep(&patience);
        assert_eq!(peer.core.borrow().closing(), if finishes { None } else { Some(CloseReason::Stalled) });
    }
}

#[actix::test]
async fn a_block_of_acknowledgements_is_not_answered_with_more_messages_than_there_is_room_for() {
    let world = World::with(|settings| settings.client_blocks = 4, 128);
    let (recipient, sender) = (world.connect(), world.connect());
    let mut queues = Vec::new();
    for _ in 0..40 {
        let queue = recipient.create().await;
        for _ in 0..2 {
            assert_eq!(sender.ask(queue.sender(), None, send(&[7; 16_000])).await, Response::Ok);
        }
        recipient.event().await;
        queues.push(queue);
    }
    recipient.block(true);
    let acks: Vec<_> = queues.iter().map(|q| (q.recipient(), Some(&q.key), Command::Ack(Bytes::new()))).collect();
    recipient.put(&acks);
    until("they are answered", || recipient.core.borrow().outbound.room() == 0).await;
    settle().await;
    // At most four messages in the answers, the other answers in one payload.
    assert!(recipient.core.borrow().outbound.len() <= 4 + 2, "{}", recipient.core.borrow().outbound.len());
    recipient.block(false);
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 40 {
        for t in recipient.gather(1).await {
            if matches!(t.response, Ok(Response::Msg { .. })) {
                assert!(seen.insert(t.entity_id), "each second message once");
            }
        }
    }
}

#[actix::test]
async fn a_command_that_waited_behind_a_slow_reader_is_judged_by_the_queue_as_it_is_then() {
    let world = World::with(|settings| settings.client_blocks = 1, 128);
    let (owner, attacker) = (world.connect(), world.connect());
    let contact = owner.create_with(false, QueueRequest::Contact(None)).await;
    let link_id = EntityId::from(QueueId([6; 24]));
    let data = LinkData { fixed: Bytes::from_static(b"fixed"), user: Bytes::from_static(b"user") };
    let set = Command::Lset(link_id.clone(), data);
    assert_eq!(owner.ask(contact.recipient(), Some(&contact.key), set).await, Response::Ok);
    let queue = owner.create().await;
    attacker.block(true);
    let mut asks = vec![(link_id, None, Command::Lget); 40];
    asks.push((queue.sender(), None, send(b"while it was not secured")));
    let ids = attacker.put(&asks);
    until("the answers wait", || attacker.core.borrow().outbound.room() == 0).await;
    for _ in 0..100 {
        settle().await;
    }
    let key = signing_key().public_key().unwrap();
    assert_eq!(owner.ask(queue.recipient(), Some(&queue.key), Command::Key(key)).await, Response::Ok);
    attacker.block(false);
    let answers = attacker.gather(41).await;
    let sent = answers.iter().find(|t| Some(&t.correlation_id) == ids.last()).unwrap();
    assert_eq!(sent.response, Ok(Response::Err(ErrorType::Auth)));
}

#[actix::test]
async fn an_inactive_client_is_closed_unless_it_has_a_subscription() {
    let world = World::new();
    let (idle, subscribed) = (world.connect(), world.connect());
    let _queue = subscribed.create().await;
    settle().await;
    tokio::time::pause();
    let patience =
        Patience { inactive: Some(Duration::from_secs(3600)), stalled: Duration::from_secs(60), check_interval: None };
    tokio::time::advance(Duration::from_secs(3599)).await;
    idle.core.borrow_mut().sweep(&patience);
    assert_eq!(idle.core.borrow().closing(), None);
    tokio::time::advance(Duration::from_secs(2)).await;
    for peer in [&idle, &subscribed] {
        peer.core.borrow_mut().sweep(&patience);
    }
    assert_eq!(idle.core.borrow().closing(), Some(CloseReason::Inactive));
    assert_eq!(subscribed.core.borrow().closing(), None);
    for _ in 0..100 {
        settle().await;
    }
    assert!(idle.ended() && !subscribed.ended());
}
