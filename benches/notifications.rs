//! What notifiers and services cost: `cargo bench --bench notifications -- --store sqlite,postgres --keys 300000 --seconds 60
//! --delivered 20000 --queues 100000 --body 1000 --phase idle,delivery,silent,service`.
//!
//! - `idle`: memory of so many notifier keys with nothing to deliver, and what the server does in so many seconds;
//! - `delivery`: so many notifications, each for another notifier: how fast they come, and what is left of them;
//! - `silent`: a notifier that does not read has 10,000 notifications: memory, and how long others wait for theirs;
//! - `service`: a service with so many queues that have a message each: memory, time, and how long another client waits.
//!
//! Each phase has a server of its own in a process of its own. The PostgreSQL is the bench's own, on the same machine, and as
//! durable as it comes. Server, database and clients share the machine.

#![allow(clippy::expect_used, reason = "a bench says what went wrong by panicking")]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "made for the tests")]
mod support;

use std::cell::Cell;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use smp_server::client::{Client, ConnectOptions, NewQueue, Notifier, NotifierCredentials, Queue};
use smp_server::protocol::command::Command;
use smp_server::protocol::response::Response;
use support::cluster::Cluster;
use support::many_queues::{ManyQueues, take_events};
use support::{Installation, Relay, Service, Store, connect_narrow, processor_time, queues_with, resident_kib};
use tokio::task::LocalSet;

/// Connections that share the notifiers of a phase.
const CONNECTIONS: usize = 3;

/// Notifiers of the connection that does not read, and notifications for each.
const SILENT: usize = 100;
const FOR_EACH: usize = 100;

/// Messages after which a service acknowledges.
const BATCH: usize = 100;

/// What is asked for on the command line.
struct Options {
    stores: Vec<Store>,
    phases: Vec<String>,
    keys: usize,
    seconds: u64,
    delivered: usize,
    queues: usize,
    body: usize,
}

impl Options {
    fn read() -> Self {
        let phases = ["idle", "delivery", "silent", "service"].map(str::to_owned).to_vec();
        let mut options = Options {
            stores: vec![Store::Sqlite, Store::Postgres],
            phases,
            keys: 30_000,
            seconds: 10,
            delivered: 20_000,
            queues: 10_000,
            body: 1_000,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value");
            match word.as_str() {
                "--store" => options.stores = value().split(',').map(store).collect(),
                "--phase" => options.phases = value().split(',').map(str::to_owned).collect(),
                "--keys" => options.keys = number(&value()),
                "--seconds" => options.seconds = number(&value()) as u64,
                "--delivered" => options.delivered = number(&value()),
                "--queues" => options.queues = number(&value()),
                "--body" => options.body = number(&value()),
                // Cargo's own.
                "--bench" => {}
                other => panic!("{other} is not an option"),
            }
        }
        options
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

fn store(name: &str) -> Store {
    match name {
        "sqlite" => Store::Sqlite,
        "memory" => Store::Memory,
        "postgres" => Store::Postgres,
        other => panic!("{other} is no store"),
    }
}

fn main() {
    let options = Options::read();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for store in &options.stores {
        for phase in &options.phases {
            println!("\n{store:?}, {phase}:");
            LocalSet::new().block_on(&runtime, async {
                match phase.as_str() {
                    "idle" => idle(*store, &options).await,
                    "delivery" => delivery(*store, &options).await,
                    "silent" => silent(*store).await,
                    "service" => service(*store, &options).await,
                    other => panic!("{other} is no phase"),
                }
            });
        }
    }
}

/// A PostgreSQL that keeps what it has committed.
static DURABLE: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(&["fsync=on", "full_page_writes=on"]));

/// A server on this store.
fn relay(store: Store) -> Relay {
    let mut installation = Installation::new();
    installation.set("STORE_LOG", "enable", if store == Store::Memory { "off" } else { "on" });
    if store == Store::Postgres {
        installation.keep_in(DURABLE.schema());
    }
    Relay::start(installation)
}

/// What a process has done so far.
#[derive(Clone, Copy)]
struct Work {
    processor: Duration,
    /// How often its threads have given the processor away, to wait: each is something that ran.
    switches: u64,
    /// Transactions of the database, those of the bench included.
    transactions: Option<u64>,
}

impl Work {
    fn of(relay: &Relay, store: Store) -> Self {
        let process = relay.server().process_id();
        let transactions = (store == Store::Postgres).then(|| {
            let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
            DURABLE.sql(sql).parse().expect("a number")
        });
        Work { processor: processor_time(process), switches: switches(process), transactions }
    }
}

fn switches(process: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process is there");
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    status.filter_map(|status| status.lines().find_map(voluntary)).sum()
}

fn voluntary(line: &str) -> Option<u64> {
    line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok()
}

fn resident(relay: &Relay) -> u64 {
    resident_kib(relay.server().process_id())
}

/// Connections with these notifiers, each with its part.
async fn subscribe(relay: &Relay, queues: &ManyQueues, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for part in 0..CONNECTIONS {
        let mut client = relay.connect().await;
        queues.subscribe_notifier(&mut client, count * part / CONNECTIONS..count * (part + 1) / CONNECTIONS).await;
        clients.push(client);
    }
    clients
}

async fn idle(store: Store, options: &Options) {
    let relay = relay(store);
    let queues = ManyQueues::notified(&mut relay.connect().await, options.keys).await;
    let (before, begin) = (resident(&relay), Instant::now());
    let clients = subscribe(&relay, &queues, options.keys).await;
    let (after, took) = (resident(&relay), begin.elapsed());
    println!(
        "  {} keys subscribed in {took:.1?}: {before} -> {after} KiB, {} bytes a key",
        options.keys,
        after.saturating_sub(before) * 1024 / options.keys.max(1) as u64
    );
    // The statistics of a database come a moment late.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let work = Work::of(&relay, store);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let later = Work::of(&relay, store);
    let queries = work.transactions.zip(later.transactions);
    println!(
        "  {} s with nothing to deliver: {:?} of processor, {} times something ran, transactions of the database: {}",
        options.seconds,
        later.processor - work.processor,
        later.switches - work.switches,
        queries.map_or("-".to_owned(), |(before, after)| format!("{} (the bench's own included)", after - before)),
    );
    drop(clients);
    tell(relay).await;
}

async fn delivery(store: Store, options: &Options) {
    let relay = relay(store);
    let count = options.delivered;
    let mut sender = relay.connect().await;
    let queues = ManyQueues::notified(&mut sender, count).await;
    let clients = subscribe(&relay, &queues, count).await;
    let begin = Instant::now();
    let taking: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(part, mut client)| {
            let mine = count * (part + 1) / CONNECTIONS - count * part / CONNECTIONS;
            tokio::task::spawn_local(async move { take_events(&mut client, "NMSG", mine).await })
        })
        .collect();
    queues.send(&mut sender, 0..count, true, b"notified").await;
    let sent = begin.elapsed();
    let mut blocks = 0;
    for task in taking {
        blocks += task.await.expect("notifications");
    }
    println!(
        "  {count} messages sent in {sent:.1?}, the last notification came after {:.1?}, in {blocks} blocks",
        begin.elapsed()
    );
    tell(relay).await;
}

async fn silent(store: Store) {
    let relay = relay(store);
    let (mut sender, mut owner, mut other) = (relay.connect().await, relay.connect().await, relay.connect().await);
    let mut silent = connect_narrow(&relay, &ConnectOptions::default()).await;
    let queues = ManyQueues::notified(&mut sender, SILENT).await;
    queues.subscribe_notifier(&mut silent, 0..SILENT).await;
    let queue = NewQueue::messaging().create(&mut owner).await.expect("a queue");
    let notifier = queue.enable_notifications(&mut owner, NotifierCredentials::generate()).await.expect("a notifier");
    notifier.subscribe(&mut other).await.expect("SOK");
    let before = resident(&relay);
    let mut times = Vec::new();
    for _ in 0..FOR_EACH {
        let (time, ()) = tokio::join!(
            notification_time(&queue, &notifier, &mut owner, &mut other),
            queues.send(&mut sender, 0..SILENT, true, b"notified")
        );
        times.push(time);
    }
    println!("  {} notifications for who does not read: {before} -> {} KiB", SILENT * FOR_EACH, resident(&relay));
    println!("  the others' notifications, from SEND on: {}", percentiles(times));
    drop(silent);
    tell(relay).await;
}

/// How long a notification takes from `SEND` to the notifier.
async fn notification_time(queue: &Queue, notifier: &Notifier, owner: &mut Client, other: &mut Client) -> Duration {
    let begin = Instant::now();
    queue.sender().send_notified(owner, b"notified").await.expect("OK");
    notifier.notification(other).await.expect("NMSG");
    let time = begin.elapsed();
    let message = queue.message(owner).await.expect("MSG");
    queue.acknowledge(owner, &message.id.0).await.expect("OK");
    time
}

async fn service(store: Store, options: &Options) {
    let relay = relay(store);
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut first = service.connect(&relay).await;
    let queues = ManyQueues::subscribed(&mut first, options.queues).await;
    first.close();
    queues.send(&mut sender, 0..options.queues, false, &vec![b'm'; options.body]).await;
    let mut session = service.connect(&relay).await;
    let (before, peak, done) = (resident(&relay), Cell::new(0), Cell::new(false));
    let quiet = percentiles(bystander(&relay, &mut sender, None).await);
    let watching = async {
        while !done.get() {
            peak.set(peak.get().max(resident(&relay)));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let subscribing = async {
        let begin = Instant::now();
        let all = queues_with(queues.recipient_ids());
        assert_eq!(session.subscribe_service(all).await.expect("SOKS"), all);
        let subscribed = begin.elapsed();
        let came = take_all(&mut session, &queues).await;
        done.set(true);
        (subscribed, begin.elapsed(), came)
    };
    let ((subscribed, all, came), (), times) =
        tokio::join!(subscribing, watching, bystander(&relay, &mut sender, Some(&done)));
    println!("  {came} of {} messages: SOKS after {subscribed:.1?}, ALLS and all ACKs after {all:.1?}", options.queues);
    println!("  memory {before} KiB before, {} KiB at most", peak.get());
    println!("  another client, SEND to ACK: {quiet} before, {} meanwhile", percentiles(times));
    tell(relay).await;
}

/// Takes and acknowledges messages up to `ALLS`: how many.
async fn take_all(session: &mut Client, queues: &ManyQueues) -> usize {
    let (mut came, mut acknowledgements) = (0, Vec::new());
    loop {
        let event = session.event().await.expect("an event");
        match event.response {
            Response::Msg { .. } => {
                acknowledgements.push(queues.request(event.entity_id, Command::Ack(Default::default())))
            }
            Response::Alls => {
                session.request_all(&acknowledgements).await.expect("answers");
                return came + acknowledgements.len();
            }
            other => panic!("{other:?}"),
        }
        if acknowledgements.len() == BATCH {
            came += BATCH;
            let answers = session.request_all(&std::mem::take(&mut acknowledgements)).await.expect("answers");
            assert!(answers.iter().all(|answer| *answer == Response::Ok), "{answers:?}");
        }
    }
}

/// Times of messages from `SEND` to the answer to `ACK`, one after the other: 100 of them, or until it is `done`.
async fn bystander(relay: &Relay, sender: &mut Client, done: Option<&Cell<bool>>) -> Vec<Duration> {
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().create(&mut client).await.expect("a queue");
    let mut times = Vec::new();
    while done.map_or(times.len() < 100, |done| !done.get()) {
        let begin = Instant::now();
        queue.sender().send(sender, b"message").await.expect("OK");
        let message = queue.message(&mut client).await.expect("MSG");
        queue.acknowledge(&mut client, &message.id.0).await.expect("OK");
        times.push(begin.elapsed());
    }
    times
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default();
    format!("p50 {:.1?}, p99 {:.1?}, most {:.1?} of {}", at(50), at(99), at(100), times.len())
}

/// What the server tells of its notifications and of its store when it stops.
async fn tell(relay: Relay) {
    let output = relay.end(Signal::TERM).await.output;
    for subject in ["metrics: notifications", "metrics: services", "metrics: store "] {
        let line = output.iter().rev().find_map(|line| line.split_once(subject).map(|(_, rest)| rest));
        println!("  {subject}{}", line.unwrap_or(" not told"));
    }
}
