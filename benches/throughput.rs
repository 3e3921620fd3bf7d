//! How many messages a server carries from SEND over MSG to ACK, and in how many round trips to its store:
//! `cargo bench --bench throughput -- --store sqlite,postgres --connections 1,100,1000 --seconds 10 --body 16000`.
//!
//! Each connection has a queue of its own, to which it sends the next message as soon as the last one's ACK was answered.
//! The server runs in a process of its own; the PostgreSQL is the bench's own, on the same machine, and as durable as it
//! comes (`fsync` on). Server, database and clients share the machine.

#![allow(clippy::expect_used, reason = "a bench says what went wrong by panicking")]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "made for the tests")]
mod support;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use smp_server::client::{Client, NewQueue, Queue, Sender};
use support::cluster::Cluster;
use support::{Installation, Relay, Store};
use tokio::task::LocalSet;

/// What is asked for on the command line.
struct Options {
    stores: Vec<Store>,
    connections: Vec<usize>,
    seconds: u64,
    body: usize,
}

impl Options {
    fn read() -> Self {
        let mut options = Options {
            stores: vec![Store::Sqlite, Store::Postgres],
            connections: vec![1, 100, 1000],
            seconds: 10,
            body: 16_000,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value");
            match word.as_str() {
                "--store" => options.stores = value().split(',').map(store).collect(),
                "--connections" => options.connections = value().split(',').map(number).collect(),
                "--seconds" => options.seconds = number(&value()) as u64,
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
    println!(
        "{:<10} {:>11} {:>12} {:>9} {:>9} {:>14}",
        "store", "connections", "messages/s", "p50 ms", "p99 ms", "trips/message"
    );
    for store in &options.stores {
        for connections in &options.connections {
            LocalSet::new().block_on(&runtime, measure(*store, *connections, &options));
        }
    }
}

/// An installation on this store, on a PostgreSQL that keeps what it has committed.
fn installation(store: Store) -> Installation {
    static DURABLE: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(&["fsync=on", "full_page_writes=on"]));
    let mut installation = Installation::new();
    installation.set("STORE_LOG", "enable", if store == Store::Memory { "off" } else { "on" });
    if store == Store::Postgres {
        installation.keep_in(DURABLE.schema());
    }
    installation
}

/// One server, one line.
async fn measure(store: Store, connections: usize, options: &Options) {
    let relay = Relay::start(installation(store));
    let mut pairs = Vec::new();
    for _ in 0..connections {
        let mut client = relay.connect().await;
        let queue = NewQueue::messaging().create(&mut client).await.expect("a queue");
        pairs.push((client, queue));
    }
    let senders: Vec<Sender> = pairs.iter().map(|(_, queue)| queue.sender()).collect();
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let body = Rc::new(vec![7; options.body]);
    let carried = Rc::new(Cell::new(0_u64));
    let tasks = pairs.into_iter().zip(senders).map(|((client, queue), sender)| {
        tokio::task::spawn_local(carry(client, queue, sender, Rc::clone(&body), until, Rc::clone(&carried)))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut times: Vec<Duration> = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a client that works"));
    }
    let stopped = relay.end(Signal::TERM).await;
    report(store, connections, options.seconds, carried.get(), times, &stopped.output);
}

/// Sends to the queue and receives from it until the time is over. Answers how long each message took.
async fn carry(
    mut client: Client,
    queue: Queue,
    sender: Sender,
    body: Rc<Vec<u8>>,
    until: Instant,
    carried: Rc<Cell<u64>>,
) -> Vec<Duration> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        sender.send(&mut client, &body).await.expect("OK");
        let message = queue.message(&mut client).await.expect("MSG");
        queue.acknowledge(&mut client, &message.id.0).await.expect("OK");
        times.push(began.elapsed());
        carried.set(carried.get() + 1);
    }
    times
}

fn report(store: Store, connections: usize, seconds: u64, carried: u64, mut times: Vec<Duration>, output: &[String]) {
    times.sort_unstable();
    let percentile = |percent: usize| {
        times.get(times.len().saturating_sub(1) * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    let trips =
        metric(output, "round_trips").map_or("-".to_owned(), |trips| format!("{:.2}", trips / carried.max(1) as f64));
    println!(
        "{:<10} {connections:>11} {:>12.0} {:>9.1} {:>9.1} {trips:>14}",
        format!("{store:?}").to_lowercase(),
        carried as f64 / seconds as f64,
        percentile(50),
        percentile(99),
    );
}

/// A number of the metrics that the server writes when it stops; the round trips of creating the queues are in it.
fn metric(output: &[String], name: &str) -> Option<f64> {
    let prefix = format!("{name}=");
    let words = output.iter().rev().flat_map(|line| line.split_whitespace());
    words.filter_map(|word| word.strip_prefix(&prefix)).find_map(|number| number.parse().ok())
}
