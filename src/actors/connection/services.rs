//! What every connection shares: handles to its collaborators and the settings of its commands.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::core::CoreRef;
use super::failures::StoreFailures;
use super::session::Session;
use crate::actors::clock::Clock;
use crate::actors::mailbox::MailboxMetrics;
use crate::actors::notifications::{NotificationMetrics, NotificationsHandle};
use crate::actors::registry::{ConnectionRef, RegistryHandle};
use crate::protocol::command::ServiceQueues;
use crate::settings::Password;
use crate::store::{Store, Timestamp};

/// Collaborators and settings, one value for the whole process.
pub struct Services {
    /// Queues and messages.
    pub store: Arc<dyn Store>,
    /// Who is subscribed.
    pub registry: RegistryHandle,
    /// Who is notified.
    pub notifications: NotificationsHandle,
    /// What happened to notifications.
    pub notification_metrics: Arc<NotificationMetrics>,
    /// The time of day.
    pub clock: Clock,
    /// Settings of commands.
    pub settings: CommandSettings,
    /// What happened.
    pub counters: Counters,
    /// Tells the operator when the store fails.
    pub store_failures: StoreFailures,
    /// How full the mailboxes are, by kind of actor.
    pub mailboxes: Mailboxes,
}

/// Metrics of the mailboxes, one value a kind of actor.
#[derive(Debug, Default)]
pub struct Mailboxes {
    /// Of connections.
    pub connections: Arc<MailboxMetrics>,
    /// Of the registry's shards.
    pub registry: Arc<MailboxMetrics>,
    /// Of the actor of notifications.
    pub notifications: Arc<MailboxMetrics>,
    /// Of workers.
    pub workers: Arc<MailboxMetrics>,
}

/// Settings that decide how commands are answered.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// Whether queues may be created.
    pub new_queues: bool,
    /// The password for creating queues.
    pub create_password: Option<Password>,
    /// Messages older than this many seconds are expired; `None`: never.
    pub message_ttl: Option<i64>,
    /// Whether `SEND` expires old messages of its queue.
    pub expire_on_send: bool,
    /// Most payloads waiting for one client.
    pub client_blocks: usize,
    /// Notifications of messages that were sent longer ago than this many seconds are dropped.
    pub notification_ttl: i64,
    /// How long `END` and `DELD` are collected before they are sent.
    pub end_interval: std::time::Duration,
}

impl CommandSettings {
    /// Messages sent before this are expired.
    pub fn expire_before(&self, now: Timestamp) -> Option<Timestamp> {
        let ttl = self.message_ttl?;
        Some(Timestamp { seconds: now.seconds.saturating_sub(ttl), nanoseconds: 0 })
    }
}

/// Counts of what happened, since start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections after their handshake, now.
    pub connections: AtomicU64,
    /// Handshakes in progress, now.
    pub handshakes: AtomicU64,
    /// Handshakes that failed.
    pub handshakes_failed: AtomicU64,
    /// Encoded blocks that wait for clients, as of the last sweeps.
    pub outbound_blocks: AtomicU64,
    /// Queues created.
    pub queues_created: AtomicU64,
    /// Queues deleted.
    pub queues_deleted: AtomicU64,
    /// Messages accepted.
    pub messages_sent: AtomicU64,
    /// Messages acknowledged.
    pub messages_acknowledged: AtomicU64,
    /// Messages refused because the queue was full.
    pub quota_exceeded: AtomicU64,
    /// Messages deleted because they were too old.
    pub messages_expired: AtomicU64,
    /// Commands refused for their authorization.
    pub auth_errors: AtomicU64,
    /// Deliveries put off because the client's outbound queue was full.
    pub outbound_full: AtomicU64,
    /// Connections closed for taking nothing.
    pub stalled: AtomicU64,
    /// Connections closed for being inactive.
    pub inactive: AtomicU64,
    /// What services believed of their queues when they subscribed.
    pub drift: Drift,
}

/// How what services believe of their queues differs from what is stored, as they subscribe to them.
#[derive(Debug, Default)]
pub struct Drift {
    /// Services that were right, or did not say what they believe (below version 19).
    pub none: AtomicU64,
    /// Services that had more queues than they believed.
    pub more: AtomicU64,
    /// Queues that they did not believe to have.
    pub more_queues: AtomicU64,
    /// Services that had fewer.
    pub fewer: AtomicU64,
    /// Queues that they believed to have.
    pub fewer_queues: AtomicU64,
    /// Services that had as many, but not the same.
    pub different: AtomicU64,
}

impl Drift {
    /// Notes what a service believed and what is stored.
    pub fn note(&self, expected: ServiceQueues, stored: ServiceQueues) {
        let difference = stored.count.saturating_sub(expected.count);
        if expected.count == UNKNOWN || (difference == 0 && expected.hash == stored.hash) {
            Counters::count(&self.none);
        } else if difference > 0 {
            Counters::count(&self.more);
            Counters::add(&self.more_queues, difference.unsigned_abs());
        } else if difference < 0 {
            Counters::count(&self.fewer);
            Counters::add(&self.fewer_queues, difference.unsigned_abs());
        } else {
            Counters::count(&self.different);
        }
    }
}

/// The number of queues that a service says which does not know it.
const UNKNOWN: i64 = -1;

impl Counters {
    /// Adds one.
    pub fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `n`.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// What a connection's job needs.
#[derive(Clone)]
pub struct JobContext {
    /// Shared by all connections.
    pub services: Arc<Services>,
    /// This connection's session.
    pub session: Rc<Session>,
    /// This connection's state.
    pub core: CoreRef,
    /// How others reach this connection.
    pub me: ConnectionRef,
}
