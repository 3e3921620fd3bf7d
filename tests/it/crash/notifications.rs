//! Notifications that nobody has taken yet: kept when the server stops, and all but those of the last second when it is
//! killed. None is told again once a second has passed.

use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use smp_server::client::{Client, NewQueue, Notifier, NotifierCredentials, Queue};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::message::{MessageBody, NotificationMetadata};

use crate::support::{Installation, Relay, Service, Store, for_each_store, is_told_nothing, queues_with, why};

for_each_store!(lasting:
    notifications_that_wait_are_kept_when_the_server_stops,
    notifications_for_a_service_are_kept_when_the_server_stops,
    kill_9_loses_at_most_the_last_second_of_notifications,
    kill_9_brings_no_notification_back_that_was_told_more_than_a_second_before,
);

#[tokio::test]
async fn a_store_in_memory_keeps_no_notifications() {
    let relay = Store::Memory.relay_with(&[]);
    let notified = Notified::create(&relay).await;
    notified.send(&mut relay.connect().await).await;
    assert_eq!(fs::read_dir(relay.server().installation().log()).unwrap().count(), 0);
    let relay = relay.restart().await;
    assert_eq!(why(notified.notifier.subscribe(&mut relay.connect().await).await), ErrorType::Auth);
    assert_eq!(fs::read_dir(relay.server().installation().log()).unwrap().count(), 0);
}

/// What may be lost or come again, and some time for a busy machine.
const LAST: Duration = Duration::from_secs(2);

/// Between two messages of those that are sent for some time.
const PAUSE: Duration = Duration::from_millis(20);

/// A queue with a notifier, both of which any client may use.
struct Notified {
    queue: Queue,
    notifier: Notifier,
}

impl Notified {
    async fn create(relay: &Relay) -> Self {
        let mut client = relay.connect().await;
        let new = NewQueue::messaging().only_created().with_notifier(NotifierCredentials::generate());
        let queue = new.create(&mut client).await.unwrap();
        let notifier = queue.notifier.clone().unwrap();
        Notified { queue, notifier }
    }

    /// Sends a message that asks for notification: what is told of it.
    async fn send(&self, client: &mut Client) -> NotificationMetadata {
        self.queue.sender().send_notified(client, b"notified").await.unwrap();
        let message = self.queue.get(client).await.unwrap().unwrap();
        self.queue.acknowledge(client, &message.id.0).await.unwrap();
        let MessageBody::Sent { seconds, .. } = message.content else { panic!("{message:?}") };
        NotificationMetadata { message_id: message.id.into(), timestamp: seconds }
    }
}

async fn notifications_that_wait_are_kept_when_the_server_stops(store: Store) {
    let relay = store.relay_with(&[]);
    let mut client = relay.connect().await;
    let mut waiting = Vec::new();
    for count in 1..=5 {
        let notified = Notified::create(&relay).await;
        let mut notifications = Vec::new();
        for _ in 0..count {
            notifications.push(notified.send(&mut client).await);
        }
        waiting.push((notified, notifications));
    }
    // Of these some were told, and one has a notifier no more.
    let mut listener = relay.connect().await;
    waiting[4].0.notifier.subscribe(&mut listener).await.unwrap();
    for expected in std::mem::take(&mut waiting[4].1) {
        assert_eq!(waiting[4].0.notifier.notification(&mut listener).await.unwrap(), expected);
    }
    listener.ping().await.unwrap();
    listener.close();
    let last = waiting[4].0.send(&mut client).await;
    waiting[4].1.push(last);
    waiting[3].0.queue.disable_notifications(&mut client).await.unwrap();

    // Twice, as what was read at the start has to be kept at the next stop.
    let relay = relay.restart().await.restart().await;
    let mut client = relay.connect().await;
    for (at, (notified, notifications)) in waiting.into_iter().enumerate() {
        let subscribed = notified.notifier.subscribe(&mut client).await;
        assert_eq!(subscribed.is_ok(), at != 3);
        for expected in notifications.into_iter().filter(|_| at != 3) {
            assert_eq!(notified.notifier.notification(&mut client).await.unwrap(), expected, "notifier {at}");
        }
    }
    assert!(is_told_nothing(&mut client).await);
    // Nothing is left of what was told.
    assert_eq!(kept(&relay.end(Signal::TERM).await.installation), "");
}

/// What the installation has of notifications.
fn kept(installation: &Installation) -> String {
    fs::read_to_string(installation.log().join("smp-server-ntfs.log")).unwrap_or_default()
}

async fn notifications_for_a_service_are_kept_when_the_server_stops(store: Store) {
    let relay = store.relay_with(&[]);
    let (service, notified) = (Service::notifier(), Notified::create(&relay).await);
    let mut session = service.connect(&relay).await;
    notified.notifier.subscribe(&mut session).await.unwrap();
    session.close();
    let mut client = relay.connect().await;
    let expected = [notified.send(&mut client).await, notified.send(&mut client).await];
    let relay = relay.restart().await;
    let mut session = service.connect(&relay).await;
    let all = queues_with([&notified.notifier.id]);
    assert_eq!(session.subscribe_service(all).await.unwrap(), all);
    for expected in expected {
        assert_eq!(notified.notifier.notification(&mut session).await.unwrap(), expected);
    }
}

/// Sends for this time: each notification with the moment at which it was certain.
async fn send_for(
    notified: &Notified,
    client: &mut Client,
    time: Duration,
) -> VecDeque<(Instant, NotificationMetadata)> {
    let mut sent = VecDeque::new();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let notification = notified.send(client).await;
        sent.push_back((Instant::now(), notification));
        tokio::time::sleep(PAUSE).await;
    }
    sent
}

async fn kill_9_loses_at_most_the_last_second_of_notifications(store: Store) {
    let mut relay = store.relay_with(&[("NOTIFICATIONS", "pending_per_notifier", "100000")]);
    let notified = Notified::create(&relay).await;
    let mut sent = VecDeque::new();
    for _ in 0..2 {
        sent.extend(send_for(&notified, &mut relay.connect().await, LAST + Duration::from_secs(1)).await);
        let killed = Instant::now();
        relay = relay.restart_by(Signal::KILL).await;
        let mut listener = relay.connect().await;
        notified.notifier.subscribe(&mut listener).await.unwrap();
        // One more, so that it is known when all have come.
        let last = notified.send(&mut relay.connect().await).await;
        let mut came = Vec::new();
        while came.last() != Some(&last) {
            came.push(notified.notifier.notification(&mut listener).await.unwrap());
        }
        came.pop();
        let (certain, _): (Vec<_>, Vec<_>) = sent.iter().partition(|(at, _)| *at + LAST < killed);
        assert!(came.len() >= certain.len() && !certain.is_empty(), "{} of {} came", came.len(), certain.len());
        let expected: Vec<_> = sent.drain(..).map(|(_, notification)| notification).take(came.len()).collect();
        assert_eq!(came, expected, "in order, each once, and none between them is missing");
        listener.ping().await.unwrap();
        listener.close();
    }
}

async fn kill_9_brings_no_notification_back_that_was_told_more_than_a_second_before(store: Store) {
    let relay = store.relay_with(&[]);
    let notified = Notified::create(&relay).await;
    let mut listener = relay.connect().await;
    notified.notifier.subscribe(&mut listener).await.unwrap();
    let mut client = relay.connect().await;
    let early = [notified.send(&mut client).await, notified.send(&mut client).await];
    for expected in &early {
        assert_eq!(notified.notifier.notification(&mut listener).await.unwrap(), *expected);
    }
    // Traffic for so long that what was told before must be forgotten; some of it was told a moment ago.
    let sent = send_for(&notified, &mut client, LAST + Duration::from_millis(500)).await;
    for (_, expected) in &sent {
        assert_eq!(notified.notifier.notification(&mut listener).await.unwrap(), *expected);
    }
    let killed = Instant::now();
    let relay = relay.restart_by(Signal::KILL).await;
    let mut listener = relay.connect().await;
    notified.notifier.subscribe(&mut listener).await.unwrap();
    let last = notified.send(&mut relay.connect().await).await;
    let mut again = 0;
    loop {
        let came = notified.notifier.notification(&mut listener).await.unwrap();
        if came == last {
            break;
        }
        let told = sent.iter().find(|(_, notification)| *notification == came).map(|(at, _)| *at);
        let told = told.expect("none of those that were told long before");
        assert!(told + LAST >= killed, "told {:?} before the server was killed", killed - told);
        again += 1;
    }
    println!("{again} of {} notifications came again", sent.len());
}
