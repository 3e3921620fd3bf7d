//! Connections: versions, inactivity, and how the end of a subscription is told.

use smp_server::client::{ConnectOptions, NewQueue};
use smp_server::protocol::response::Response;
use smp_server::protocol::{Version, VersionRange};

use crate::support::{Store, for_each_store, next_message, until};

for_each_store!(
    the_newest_version_that_both_speak_is_agreed,
    an_inactive_client_is_disconnected_unless_it_is_subscribed,
    ends_of_subscriptions_are_collected_where_an_interval_is_set,
    pings_are_answered_in_each_version,
);

async fn the_newest_version_that_both_speak_is_agreed(store: Store) {
    let relay = store.relay_with(&[("TRANSPORT", "min_smp_version", "8"), ("TRANSPORT", "max_smp_version", "15")]);
    let options = |min, max| ConnectOptions {
        versions: VersionRange::new(Version(min), Version(max)).unwrap(),
        ..ConnectOptions::default()
    };
    for (min, max, agreed) in [(6, 20, 15), (6, 8, 8), (15, 20, 15), (10, 12, 12)] {
        assert_eq!(relay.connect_with(&options(min, max)).await.unwrap().version(), Version(agreed));
    }
    for (min, max) in [(6, 7), (16, 20)] {
        assert!(relay.connect_with(&options(min, max)).await.is_err(), "{min} to {max}");
    }
    let without_alpn = ConnectOptions { alpn: false, ..ConnectOptions::default() };
    assert!(relay.connect_with(&without_alpn).await.is_err(), "only version 6 does without");
}

async fn an_inactive_client_is_disconnected_unless_it_is_subscribed(store: Store) {
    let relay = store.relay_with(&[
        ("INACTIVE_CLIENTS", "disconnect", "on"),
        ("INACTIVE_CLIENTS", "ttl", "2"),
        ("INACTIVE_CLIENTS", "check_interval", "1"),
    ]);
    let (mut idle, mut subscribed) = (relay.connect().await, relay.connect().await);
    let queue = NewQueue::messaging().create(&mut subscribed).await.unwrap();
    idle.ping().await.unwrap();
    idle.closed().await.unwrap();
    let mut sender = relay.connect().await;
    queue.sender().send(&mut sender, b"still there").await.unwrap();
    assert!(next_message(&mut subscribed, &queue, b"still there").await.is_none());
}

async fn ends_of_subscriptions_are_collected_where_an_interval_is_set(store: Store) {
    const QUEUES: usize = 30;
    let relay = store.relay_with(&[("SUBSCRIPTIONS", "end_interval_ms", "300")]);
    let (mut old, mut new) = (relay.connect().await, relay.connect().await);
    let mut queues = Vec::new();
    for _ in 0..QUEUES {
        queues.push(NewQueue::messaging().create(&mut old).await.unwrap());
    }
    for queue in &queues {
        queue.subscribe(&mut new).await.unwrap();
    }
    let (mut ended, mut blocks) = (0, 0);
    until("every END", async || {
        let received = old.receive().await.unwrap();
        assert!(received.iter().all(|t| t.response == Ok(Response::End)));
        blocks += 1;
        ended += received.len();
        ended >= QUEUES
    })
    .await;
    assert_eq!(ended, QUEUES, "each once");
    assert!(blocks < QUEUES / 2, "{blocks} blocks for {QUEUES} ends");
}

async fn pings_are_answered_in_each_version(store: Store) {
    let relay = store.relay();
    for version in 6..=20 {
        let mut client = relay.connect_in(version).await;
        for _ in 0..3 {
            client.ping().await.unwrap();
        }
    }
}
