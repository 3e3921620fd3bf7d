//! What the server tells of itself: how full its bounded queues are, how often they were full, and what happened.
//!
//! Numbers only, never an ID, a key or an address. Each bound of `docs/backpressure.md` names its metrics here.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::info;

use super::connection::services::Drift;
use super::connection::{Counters, Services};
use super::mailbox::MailboxMetrics;
use super::notifications::NotificationMetrics;
use crate::store::metrics::LineMetrics;

/// Writes all metrics to the log, one line a subject.
pub fn log(services: &Services) {
    log_connections(&services.counters);
    log_commands(&services.counters);
    log_mailbox("connections", &services.mailboxes.connections);
    log_mailbox("registry", &services.mailboxes.registry);
    log_mailbox("workers", &services.mailboxes.workers);
    log_mailbox("notifications", &services.mailboxes.notifications);
    log_notifications(&services.notification_metrics);
    log_services(&services.counters.drift);
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

fn log_notifications(metrics: &NotificationMetrics) {
    info!(
        notifications_pending = get(&metrics.pending),
        notifiers_pending = get(&metrics.notifiers),
        notifications_in_flight = get(&metrics.in_flight),
        notifier_subscriptions = get(&metrics.subscriptions),
        notifications = get(&metrics.notified),
        notifications_delivered = get(&metrics.delivered),
        notifications_dropped_of_notifier = get(&metrics.dropped_notifier),
        notifications_dropped_of_total = get(&metrics.dropped_total),
        notifications_expired = get(&metrics.expired),
        notifications_removed = get(&metrics.removed),
        delivery_windows = get(&metrics.windows),
        "metrics: notifications"
    );
}

fn log_services(drift: &Drift) {
    info!(
        services_right = get(&drift.none),
        services_more = get(&drift.more),
        services_more_queues = get(&drift.more_queues),
        services_fewer = get(&drift.fewer),
        services_fewer_queues = get(&drift.fewer_queues),
        services_different = get(&drift.different),
        "metrics: services"
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
