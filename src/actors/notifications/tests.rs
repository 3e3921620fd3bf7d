//! The pure core, with times that are handed in.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::core::{Core, Subscription};
use super::pending::Limits;
use crate::actors::connection::ConnectionEvent;
use crate::actors::mailbox::probe;
use crate::actors::registry::{ConnectionHandle, ConnectionId, ConnectionRef};
use crate::protocol::crypto::Nonce;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::Timestamp;
use crate::store::files::notification::Notification;

const WINDOW: Duration = Duration::from_millis(100);
const SERVICE: ServiceId = ServiceId([9; 24]);
const ALL: usize = 1_000_000;

fn connection(id: u64) -> ConnectionRef {
    let (events, _) = probe::start(16, |_: &ConnectionEvent| ());
    Arc::new(ConnectionHandle { id: ConnectionId(id), events })
}

fn id(n: usize) -> [u8; 24] {
    let mut id = [0; 24];
    id[..8].copy_from_slice(&(n as u64).to_be_bytes());
    id
}

fn notifier(n: usize) -> QueueId {
    QueueId(id(n))
}

/// Message `message` for a notifier, sent at that second.
fn notification(n: usize, message: usize) -> Notification {
    Notification {
        notifier: notifier(n),
        message: MessageId(id(message)),
        timestamp: Timestamp { seconds: message as i64, nanoseconds: 0 },
        nonce: Nonce([0; 24]),
        metadata: Bytes::from_static(b"metadata"),
    }
}

fn core(notifier: usize, total: usize) -> Core {
    Core::new(Limits { notifier, total }, WINDOW)
}

fn subscribe(core: &mut Core, connection: &ConnectionRef, notifiers: std::ops::Range<usize>, now: Instant) {
    let all: Vec<_> = notifiers.map(|n| Subscription { notifier: notifier(n), associated: false }).collect();
    core.subscribe(connection, None, &all, now);
}

fn messages(taken: &[Notification]) -> Vec<usize> {
    taken.iter().map(|n| n.timestamp.seconds as usize).collect()
}

/// Ends all windows that have ended by `now`: who is told.
fn told(core: &mut Core, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| core.end_window(now)).map(|connection| connection.id.0).collect()
}

#[actix::test]
async fn nothing_is_to_be_done_while_nothing_waits() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let one = connection(1);
    subscribe(&mut core, &one, 0..10_000, now);
    assert_eq!((core.next_window(), core.pending().has_unwritten()), (None, false));
    assert!(told(&mut core, now + WINDOW * 1000).is_empty());
    assert!(core.take(one.id, ALL).is_empty());
    assert_eq!(core.totals.windows, 0);
}

#[actix::test]
async fn what_comes_within_a_window_goes_together_and_in_order() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let one = connection(1);
    subscribe(&mut core, &one, 0..2, now);
    for message in 0..6 {
        core.notify(notification(message % 2, message), None, now + WINDOW / 10 * message as u32);
    }
    assert_eq!(core.next_window(), Some(now + WINDOW), "that of the first");
    assert!(told(&mut core, now + WINDOW - Duration::from_millis(1)).is_empty());
    assert_eq!(told(&mut core, now + WINDOW), [1]);
    assert_eq!(core.next_window(), None, "it is told once");
    assert_eq!(messages(&core.take(one.id, ALL)), [0, 2, 4, 1, 3, 5]);
    assert!(core.take(one.id, ALL).is_empty());
    assert_eq!((core.totals.windows, core.totals.delivered), (1, 6));
    core.notify(notification(0, 7), None, now + WINDOW * 2);
    assert_eq!(core.next_window(), Some(now + WINDOW * 3), "the next one opens another window");
}

#[actix::test]
async fn delivered_notifications_leave_no_key_behind() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let one = connection(1);
    subscribe(&mut core, &one, 0..20_000, now);
    (0..20_000).for_each(|n| core.notify(notification(n, n), None, now));
    let mut taken = 0;
    loop {
        let part = core.take(one.id, 300).len();
        taken += part;
        if part == 0 {
            break;
        }
    }
    assert_eq!((taken, core.totals.delivered), (20_000, 20_000));
    assert_eq!((core.pending().len(), core.pending().notifiers(), core.in_flight()), (0, 0, 0));
    assert!(!core.pending().has_unwritten(), "what was delivered at once is never written");
    assert_eq!(core.next_window(), None);
}

#[actix::test]
async fn who_does_not_take_keeps_the_newest_of_its_own_and_delays_nobody() {
    let (mut core, now) = (core(20, ALL), Instant::now());
    let (silent, other) = (connection(1), connection(2));
    subscribe(&mut core, &silent, 0..1, now);
    subscribe(&mut core, &other, 1..2, now);
    (0..100).for_each(|message| core.notify(notification(0, message), None, now));
    core.notify(notification(1, 100), None, now);
    assert_eq!(core.totals.dropped.notifier, 80);
    assert_eq!(told(&mut core, now + WINDOW), [1, 2]);
    assert_eq!(messages(&core.take(other.id, ALL)), [100]);
    assert_eq!(messages(&core.take(silent.id, ALL)), (80..100).collect::<Vec<_>>());
}

#[actix::test]
async fn of_all_that_wait_the_oldest_is_dropped() {
    let (mut core, now) = (core(100, 10), Instant::now());
    let one = connection(1);
    (0..30).for_each(|message| core.notify(notification(message, message), None, now));
    assert_eq!((core.pending().len(), core.pending().notifiers(), core.totals.dropped.total), (10, 10, 20));
    subscribe(&mut core, &one, 0..30, now);
    assert_eq!(messages(&core.take(one.id, ALL)), (20..30).collect::<Vec<_>>());
}

#[actix::test]
async fn what_was_taken_and_is_dropped_meanwhile_was_delivered_if_it_was_sent() {
    for sent in [true, false] {
        let (mut core, now) = (core(2, ALL), Instant::now());
        let one = connection(1);
        subscribe(&mut core, &one, 0..1, now);
        (0..2).for_each(|message| core.notify(notification(0, message), None, now));
        assert_eq!(messages(&core.take(one.id, ALL)), [0, 1]);
        (2..4).for_each(|message| core.notify(notification(0, message), None, now));
        assert_eq!(core.totals.dropped.notifier, 0, "those are on their way");
        if sent {
            core.confirm(one.id);
        }
        core.close(one.id, None, None);
        assert_eq!((core.totals.delivered, core.totals.dropped.notifier), if sent { (2, 0) } else { (0, 2) });
        assert_eq!(core.pending().len(), 2);
    }
}

#[actix::test]
async fn what_a_connection_took_and_was_not_sent_goes_to_the_next_one_in_order() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let (one, next) = (connection(1), connection(2));
    subscribe(&mut core, &one, 0..1, now);
    (0..6).for_each(|message| core.notify(notification(0, message), None, now));
    assert_eq!(messages(&core.take(one.id, 2)), [0, 1]);
    assert_eq!(messages(&core.take(one.id, 2)), [2, 3], "the first two were sent");
    core.close(one.id, Some(&[notifier(0)]), None);
    assert_eq!((core.subscriptions(), core.next_window()), (0, None));
    subscribe(&mut core, &next, 0..1, now);
    assert_eq!(messages(&core.take(next.id, ALL)), [2, 3, 4, 5]);
}

#[actix::test]
async fn who_subscribes_takes_over_with_what_waits_and_the_late_end_of_the_other_changes_nothing() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let (old, new) = (connection(1), connection(2));
    subscribe(&mut core, &old, 0..1, now);
    core.notify(notification(0, 0), None, now);
    let again = [Subscription { notifier: notifier(0), associated: false }];
    let (subscribed, _) = core.subscribe(&new, None, &again, now);
    assert_eq!(subscribed[0].displaced.as_ref().map(|before| before.id), Some(old.id));
    assert_eq!(core.are_subscribed(old.id, &[notifier(0)]), [false]);
    assert!(core.take(old.id, ALL).is_empty());
    core.close(old.id, Some(&[notifier(0)]), None);
    assert_eq!(core.are_subscribed(new.id, &[notifier(0)]), [true]);
    assert_eq!(messages(&core.take(new.id, ALL)), [0]);
}

#[actix::test]
async fn what_waits_for_a_removed_notifier_is_dropped_and_its_subscriber_named() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let one = connection(1);
    subscribe(&mut core, &one, 0..2, now);
    (0..4).for_each(|message| core.notify(notification(message % 2, message), None, now));
    let gone = core.remove(&[(notifier(0), None), (notifier(7), None)]);
    assert_eq!(gone.iter().map(|(n, connection)| (*n, connection.id.0)).collect::<Vec<_>>(), [(notifier(0), 1)]);
    assert_eq!(core.totals.removed, 2);
    assert_eq!(messages(&core.take(one.id, ALL)), [1, 3]);
}

#[actix::test]
async fn old_notifications_expire_and_younger_ones_stay() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    (0..10).for_each(|message| core.notify(notification(message % 3, message), None, now));
    let before = Timestamp { seconds: 6, nanoseconds: 0 };
    assert_eq!((core.expire(before), core.expire(before)), (6, 0));
    assert_eq!((core.pending().len(), core.totals.expired), (4, 6));
}

#[actix::test]
async fn a_service_gets_what_waits_for_its_notifiers_and_its_next_connection_the_rest() {
    let (mut core, now) = (core(100, ALL), Instant::now());
    let (old, new, own) = (connection(1), connection(2), connection(3));
    (0..4).for_each(|message| core.notify(notification(message, message), Some(SERVICE), now));
    subscribe(&mut core, &own, 3..4, now);
    assert!(core.subscribe_service(&old, SERVICE, now).displaced.is_none());
    assert_eq!(messages(&core.take(old.id, 1)), [0]);
    let displaced = core.subscribe_service(&new, SERVICE, now).displaced;
    assert_eq!(displaced.map(|before| before.connection.id), Some(old.id));
    assert!(core.take(old.id, ALL).is_empty());
    assert_eq!(messages(&core.take(new.id, ALL)), [0, 1, 2], "not what is subscribed by its own");
    core.close(old.id, Some(&[]), Some(SERVICE));
    core.notify(notification(1, 9), Some(SERVICE), now);
    assert_eq!(messages(&core.take(new.id, ALL)), [9]);
}
