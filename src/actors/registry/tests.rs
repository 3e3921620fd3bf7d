use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::actors::mailbox::{MailboxMetrics, SendError, probe};

fn connection(id: u64) -> ConnectionRef {
    let (events, _) = probe::start(16, |_: &ConnectionEvent| ());
    Arc::new(ConnectionHandle { id: ConnectionId(id), events })
}

fn queue(n: u8) -> QueueId {
    QueueId([n; 24])
}

fn ids(displaced: &[Displaced]) -> Vec<(u8, u64)> {
    displaced.iter().map(|d| (d.queue.0[0], d.connection.id.0)).collect()
}

#[actix::test]
async fn a_new_subscriber_takes_over_and_the_old_one_is_named_with_its_epoch() {
    let mut subscriptions = Subscriptions::default();
    let (old, new) = (connection(1), connection(2));
    let (first, none) = subscriptions.subscribe(&old, &[queue(1), queue(2)]);
    assert!(none.is_empty());
    let (second, displaced) = subscriptions.subscribe(&new, &[queue(2), queue(3)]);
    assert!(second > first);
    assert_eq!(ids(&displaced), [(2, 1)]);
    assert_eq!(displaced[0].epoch, first);
    let found = subscriptions.find(&[queue(1), queue(2), queue(3), queue(4)]);
    let found: Vec<_> = found.iter().map(|c| c.as_ref().map(|c| c.id.0)).collect();
    assert_eq!(found, [Some(1), Some(2), Some(2), None]);
}

#[actix::test]
async fn subscribing_again_displaces_nobody() {
    let mut subscriptions = Subscriptions::default();
    let one = connection(1);
    subscriptions.subscribe(&one, &[queue(1)]);
    let (_, displaced) = subscriptions.subscribe(&one, &[queue(1)]);
    assert!(displaced.is_empty());
    assert_eq!(subscriptions.len(), 1);
}

#[actix::test]
async fn a_connection_that_ends_late_does_not_evict_its_successor() {
    let mut subscriptions = Subscriptions::default();
    let (old, new) = (connection(1), connection(2));
    subscriptions.subscribe(&old, &[queue(1), queue(2)]);
    subscriptions.subscribe(&new, &[queue(1)]);
    subscriptions.unsubscribe(old.id, &[queue(1), queue(2)]);
    assert_eq!(subscriptions.find(&[queue(1)])[0].as_ref().map(|c| c.id), Some(new.id));
    assert_eq!(subscriptions.len(), 1);
}

#[actix::test]
async fn removed_queues_name_their_subscribers_once() {
    let mut subscriptions = Subscriptions::default();
    subscriptions.subscribe(&connection(1), &[queue(1)]);
    assert_eq!(ids(&subscriptions.remove(&[queue(1), queue(2)])), [(1, 1)]);
    assert!(subscriptions.remove(&[queue(1)]).is_empty());
    assert!(subscriptions.is_empty());
}

#[actix::test]
async fn shards_together_answer_in_the_order_asked() {
    let arbiter = actix_rt::Arbiter::current();
    let (metrics, alarm) = (Arc::new(MailboxMetrics::default()), Arc::default());
    let registry =
        RegistryHandle::new((0..3).map(|_| Shard::start(&arbiter, 16, Arc::clone(&metrics), &alarm)).collect());
    let queues: Vec<_> = (0..100).map(queue).collect();
    let (one, two) = (connection(1), connection(2));
    let (epochs, displaced) = registry.subscribe(&one, &queues).await.unwrap();
    assert_eq!((epochs.len(), displaced.len()), (100, 0));
    let (_, displaced) = registry.subscribe(&two, &queues[..50]).await.unwrap();
    assert_eq!(displaced.len(), 50);
    for d in &displaced {
        assert_eq!((d.connection.id, d.epoch), (one.id, epochs[usize::from(d.queue.0[0])]));
    }
    let found = registry.find(&queues).await.unwrap();
    assert!(found[..50].iter().all(|c| c.as_ref().is_some_and(|c| c.id == two.id)));
    assert!(found[50..].iter().all(|c| c.as_ref().is_some_and(|c| c.id == one.id)));
    registry.unsubscribe(one.id, &queues).await.unwrap();
    assert_eq!(registry.remove(&queues).await.unwrap().len(), 50);
}

#[actix::test]
async fn a_full_shard_makes_a_hundred_askers_wait_and_refuses_those_who_do_not() {
    let gate_holder = probe::start(2, |_: &FindSubscribers| Vec::new());
    let (find, _inbox) = gate_holder;
    let handles: Vec<_> = (0..100).map(|_| find.clone()).collect();
    let accepted = handles.iter().filter(|h| h.try_post(FindSubscribers { queues: vec![] }).is_ok()).count();
    assert_eq!(accepted, 2);
    assert_eq!(handles[7].try_post(FindSubscribers { queues: vec![] }), Err(SendError::Full));
    let mut waiting = std::pin::pin!(find.send(FindSubscribers { queues: vec![] }));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    assert_eq!(handles[0].gate().metrics().waited.load(Ordering::Relaxed), 1);
    assert!(waiting.await.is_ok(), "a waiting asker is answered once there is a place");
}
