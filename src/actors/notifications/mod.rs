//! Notification delivery: tells notifiers that queues got messages.
//!
//! One actor for the whole process, on an arbiter of its own. It owns which connection is subscribed to which notifier
//! ([`core`]), what waits for each ([`pending`]), and what of that is on disk ([`journal`]). Everything happens because
//! somebody asked or a window ended: while nothing waits there is no timer, no message and no query.
//!
//! It never waits for a connection: a connection is told that something waits, and takes it when it has sent what it took
//! before. So a slow notifier keeps its own notifications waiting, bounded by the limits, and holds up nobody.
//!
//! It says no by dropping the oldest of what waits, which is counted; whoever notifies waits for a place in the mailbox. It
//! stops with the system, after [`Close`] has written what waits.

pub mod core;
mod handle;
pub mod journal;
mod outlet;
pub mod pending;
pub mod restore;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message, MessageResult, ResponseFuture};
use tokio::time::Instant;

use self::core::{Core, Subscribed, Subscription, Totals};
pub use self::handle::NotificationsHandle;
use self::journal::Journal;
use super::connection::ConnectionEvent;
use super::mailbox::{Letter, SendError};
use super::registry::{ConnectionId, ConnectionRef, ServiceSubscribed};
use super::supervision::Vital;
use crate::protocol::{QueueId, ServiceId};
use crate::store::Timestamp;
use crate::store::files::notification::Notification;

/// How long what came is kept from the journal: what is delivered meanwhile is never written.
const JOURNAL_INTERVAL: Duration = Duration::from_secs(1);

/// A message was stored that asks for a notification.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Notify {
    /// The notification.
    pub notification: Notification,
    /// The service of its notifier, as the store had it.
    pub service: Option<ServiceId>,
}

/// Subscribe a connection to notifiers (`NSUB`).
#[derive(Message)]
#[rtype(result = "(Vec<Subscribed>, Option<ServiceSubscribed>)")]
pub struct Subscribe {
    /// The connection.
    pub connection: ConnectionRef,
    /// The service that it is.
    pub service: Option<ServiceId>,
    /// The notifiers.
    pub subscriptions: Vec<Subscription>,
}

/// Make a connection the one of its service (`NSUBS`).
#[derive(Message)]
#[rtype(result = "ServiceSubscribed")]
pub struct SubscribeService {
    /// The connection.
    pub connection: ConnectionRef,
    /// The service.
    pub service: ServiceId,
}

/// Is this connection the subscriber of these notifiers?
#[derive(Message)]
#[rtype(result = "Vec<bool>")]
pub struct AreSubscribed {
    /// The connection.
    pub connection: ConnectionId,
    /// The notifiers.
    pub notifiers: Vec<QueueId>,
}

/// Forget a connection's subscriptions to these notifiers.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Unsubscribe {
    /// The connection.
    pub connection: ConnectionId,
    /// The notifiers.
    pub notifiers: Vec<QueueId>,
}

/// A connection that had subscribed to something has ended. What it took last counts as delivered if it was `sent`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ConnectionClosed {
    /// The connection.
    pub connection: ConnectionId,
    /// The notifiers that it had subscribed to; `None`: too many for it to know.
    pub notifiers: Option<Vec<QueueId>>,
    /// The service that it was.
    pub service: Option<ServiceId>,
    /// Whether all that it has taken was written to its socket.
    pub sent: bool,
}

/// Which connections do these services of notifiers have?
#[derive(Message)]
#[rtype(result = "Vec<Option<ConnectionRef>>")]
pub struct FindServices {
    /// The services.
    pub services: Vec<ServiceId>,
}

/// Forget notifiers that were replaced or removed, and what waits for them. Answers who was subscribed, to be told by the
/// asker.
#[derive(Message)]
#[rtype(result = "Vec<(QueueId, ConnectionRef)>")]
pub struct RemoveNotifiers {
    /// The notifiers with their services.
    pub notifiers: Vec<(QueueId, Option<ServiceId>)>,
}

/// What waits for this connection? What it has taken before was sent.
#[derive(Message)]
#[rtype(result = "Vec<Notification>")]
pub struct Take {
    /// The connection.
    pub connection: ConnectionId,
    /// How many it takes at most.
    pub limit: usize,
}

/// Drop notifications of messages that were sent before this.
#[derive(Message, Debug)]
#[rtype(result = "u64")]
pub struct Expire {
    /// When.
    pub before: Timestamp,
}

/// Write what waits for the next start; answered when it is done.
#[derive(Message, Debug)]
#[rtype(result = "()")]
pub struct Close;

macro_rules! debug_names_nothing {
    ($($message:ident),*) => {$(
        impl std::fmt::Debug for $message {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($message))
            }
        }
    )*};
}

debug_names_nothing!(
    Notify,
    Subscribe,
    SubscribeService,
    AreSubscribed,
    Unsubscribe,
    ConnectionClosed,
    FindServices,
    RemoveNotifiers,
    Take
);

/// What happened, for the metrics: as of the last message.
#[derive(Debug, Default)]
pub struct NotificationMetrics {
    /// Notifications that wait now.
    pub pending: AtomicU64,
    /// Notifiers for which something waits now.
    pub notifiers: AtomicU64,
    /// Notifications that were taken by their connections and are not confirmed, now.
    pub in_flight: AtomicU64,
    /// Subscriptions to single notifiers, now.
    pub subscriptions: AtomicU64,
    /// Notifications that were handed in.
    pub notified: AtomicU64,
    /// Notifications that were written to connections.
    pub delivered: AtomicU64,
    /// Notifications dropped because too many waited for their notifier.
    pub dropped_notifier: AtomicU64,
    /// Notifications dropped because too many waited in all.
    pub dropped_total: AtomicU64,
    /// Notifications dropped because they were too old.
    pub expired: AtomicU64,
    /// Notifications dropped because their notifier was removed.
    pub removed: AtomicU64,
    /// Windows that were opened.
    pub windows: AtomicU64,
}

impl NotificationMetrics {
    fn set(&self, core: &mut Core) {
        let Totals { notified, delivered, dropped, expired, removed, windows } = core.totals;
        let values = [
            (&self.pending, core.pending().len() as u64),
            (&self.notifiers, core.pending().notifiers() as u64),
            (&self.in_flight, core.in_flight() as u64),
            (&self.subscriptions, core.subscriptions() as u64),
            (&self.notified, notified),
            (&self.delivered, delivered),
            (&self.dropped_notifier, dropped.notifier),
            (&self.dropped_total, dropped.total),
            (&self.expired, expired),
            (&self.removed, removed),
            (&self.windows, windows),
        ];
        for (metric, value) in values {
            metric.store(value, Ordering::Relaxed);
        }
    }
}

/// The actor. See the module.
pub struct NotificationDelivery {
    core: Core,
    journal: Option<Journal>,
    metrics: Arc<NotificationMetrics>,
    /// Whether a timer runs that ends windows.
    timing: bool,
    /// Whether a timer runs that writes the journal.
    writing: bool,
    _vital: Vital,
}

impl NotificationDelivery {
    /// Of what `core` holds; without a journal nothing is written.
    pub fn new(core: Core, journal: Option<Journal>, metrics: Arc<NotificationMetrics>, vital: Vital) -> Self {
        NotificationDelivery { core, journal, metrics, timing: false, writing: false, _vital: vital }
    }

    /// After every message: timers run only while there is something to wait for.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        self.metrics.set(&mut self.core);
        if !self.timing
            && let Some(at) = self.core.next_window()
        {
            self.timing = true;
            ctx.run_later(at.saturating_duration_since(Instant::now()), Self::end_windows);
        }
        if !self.writing && self.journal.is_some() && self.core.pending().has_unwritten() {
            self.writing = true;
            ctx.run_later(JOURNAL_INTERVAL, Self::write);
        }
    }

    fn end_windows(&mut self, ctx: &mut Context<Self>) {
        self.timing = false;
        let now = Instant::now();
        while let Some(connection) = self.core.end_window(now) {
            match connection.events.try_post(ConnectionEvent::NotificationsWait) {
                Ok(()) => {}
                Err(SendError::Full) => self.core.reopen_window(connection.id, now),
                // Its end is on its way here.
                Err(SendError::Stopped) => {}
            }
        }
        self.go_on(ctx);
    }

    fn write(&mut self, ctx: &mut Context<Self>) {
        self.writing = false;
        if let Some(journal) = &mut self.journal
            && journal.is_idle()
        {
            let (added, removed) = self.core.pending().take_unwritten();
            journal.write(added, removed);
        }
        self.go_on(ctx);
    }
}

impl Actor for NotificationDelivery {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.go_on(ctx);
    }
}

macro_rules! handle {
    ($message:ident, $handle:expr) => {
        impl Handler<Letter<$message>> for NotificationDelivery {
            type Result = MessageResult<Letter<$message>>;

            fn handle(&mut self, letter: Letter<$message>, ctx: &mut Self::Context) -> Self::Result {
                let (message, _place) = letter.open();
                let handle: fn(&mut Core, $message) -> <$message as Message>::Result = $handle;
                let answer = handle(&mut self.core, message);
                self.go_on(ctx);
                MessageResult(answer)
            }
        }
    };
}

handle!(Notify, |core, Notify { notification, service }| core.notify(notification, service, Instant::now()));
handle!(Subscribe, |core, Subscribe { connection, service, subscriptions }| {
    core.subscribe(&connection, service, &subscriptions, Instant::now())
});
handle!(SubscribeService, |core, SubscribeService { connection, service }| {
    core.subscribe_service(&connection, service, Instant::now())
});
handle!(AreSubscribed, |core, AreSubscribed { connection, notifiers }| core.are_subscribed(connection, &notifiers));
handle!(Unsubscribe, |core, Unsubscribe { connection, notifiers }| core.unsubscribe(connection, &notifiers));
handle!(ConnectionClosed, |core, ConnectionClosed { connection, notifiers, service, sent }| {
    if sent {
        core.confirm(connection);
    }
    core.close(connection, notifiers.as_deref(), service);
});
handle!(FindServices, |core, FindServices { services }| core.find_services(&services));
handle!(RemoveNotifiers, |core, RemoveNotifiers { notifiers }| core.remove(&notifiers));
handle!(Take, |core, Take { connection, limit }| core.take(connection, limit));
handle!(Expire, |core, Expire { before }| core.expire(before));

impl Handler<Letter<Close>> for NotificationDelivery {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, letter: Letter<Close>, _: &mut Self::Context) -> Self::Result {
        let (Close, place) = letter.open();
        let closed = self.journal.take().map(|journal| journal.close(self.core.pending().all().cloned().collect()));
        Box::pin(async move {
            let _place = place;
            if let Some(closed) = closed {
                closed.await;
            }
        })
    }
}
