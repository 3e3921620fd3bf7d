//! Many notifiers: those with nothing to deliver cost their keys only, delivered notifications leave nothing behind, and
//! who does not read costs its bound and delays nobody. `cargo bench --bench notifications` measures the same at full scale.

use std::time::Duration;

use rustix::process::Signal;
use smp_server::client::ConnectOptions;
use smp_server::protocol::response::Response;

use crate::support::cluster::Cluster;
use crate::support::many_queues::{ManyQueues, take_events};
use crate::support::slow_database::SlowDatabase;
use crate::support::{
    Installation, Relay, Store, connect_narrow, for_each_store, is_told_nothing, notified, resident_kib, until,
};

for_each_store!(
    delivered_notifications_leave_no_key_behind,
    a_notifier_that_does_not_read_costs_its_bound_and_delays_nobody,
);

/// Notifiers of the tests in which nothing, or one notification, comes for each.
const NOTIFIERS: usize = 3_000;

/// How long nothing may happen. Long enough for anything that looks every second.
const IDLE: Duration = Duration::from_millis(1_500);

/// What the memory of a server may grow by besides: allocator, caches, and what the commands leave.
const MARGIN_KIB: u64 = 8 * 1024;

#[test]
fn notifiers_with_nothing_to_deliver_ask_the_database_nothing_and_cost_their_keys_only() {
    let cluster = Cluster::start(&[]);
    // Has a runtime of its own.
    let database = SlowDatabase::before(&cluster);
    let installation = Installation::new();
    installation.use_database(&database.connection(), "smp_server");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(nothing_is_asked_and_keys_only_are_kept(Relay::start(installation), &database));
}

async fn nothing_is_asked_and_keys_only_are_kept(relay: Relay, database: &SlowDatabase) {
    let (mut owner, mut client) = (relay.connect().await, relay.connect().await);
    let queues = ManyQueues::notified(&mut owner, NOTIFIERS).await;
    let resident = || resident_kib(relay.server().process_id());
    let before = resident();
    queues.subscribe_notifier(&mut client, 0..NOTIFIERS).await;
    let grown = resident().saturating_sub(before);
    assert!(grown <= NOTIFIERS as u64 / 2 + MARGIN_KIB, "{grown} KiB for {NOTIFIERS} notifiers");
    // The last answers are on their way to the pool of connections.
    owner.ping().await.unwrap();
    let mut carried = database.carried();
    until("the database to be left alone", async || {
        tokio::time::sleep(IDLE).await;
        std::mem::replace(&mut carried, database.carried()) == database.carried()
    })
    .await;
    assert!(is_told_nothing(&mut client).await);
    assert_eq!(carried, database.carried(), "PING asks nothing");
}

/// A number that the server tells of its notifications when it stops.
fn metric(output: &[String], name: &str) -> u64 {
    let lines: Vec<_> = output.iter().filter(|line| line.contains("metrics: notifications")).collect();
    let prefix = format!("{name}=");
    let word = lines.last().and_then(|line| line.split_whitespace().find_map(|word| word.strip_prefix(&prefix)));
    word.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name} in {lines:?}"))
}

async fn delivered_notifications_leave_no_key_behind(store: Store) {
    let relay = store.relay_with(&[]);
    let (mut owner, mut client) = (relay.connect().await, relay.connect().await);
    let queues = ManyQueues::notified(&mut owner, NOTIFIERS).await;
    // Half of them wait for their notifier, half come to it.
    queues.send(&mut owner, 0..NOTIFIERS / 2, true, b"notified").await;
    queues.subscribe_notifier(&mut client, 0..NOTIFIERS).await;
    queues.send(&mut owner, NOTIFIERS / 2..NOTIFIERS, true, b"notified").await;
    let waiting = std::iter::from_fn(|| client.waiting_event()).count();
    let blocks = take_events(&mut client, "NMSG", NOTIFIERS - waiting).await;
    assert!(blocks < NOTIFIERS, "many share a block");
    client.ping().await.unwrap();
    let output = relay.end(Signal::TERM).await.output;
    assert_eq!(metric(&output, "notifications_delivered"), NOTIFIERS as u64);
    for name in ["notifications_pending", "notifiers_pending", "notifications_in_flight"] {
        assert_eq!(metric(&output, name), 0, "{name}");
    }
}

/// Notifiers of the connection that does not read, and notifications for each: far more than any kernel keeps for it.
const SILENT: usize = 100;
const FOR_EACH: usize = 100;

/// Of those, how many are kept of each.
const KEPT: usize = 20;

async fn a_notifier_that_does_not_read_costs_its_bound_and_delays_nobody(store: Store) {
    let relay = store.relay_with(&[("NOTIFICATIONS", "pending_per_notifier", &KEPT.to_string())]);
    let (mut owner, mut sender) = (relay.connect().await, relay.connect().await);
    let mut silent = connect_narrow(&relay, &ConnectOptions::default()).await;
    let queues = ManyQueues::notified(&mut owner, SILENT).await;
    queues.subscribe_notifier(&mut silent, 0..SILENT).await;
    let (queue, notifier) = notified(&mut owner).await;
    let mut other = relay.connect().await;
    notifier.subscribe(&mut other).await.unwrap();
    let resident = || resident_kib(relay.server().process_id());
    let before = resident();
    for _ in 0..FOR_EACH {
        queues.send(&mut sender, 0..SILENT, true, b"").await;
        queue.sender().send_notified(&mut sender, b"").await.unwrap();
        let message = queue.message(&mut owner).await.unwrap();
        assert_eq!(notifier.notification(&mut other).await.unwrap().message_id, message.id.0[..]);
        assert_eq!(queue.acknowledge(&mut owner, &message.id.0).await.unwrap(), None);
    }
    let grown = resident().saturating_sub(before);
    // The messages themselves are in the store, which may be in this memory.
    let stored = (SILENT * FOR_EACH) as u64;
    assert!(grown <= stored + MARGIN_KIB, "{grown} KiB");
    // It reads at last: what was kept comes in order, and the newest of each is among it.
    let mut came = vec![0; SILENT];
    let ids: Vec<_> = queues.notifier_ids().cloned().collect();
    let mut blocks = 0;
    while !silent.is_silent_for(Duration::from_millis(500)).await.unwrap() || blocks == 0 {
        while let Some(event) = silent.waiting_event() {
            assert!(matches!(event.response, Response::Nmsg { .. }));
            came[ids.iter().position(|id| *id == event.entity_id).unwrap()] += 1;
        }
        blocks += 1;
    }
    assert!(came.iter().all(|came| (KEPT..FOR_EACH).contains(came)), "{came:?}");
    let output = relay.end(Signal::TERM).await.output;
    let dropped = metric(&output, "notifications_dropped_of_notifier");
    assert_eq!(dropped as usize, SILENT * FOR_EACH - came.iter().sum::<usize>());
}
