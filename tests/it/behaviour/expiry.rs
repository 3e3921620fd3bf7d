//! Messages that nobody reads in time.

use std::time::{Duration, Instant};

use smp_server::client::NewQueue;

use crate::support::{Store, for_each_store, until};

for_each_store!(
    old_messages_are_deleted_by_interval,
    old_messages_of_a_queue_are_deleted_when_one_is_sent_to_it;
    lasting: old_messages_are_deleted_on_start
);

async fn old_messages_are_deleted_by_interval(store: Store) {
    let relay = store.relay_with(&[
        ("STORE_LOG", "expire_messages_seconds", "1"),
        ("STORE_LOG", "expire_check_seconds", "1"),
        ("STORE_LOG", "expire_messages_on_send", "off"),
    ]);
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
    queue.sender().send(&mut client, b"old").await.unwrap();
    until("the message to expire", async || queue.info(&mut client).await.unwrap().size == 0).await;
    assert!(queue.get(&mut client).await.unwrap().is_none());
    queue.sender().send(&mut client, b"the queue lives on").await.unwrap();
}

async fn old_messages_of_a_queue_are_deleted_when_one_is_sent_to_it(store: Store) {
    let relay = store.relay_with(&[
        ("STORE_LOG", "expire_messages_seconds", "1"),
        ("STORE_LOG", "expire_check_seconds", "7200"),
        ("STORE_LOG", "expire_messages_on_send", "on"),
    ]);
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
    let mut sent = 0;
    until("the first messages to expire", async || {
        // Fewer than the quota in the second that it takes.
        tokio::time::sleep(Duration::from_millis(50)).await;
        queue.sender().send(&mut client, b"message").await.unwrap();
        sent += 1;
        queue.info(&mut client).await.unwrap().size < sent
    })
    .await;
}

/// How long a message may take to be old, and gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Only what is kept can be old when the server starts.
async fn old_messages_are_deleted_on_start(store: Store) {
    let mut relay = store.relay_with(&[
        ("STORE_LOG", "expire_messages_seconds", "1"),
        ("STORE_LOG", "expire_check_seconds", "7200"),
        ("STORE_LOG", "expire_messages_on_start", "on"),
        ("STORE_LOG", "expire_messages_on_send", "off"),
    ]);
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
    queue.sender().send(&mut client, b"old").await.unwrap();
    // A start may come before the message is old enough; nothing else looks for it.
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        relay = relay.restart().await;
        let mut client = relay.connect().await;
        let mut size = queue.info(&mut client).await.unwrap().size;
        if size > 0 {
            // Expiry goes on after the server listens.
            client.ping().await.unwrap();
            size = queue.info(&mut client).await.unwrap().size;
        }
        if size == 0 {
            return;
        }
    }
    panic!("the message is still there");
}
