//! Many connections, most of them idle: no error, every message once and in order, and memory that does not grow.
//!
//! `SMP_TEST_SOAK=full` takes the full scale: 2,000 idle and 200 busy connections with 20 queues each, for a minute, and
//! the throughput of 1, 20 and 200 connections. To be run in a release build, on a machine that does nothing else:
//! `SMP_TEST_SOAK=full cargo test --release soak -- --nocapture --test-threads=1`.

mod busy;
mod idle;

use std::env;
use std::process;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use smp_server::protocol::address::ServerAddress;
use smp_server::transport::file_limit::raise_file_limit;

use self::busy::BusyClients;
use self::idle::IdleClients;
use crate::support::{Server, Store, for_each_lasting_store, processor_time, resident_kib};

for_each_lasting_store!(
    idle_and_busy_connections_are_served_in_flat_memory,
    connections_send_and_receive_at_full_speed,
);

/// Queues of a busy client.
const QUEUES: usize = 20;

/// How much memory may be larger in the second half than in the first: in percent, and in KiB.
const GROWTH: (u64, u64) = (5, 2048);

/// Between two looks at the memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// What memory may take to settle.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of everything.
struct Scale {
    idle: usize,
    busy: usize,
    /// Before memory is watched: caches fill, and it reaches what the load needs.
    warm: Duration,
    time: Duration,
    /// Memory has settled when it has not fallen for so long.
    settle: Duration,
    /// Connections whose throughput is measured.
    connections: &'static [usize],
    measure: Duration,
}

const SMALL: Scale = Scale {
    idle: 200,
    busy: 20,
    warm: Duration::from_secs(1),
    time: Duration::from_secs(4),
    settle: Duration::from_millis(300),
    connections: &[1, 10],
    measure: Duration::from_millis(500),
};

const FULL: Scale = Scale {
    idle: 2_000,
    busy: 200,
    warm: Duration::from_secs(10),
    time: Duration::from_secs(60),
    settle: Duration::from_secs(5),
    connections: &[1, 20, 200],
    measure: Duration::from_secs(10),
};

fn scale() -> Scale {
    match env::var("SMP_TEST_SOAK").as_deref() {
        Ok("full") => FULL,
        Ok(other) => panic!("SMP_TEST_SOAK is {other:?} and may be \"full\""),
        Err(_) => SMALL,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

fn address(server: &Server) -> ServerAddress {
    server.smp_address().parse().expect("the server's address")
}

/// The server's memory in KiB once it falls no more.
async fn settled(server: &Server, time: Duration) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    let (mut least, mut since) = (u64::MAX, Instant::now());
    while since.elapsed() < time {
        assert!(Instant::now() < deadline, "memory does not settle");
        let now = resident_kib(server.process_id());
        if now < least {
            (least, since) = (now, Instant::now());
        }
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    least
}

/// Runs `work` and answers its result with the server's memory in KiB at times after its beginning.
async fn sampled<T>(server: &Server, work: impl Future<Output = T>) -> (T, Vec<(Duration, u64)>) {
    let mut work = std::pin::pin!(work);
    let (begin, mut samples) = (Instant::now(), Vec::new());
    loop {
        samples.push((begin.elapsed(), resident_kib(server.process_id())));
        let pause = std::pin::pin!(tokio::time::sleep(SAMPLE_INTERVAL));
        match select(work.as_mut(), pause).await {
            Either::Left((result, _)) => return (result, samples),
            Either::Right(_) => {}
        }
    }
}

/// The median of some samples.
fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The medians of both halves; the second may not be larger than the first by more than [`GROWTH`].
fn assert_flat(samples: &[u64]) -> (u64, u64) {
    let (first, second) = samples.split_at(samples.len() / 2);
    let (first, second) = (median(first), median(second));
    let (percent, kib) = GROWTH;
    assert!(second <= first + first * percent / 100 + kib, "memory grew from {first} to {second} KiB: {samples:?}");
    (first, second)
}

/// KiB for each of `connections`, with a digit after the point.
fn per_connection(before: u64, after: u64, connections: usize) -> String {
    format!("{:.1} KiB a connection", after.saturating_sub(before) as f64 / connections as f64)
}

fn idle_and_busy_connections_are_served_in_flat_memory(store: Store) {
    let scale = scale();
    let server = store.server();
    block_on(async {
        let address = address(&server);
        let none = settled(&server, scale.settle).await;
        let idle = IdleClients::connect(&address, scale.idle).await;
        let connected = settled(&server, scale.settle).await;
        println!("{} idle: {none} -> {connected} KiB, {}", scale.idle, per_connection(none, connected, scale.idle));
        let idle = idle.subscribe().await;
        let subscribed = settled(&server, scale.settle).await;
        println!("subscribed to a queue each: {subscribed} KiB, {}", per_connection(none, subscribed, scale.idle));
        let busy = BusyClients::connect(&address, scale.busy, QUEUES).await;
        let (messages, samples) = sampled(&server, busy.work(scale.warm + scale.time)).await;
        assert!(messages > 0);
        let warm: Vec<_> = samples.iter().filter(|(at, _)| *at >= scale.warm).map(|(_, kib)| *kib).collect();
        let (first, second) = assert_flat(&warm);
        println!("{} busy, {QUEUES} queues each: {messages} messages in {:?}", scale.busy, scale.warm + scale.time);
        println!("memory {first} KiB in the first half, {second} KiB in the second (medians)");
        idle.receive(&address).await;
        let after = settled(&server, scale.settle).await;
        println!("when all have gone: {after} KiB");
    });
    assert_eq!(server.stop().status.code(), Some(0));
}

fn connections_send_and_receive_at_full_speed(store: Store) {
    let scale = scale();
    for connections in scale.connections {
        let server = store.server();
        block_on(async {
            let clients = BusyClients::connect(&address(&server), *connections, QUEUES).await;
            let used = || (processor_time(server.process_id()), processor_time(process::id()));
            let (begin, (server_before, client_before)) = (Instant::now(), used());
            let messages = clients.work(scale.measure).await;
            let (time, (server_after, client_after)) = (begin.elapsed().as_secs_f64(), used());
            println!(
                "{store:?}, {connections} connections: {:.0} messages/s, server {:.0}% of a core, {:.0} us a message; clients {:.0}%",
                messages as f64 / time,
                100.0 * (server_after - server_before).as_secs_f64() / time,
                (server_after - server_before).as_secs_f64() * 1e6 / messages as f64,
                100.0 * (client_after - client_before).as_secs_f64() / time,
            );
            assert!(messages > 0);
        });
    }
}
