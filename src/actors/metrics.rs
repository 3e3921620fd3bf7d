//! What the server tells of itself: how full its bounded queues are, how often they were full, and what happened.
//!
//! Numbers only, never an ID, a key or an address. Each bound of `docs/backpressure.md` names its metrics here.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::info;

use super::connection::{Counters, Services};
use super::mailbox::MailboxMetrics;
use crate::store::metrics::LineMetrics;

/// Writes all metrics to the log, one line a subject.
pub fn log(services: &Services) {
    log_connections(&services.counters);
    log_commands(&services.counters);
    log_mailbox("connections", &services.mailboxes.connections);
    log_mailbox("registry", &services.mailboxes.registry);
    log_mailbox("workers", &services.mailboxes.workers);
    let store = services.store.metrics();
    log_line("writes", store.writes);
    log_line("reads", store.reads);
    info!(
        groups = store.groups,
        operations = store.operations,
        failures = store.failures,
        round_trips = store.round_trips,
        "metrics: store"
    );
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn log_connections(counters: &Counters) {
    info!(
        connections = get(&counters.connections),
        handshakes = get(&counters.handshakes),
        handshakes_failed = get(&counters.handshakes_failed),
        outbound_blocks = get(&counters.outbound_blocks),
        outbound_full = get(&counters.outbound_full),
        stalled = get(&counters.stalled),
        inactive = get(&counters.inactive),
        "metrics: connections"
    );
}

fn log_commands(counters: &Counters) {
    info!(
        queues_created = get(&counters.queues_created),
        queues_deleted = get(&counters.queues_deleted),
        messages_sent = get(&counters.messages_sent),
        messages_acknowledged = get(&counters.messages_acknowledged),
        messages_expired = get(&counters.messages_expired),
        quota_exceeded = get(&counters.quota_exceeded),
        auth_errors = get(&counters.auth_errors),
        "metrics: commands"
    );
}

fn log_mailbox(actors: &str, metrics: &MailboxMetrics) {
    info!(
        depth = get(&metrics.depth),
        sent = get(&metrics.sent),
        waited = get(&metrics.waited),
        waited_ms = get(&metrics.waited_nanoseconds) / 1_000_000,
        refused = get(&metrics.refused),
        undeliverable = get(&metrics.undeliverable),
        "metrics: mailboxes of {actors}"
    );
}

fn log_line(line: &str, metrics: LineMetrics) {
    info!(depth = metrics.depth, full = metrics.full, refused = metrics.refused, "metrics: store {line}");
}
