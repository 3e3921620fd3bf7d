//! Who is to be notified, and when: the pure part. Time comes in with each call.
//!
//! A connection has an outlet only while something waits for it. Its life: the first notification opens a window; at
//! the window's end the connection is told that something waits; it takes parts of it, each of which confirms that the part
//! before was sent, until nothing is left. What was taken and not confirmed still waits: a connection that ends loses
//! nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::outlet::Outlet;
use super::pending::{Dropped, Limits, Listed, Pending};
use crate::actors::registry::{
    ConnectionId, ConnectionRef, DisplacedService, QueueMap, ServiceConnections, ServiceSubscribed,
};
use crate::protocol::{QueueId, ServiceId};
use crate::store::Timestamp;
use crate::store::files::notification::Notification;

/// Who is notified.
#[derive(Debug)]
enum Subscriber {
    /// A connection that has subscribed to the notifier.
    Connection(ConnectionRef),
    /// The connection of a service that the notifier was associated with not long ago: a notification that was on its way
    /// then does not know it.
    Service(ServiceId),
}

/// A connection that subscribes, or whose service does.
#[derive(Debug)]
pub struct Subscription {
    /// The notifier's ID of the queue.
    pub notifier: QueueId,
    /// Whether the association of the notifier was changed by the one who subscribes.
    pub associated: bool,
}

/// What became of a subscription.
#[derive(Debug, Default)]
pub struct Subscribed {
    /// Whether the connection had it not yet.
    pub new: bool,
    /// Whose it was: a connection of its own, or that of a service.
    pub displaced: Option<ConnectionRef>,
}

/// What happened, since start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Notifications that were handed in.
    pub notified: u64,
    /// Those that were taken and confirmed.
    pub delivered: u64,
    /// Those that were dropped because of a limit.
    pub dropped: Dropped,
    /// Those that were too old.
    pub expired: u64,
    /// Those whose notifier was removed.
    pub removed: u64,
    /// Windows that were opened: nothing else makes anything run.
    pub windows: u64,
}

/// See the module.
pub struct Core {
    subscribers: QueueMap<Subscriber>,
    services: ServiceConnections,
    pending: Pending,
    outlets: HashMap<ConnectionId, Outlet>,
    /// Connections that are told at the given time, in this order: all windows have the same length.
    windows: VecDeque<(Instant, ConnectionId)>,
    interval: Duration,
    /// What happened.
    pub totals: Totals,
}

impl Core {
    /// Nobody to be notified of anything.
    pub fn new(limits: Limits, interval: Duration) -> Self {
        Core {
            subscribers: QueueMap::default(),
            services: ServiceConnections::default(),
            pending: Pending::new(limits),
            outlets: HashMap::new(),
            windows: VecDeque::new(),
            interval,
            totals: Totals::default(),
        }
    }

    /// What waits.
    pub fn pending(&mut self) -> &mut Pending {
        &mut self.pending
    }

    /// Notifications that were taken and are not confirmed.
    pub fn in_flight(&self) -> usize {
        self.outlets.values().map(|outlet| outlet.taken.len()).sum()
    }

    /// Subscriptions to single notifiers.
    pub fn subscriptions(&self) -> usize {
        self.subscribers.len()
    }

    /// A notification that waited before the server was started.
    pub fn restore(&mut self, notification: Notification, service: Option<ServiceId>) {
        let dropped = self.pending.push(notification, service);
        self.totals.dropped.notifier += dropped.notifier;
        self.totals.dropped.total += dropped.total;
    }

    /// A message asks for a notification. `service`: that of its notifier, as the store had it.
    pub fn notify(&mut self, notification: Notification, service: Option<ServiceId>, now: Instant) {
        let notifier = notification.notifier;
        let (target, service) = self.target(&notifier, service);
        self.totals.notified += 1;
        let dropped = self.pending.push(notification, service);
        self.totals.dropped.notifier += dropped.notifier;
        self.totals.dropped.total += dropped.total;
        if let Some(target) = target {
            self.list(notifier, &target, now);
        }
    }

    /// Who is to be notified, and the service that this is for.
    fn target(&self, notifier: &QueueId, service: Option<ServiceId>) -> (Option<ConnectionRef>, Option<ServiceId>) {
        let service = match self.subscribers.get(notifier) {
            Some(Subscriber::Connection(connection)) => return (Some(Arc::clone(connection)), None),
            Some(Subscriber::Service(service)) => Some(*service),
            None => service,
        };
        (service.and_then(|service| self.connection_of(&service)), service)
    }

    fn connection_of(&self, service: &ServiceId) -> Option<ConnectionRef> {
        self.services.get(service).map(|(connection, _)| Arc::clone(connection))
    }

    /// Puts a notifier for which something waits in the line of its connection.
    fn list(&mut self, notifier: QueueId, connection: &ConnectionRef, now: Instant) {
        let Some(line) = self.pending.line(&notifier) else { return };
        if matches!(line.listed, Listed::With(id) | Listed::TakenBy(id) if id == connection.id) {
            return;
        }
        line.listed = Listed::With(connection.id);
        let (windows, totals, opens) = (&mut self.windows, &mut self.totals, now + self.interval);
        let outlet = self.outlets.entry(connection.id).or_insert_with(|| {
            windows.push_back((opens, connection.id));
            totals.windows += 1;
            Outlet::new(connection)
        });
        outlet.ready.push_back(notifier);
    }

    /// A connection subscribes to notifiers, for its service if it has one. Each answer in the order of `subscriptions`.
    pub fn subscribe(
        &mut self,
        connection: &ConnectionRef,
        service: Option<ServiceId>,
        subscriptions: &[Subscription],
        now: Instant,
    ) -> (Vec<Subscribed>, Option<ServiceSubscribed>) {
        let subscribed = service.map(|service| self.subscribe_service(connection, service, now));
        let each = subscriptions.iter().map(|subscription| match service {
            None => self.subscribe_one(connection, subscription.notifier, now),
            Some(service) => self.associate(service, subscription, now),
        });
        (each.collect(), subscribed)
    }

    fn subscribe_one(&mut self, connection: &ConnectionRef, notifier: QueueId, now: Instant) -> Subscribed {
        let before = self.subscribers.insert(notifier, Subscriber::Connection(Arc::clone(connection)));
        let displaced = match before {
            Some(Subscriber::Connection(before)) if before.id == connection.id => {
                return Subscribed { new: false, displaced: None };
            }
            Some(Subscriber::Connection(before)) => Some(before),
            Some(Subscriber::Service(service)) => self.connection_of(&service),
            None => None,
        };
        self.redirect(notifier, None, Some(connection), now);
        Subscribed { new: true, displaced }
    }

    fn associate(&mut self, service: ServiceId, subscription: &Subscription, now: Instant) -> Subscribed {
        let Subscription { notifier, associated } = *subscription;
        let before = match associated {
            true => self.subscribers.insert(notifier, Subscriber::Service(service)),
            // The service had it before: notifications know that.
            false => self.subscribers.remove(&notifier),
        };
        let displaced = match before {
            Some(Subscriber::Connection(before)) => Some(before),
            Some(Subscriber::Service(before)) if before != service => self.connection_of(&before),
            _ => None,
        };
        if associated || displaced.is_some() {
            let connection = self.connection_of(&service);
            self.redirect(notifier, Some(service), connection.as_ref(), now);
        }
        Subscribed { new: associated, displaced }
    }

    /// What waits for a notifier goes to another connection from now on.
    fn redirect(
        &mut self,
        notifier: QueueId,
        service: Option<ServiceId>,
        connection: Option<&ConnectionRef>,
        now: Instant,
    ) {
        let Some(line) = self.pending.line(&notifier) else { return };
        line.service = service;
        line.listed = Listed::Nowhere;
        if let Some(connection) = connection {
            self.list(notifier, connection, now);
        }
    }

    /// Makes a connection the one of its service: it gets what waits for all of the service's notifiers.
    pub fn subscribe_service(
        &mut self,
        connection: &ConnectionRef,
        service: ServiceId,
        now: Instant,
    ) -> ServiceSubscribed {
        let subscribed = self.services.subscribe(connection, service);
        if let Some(DisplacedService { connection: before, .. }) = &subscribed.displaced {
            self.unlist(before.id);
        }
        for notifier in self.pending.of_service(service) {
            let own = matches!(self.subscribers.get(&notifier), Some(Subscriber::Connection(_)));
            if !own {
                self.list(notifier, connection, now);
            }
        }
        subscribed
    }

    /// Whether a connection is the subscriber of notifiers, in their order.
    pub fn are_subscribed(&self, connection: ConnectionId, notifiers: &[QueueId]) -> Vec<bool> {
        let subscribed = |notifier| match self.subscribers.get(notifier) {
            Some(Subscriber::Connection(subscriber)) => subscriber.id == connection,
            _ => false,
        };
        notifiers.iter().map(subscribed).collect()
    }

    /// Forgets subscriptions of a connection to single notifiers: those that others have taken over stay.
    pub fn unsubscribe(&mut self, connection: ConnectionId, notifiers: &[QueueId]) {
        for notifier in notifiers {
            if let Some(Subscriber::Connection(subscriber)) = self.subscribers.get(notifier)
                && subscriber.id == connection
            {
                self.subscribers.remove(notifier);
                if let Some(line) = self.pending.line(notifier) {
                    line.listed = Listed::Nowhere;
                }
            }
        }
        self.shrink();
    }

    /// What a connection has taken was sent.
    pub fn confirm(&mut self, connection: ConnectionId) {
        if let Some(outlet) = self.outlets.get_mut(&connection) {
            let sent = outlet.confirm();
            self.totals.delivered += sent.len() as u64;
            self.pending.delivered(&sent);
        }
    }

    /// A connection has ended. `notifiers`: those that it has subscribed to, if it knows them all; else they are looked
    /// for. What it has taken and not confirmed still waits.
    pub fn close(&mut self, connection: ConnectionId, notifiers: Option<&[QueueId]>, service: Option<ServiceId>) {
        match notifiers {
            Some(notifiers) => self.unsubscribe(connection, notifiers),
            None => {
                let is_its =
                    |subscriber: &Subscriber| matches!(subscriber, Subscriber::Connection(c) if c.id == connection);
                self.subscribers.retain(|_, subscriber| !is_its(subscriber));
                self.shrink();
            }
        }
        if let Some(service) = service {
            self.services.unsubscribe(connection, &service);
        }
        self.unlist(connection);
    }

    /// Nothing waits for this connection any more, but for whoever subscribes next.
    fn unlist(&mut self, connection: ConnectionId) {
        let Some(outlet) = self.outlets.remove(&connection) else { return };
        self.windows.retain(|(_, waiting)| *waiting != connection);
        self.totals.dropped.notifier += self.pending.give_back(&outlet.taken);
        for notifier in outlet.ready.into_iter().chain(outlet.taken_for) {
            if let Some(line) = self.pending.line(&notifier)
                && matches!(line.listed, Listed::With(id) | Listed::TakenBy(id) if id == connection)
            {
                line.listed = Listed::Nowhere;
            }
        }
        if self.outlets.is_empty() {
            self.outlets = HashMap::new();
        }
    }

    /// Notifiers that are gone, with their services: what waits for them is dropped. Answers who is to be told.
    pub fn remove(&mut self, notifiers: &[(QueueId, Option<ServiceId>)]) -> Vec<(QueueId, ConnectionRef)> {
        let mut told = Vec::new();
        for (notifier, service) in notifiers {
            let (target, _) = self.target(notifier, *service);
            self.subscribers.remove(notifier);
            self.totals.removed += self.pending.remove(notifier);
            told.extend(target.map(|target| (*notifier, target)));
        }
        self.shrink();
        told
    }

    /// Drops what was sent before `before`; answers how many.
    pub fn expire(&mut self, before: Timestamp) -> u64 {
        let expired = self.pending.expire(before);
        self.totals.expired += expired;
        expired
    }

    /// When the next window ends.
    pub fn next_window(&self) -> Option<Instant> {
        self.windows.front().map(|(at, _)| *at)
    }

    /// A connection whose window has ended: it is to be told that something waits.
    pub fn end_window(&mut self, now: Instant) -> Option<ConnectionRef> {
        self.windows.front().filter(|(at, _)| *at <= now)?;
        let (_, connection) = self.windows.pop_front()?;
        self.outlets.get(&connection).map(|outlet| Arc::clone(&outlet.connection))
    }

    /// A connection could not be told now: it has another window.
    pub fn reopen_window(&mut self, connection: ConnectionId, now: Instant) {
        self.windows.push_back((now + self.interval.max(Duration::from_millis(1)), connection));
    }

    /// What waits for a connection, at most `limit`. What it has taken before was sent. It takes until it gets nothing.
    pub fn take(&mut self, connection: ConnectionId, limit: usize) -> Vec<Notification> {
        self.confirm(connection);
        let Some(outlet) = self.outlets.get_mut(&connection) else { return Vec::new() };
        outlet.go_on(connection, &mut self.pending);
        let mut taken = Vec::new();
        while taken.len() < limit {
            let Some(notifier) = outlet.ready.pop_front() else { break };
            taken.extend(outlet.take_for(connection, notifier, &mut self.pending, limit - taken.len()));
        }
        if taken.is_empty() {
            self.unlist(connection);
        }
        taken
    }

    /// The connections of services, in their order.
    pub fn find_services(&self, services: &[ServiceId]) -> Vec<Option<ConnectionRef>> {
        self.services.find(services)
    }

    fn shrink(&mut self) {
        if self.subscribers.capacity() > 64 && self.subscribers.len() < self.subscribers.capacity() / 4 {
            self.subscribers.shrink_to(self.subscribers.len() * 2);
        }
    }
}
