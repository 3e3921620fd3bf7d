//! What is there after the server has ended, and what must not be.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;
use smp_server::client::{Client, NewQueue, Queue, read_link};
use smp_server::protocol::error::{BlockingInfo, BlockingReason, ErrorType};
use smp_server::store::Op;

use crate::support::{Relay, Store, contact_id, drain, for_each_store, link_data, secured, until, why};

for_each_store!(lasting:
    queues_and_messages_are_kept_when_the_server_stops,
    queues_and_messages_are_kept_when_the_server_is_killed,
    whatever_was_answered_survives_a_stop_amid_traffic,
    whatever_was_answered_survives_a_kill_amid_traffic,
    a_blocked_queue_can_only_be_suspended_and_deleted,
);

async fn queues_and_messages_are_kept_when_the_server_stops(store: Store) {
    everything_is_kept(store, Signal::TERM).await;
}

async fn queues_and_messages_are_kept_when_the_server_is_killed(store: Store) {
    everything_is_kept(store, Signal::KILL).await;
}

async fn everything_is_kept(store: Store, signal: Signal) {
    let relay = store.relay_with(&[]);
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    for body in [b"".as_slice(), b"one", b"two"] {
        sender.send(&mut client, body).await.unwrap();
    }
    queue.acknowledge(&mut client, &[]).await.unwrap();
    let link_id = contact_id();
    let new = NewQueue::contact().with_contact_link(link_id.clone(), link_data("kept"));
    let contact = new.create(&mut client).await.unwrap();
    contact.suspend(&mut client).await.unwrap();
    let deleted = NewQueue::messaging().create(&mut client).await.unwrap();
    deleted.delete(&mut client).await.unwrap();

    let relay = relay.restart_by(signal).await;
    let mut client = relay.connect().await;
    assert_eq!(drain(&mut client, &queue).await, [b"one", b"two"]);
    assert_eq!(why(queue.sender().send(&mut client, b"unsigned").await), ErrorType::Auth);
    sender.send(&mut client, b"three").await.unwrap();
    assert_eq!(read_link(&mut client, &link_id).await.unwrap().1, link_data("kept"));
    assert_eq!(why(contact.sender().send(&mut client, b"suspended").await), ErrorType::Auth);
    assert_eq!(why(deleted.subscribe(&mut client).await), ErrorType::Auth);
}

async fn whatever_was_answered_survives_a_stop_amid_traffic(store: Store) {
    what_was_answered_is_there_after(store, Signal::TERM).await;
}

async fn whatever_was_answered_survives_a_kill_amid_traffic(store: Store) {
    what_was_answered_is_there_after(store, Signal::KILL).await;
}

/// Sends messages with growing numbers until the server is gone; answers which were answered `OK`, which were not.
async fn send_until_the_end(mut client: Client, queue: Queue, progress: Arc<AtomicU64>) -> (Vec<u64>, Vec<u64>) {
    let (mut answered, mut number) = (Vec::new(), 0_u64);
    loop {
        let numbers: Vec<u64> = (number..number + 5).collect();
        number += 5;
        let send = |n: &u64| queue.sender().message(Default::default(), &n.to_be_bytes());
        let Ok(ids) = client.submit(&numbers.iter().map(send).collect::<Vec<_>>()).await else {
            return (answered, numbers);
        };
        for (at, id) in ids.iter().enumerate() {
            if client.answer(id).await.is_err() {
                return (answered, numbers[at..].to_vec());
            }
            answered.push(numbers[at]);
            progress.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn what_was_answered_is_there_after(store: Store, signal: Signal) {
    const SENDERS: usize = 4;
    let relay = store.relay_with(&[("STORE_LOG", "message_queue_quota", "1000000")]);
    let progress = Arc::new(AtomicU64::new(0));
    let mut queues = Vec::new();
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        let mut client = relay.connect().await;
        let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
        senders.push(tokio::spawn(send_until_the_end(client, queue.clone(), Arc::clone(&progress))));
        queues.push(queue);
    }
    until("traffic", async || progress.load(Ordering::Relaxed) > 100).await;
    let relay = relay.restart_by(signal).await;
    let mut client = relay.connect().await;
    for (queue, sender) in queues.iter().zip(senders) {
        let (answered, unanswered) = sender.await.unwrap();
        let stored: Vec<u64> = drain(&mut client, queue)
            .await
            .iter()
            .map(|body| u64::from_be_bytes(body.as_slice().try_into().unwrap()))
            .collect();
        let (known, rest) = stored.split_at(answered.len().min(stored.len()));
        assert_eq!(known, answered, "what was answered, each once and in order");
        assert!(unanswered.starts_with(rest), "{rest:?} was stored, {unanswered:?} was sent and not answered");
    }
}

#[tokio::test]
async fn a_store_in_memory_keeps_nothing() {
    let relay = Store::Memory.relay_with(&[]);
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    sender.send(&mut client, b"lost").await.unwrap();
    let relay = relay.restart().await;
    let mut client = relay.connect().await;
    assert_eq!(why(queue.subscribe(&mut client).await), ErrorType::Auth);
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files on disk that the process has open.
fn open_files(process_id: u32) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{process_id}/fd")).unwrap().map(|entry| entry.unwrap().path());
    descriptors.filter_map(|path| fs::read_link(path).ok()).filter(|path| is_on_disk(path)).collect()
}

fn is_on_disk(path: &Path) -> bool {
    path.is_absolute() && !path.starts_with("/dev") && !path.starts_with("/proc")
}

#[tokio::test]
async fn a_store_in_memory_writes_nothing_to_disk() {
    let relay = Store::Memory.relay_with(&[]);
    let before = [files(&relay.server().installation().config()), files(&relay.server().installation().log())];
    let mut client = relay.connect().await;
    let (_, sender) = secured(&mut client).await;
    for _ in 0..100 {
        sender.send(&mut client, &[b'm'; 16_000]).await.unwrap();
    }
    assert_eq!(open_files(relay.server().process_id()), Vec::<PathBuf>::new());
    let installation = relay.end(Signal::TERM).await.installation;
    assert_eq!([files(&installation.config()), files(&installation.log())], before);
    assert!(before[1].is_empty());
}

/// Blocks a queue as an operator would, while no server has the store.
async fn block(relay: Relay, queue: &Queue) -> Relay {
    let installation = relay.end(Signal::TERM).await.installation;
    let store = installation.open_store();
    let info = BlockingInfo { reason: BlockingReason::Spam, notice: None };
    store.apply(vec![Op::BlockQueue { queue: queue.id().queue().unwrap(), info }]).await.unwrap();
    store.close().await.unwrap();
    Relay::start(installation)
}

async fn a_blocked_queue_can_only_be_suspended_and_deleted(store: Store) {
    let relay = store.relay_with(&[]);
    let (queue, sender) = secured(&mut relay.connect().await).await;
    let relay = block(relay, &queue).await;
    let blocked = ErrorType::Blocked(BlockingInfo { reason: BlockingReason::Spam, notice: None });
    for version in 6..=20 {
        let mut client = relay.connect_in(version).await;
        let expected = if version >= 12 { &blocked } else { &ErrorType::Auth };
        assert_eq!(why(queue.subscribe(&mut client).await), *expected, "version {version}");
        assert_eq!(why(queue.get(&mut client).await), *expected, "version {version}");
        assert_eq!(why(sender.send(&mut client, b"blocked").await), *expected, "version {version}");
    }
    let mut client = relay.connect().await;
    queue.delete(&mut client).await.unwrap();
}
