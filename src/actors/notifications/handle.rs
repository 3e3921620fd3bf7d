//! The actor as its askers see it.

use std::sync::Arc;

use actix::Actor;
use actix_rt::ArbiterHandle;

use super::core::{Core, Subscribed, Subscription};
use super::journal::Journal;
use super::{
    AreSubscribed, Close, ConnectionClosed, Expire, FindServices, NotificationDelivery, NotificationMetrics, Notify,
    RemoveNotifiers, Subscribe, SubscribeService, Take, Unsubscribe,
};
use crate::actors::mailbox::{Gate, MailboxMetrics, SendError, Sender};
use crate::actors::registry::{ConnectionId, ConnectionRef, ServiceSubscribed};
use crate::actors::supervision::Alarm;
use crate::protocol::{QueueId, ServiceId};
use crate::store::Timestamp;
use crate::store::files::notification::Notification;

/// Handles to the actor. Whoever finds its mailbox full waits.
#[derive(Clone, Debug)]
pub struct NotificationsHandle {
    notify: Sender<Notify>,
    subscribe: Sender<Subscribe>,
    subscribe_service: Sender<SubscribeService>,
    are_subscribed: Sender<AreSubscribed>,
    unsubscribe: Sender<Unsubscribe>,
    closed: Sender<ConnectionClosed>,
    find_services: Sender<FindServices>,
    remove: Sender<RemoveNotifiers>,
    take: Sender<Take>,
    expire: Sender<Expire>,
    close: Sender<Close>,
}

impl NotificationsHandle {
    /// Starts the actor on `arbiter` with room for `capacity` messages.
    pub fn start(
        arbiter: &ArbiterHandle,
        capacity: usize,
        core: Core,
        journal: Option<Journal>,
        metrics: (Arc<MailboxMetrics>, Arc<NotificationMetrics>),
        alarm: &Arc<Alarm>,
    ) -> Self {
        let ((mailbox, metrics), vital) = (metrics, alarm.vital("notifications"));
        let actor = NotificationDelivery::start_in_arbiter(arbiter, move |_| {
            NotificationDelivery::new(core, journal, metrics, vital)
        });
        let gate = Gate::new(capacity, mailbox);
        NotificationsHandle {
            notify: Sender::new(&actor, Arc::clone(&gate)),
            subscribe: Sender::new(&actor, Arc::clone(&gate)),
            subscribe_service: Sender::new(&actor, Arc::clone(&gate)),
            are_subscribed: Sender::new(&actor, Arc::clone(&gate)),
            unsubscribe: Sender::new(&actor, Arc::clone(&gate)),
            closed: Sender::new(&actor, Arc::clone(&gate)),
            find_services: Sender::new(&actor, Arc::clone(&gate)),
            remove: Sender::new(&actor, Arc::clone(&gate)),
            take: Sender::new(&actor, Arc::clone(&gate)),
            expire: Sender::new(&actor, Arc::clone(&gate)),
            close: Sender::new(&actor, gate),
        }
    }

    /// A message was stored that asks for a notification.
    pub async fn notify(&self, notification: Notification, service: Option<ServiceId>) -> Result<(), SendError> {
        self.notify.post(Notify { notification, service }).await
    }

    /// Subscribes a connection to notifiers. Answers what became of each subscription, and of that of the service.
    pub async fn subscribe(
        &self,
        connection: &ConnectionRef,
        service: Option<ServiceId>,
        subscriptions: Vec<Subscription>,
    ) -> Result<(Vec<Subscribed>, Option<ServiceSubscribed>), SendError> {
        self.subscribe.send(Subscribe { connection: Arc::clone(connection), service, subscriptions }).await
    }

    /// Makes a connection the one of its service.
    pub async fn subscribe_service(
        &self,
        connection: &ConnectionRef,
        service: ServiceId,
    ) -> Result<ServiceSubscribed, SendError> {
        self.subscribe_service.send(SubscribeService { connection: Arc::clone(connection), service }).await
    }

    /// Whether a connection is the subscriber of notifiers, in their order.
    pub async fn are_subscribed(
        &self,
        connection: ConnectionId,
        notifiers: Vec<QueueId>,
    ) -> Result<Vec<bool>, SendError> {
        self.are_subscribed.send(AreSubscribed { connection, notifiers }).await
    }

    /// Forgets a connection's subscriptions.
    pub async fn unsubscribe(&self, connection: ConnectionId, notifiers: Vec<QueueId>) -> Result<(), SendError> {
        self.unsubscribe.send(Unsubscribe { connection, notifiers }).await
    }

    /// A connection that had subscribed to something has ended.
    pub async fn closed(&self, closed: ConnectionClosed) -> Result<(), SendError> {
        self.closed.send(closed).await
    }

    /// The connections of services, in their order.
    pub async fn find_services(&self, services: Vec<ServiceId>) -> Result<Vec<Option<ConnectionRef>>, SendError> {
        self.find_services.send(FindServices { services }).await
    }

    /// Forgets notifiers; answers who was subscribed.
    pub async fn remove(
        &self,
        notifiers: Vec<(QueueId, Option<ServiceId>)>,
    ) -> Result<Vec<(QueueId, ConnectionRef)>, SendError> {
        self.remove.send(RemoveNotifiers { notifiers }).await
    }

    /// What waits for a connection; what it has taken before was sent.
    pub async fn take(&self, connection: ConnectionId, limit: usize) -> Result<Vec<Notification>, SendError> {
        self.take.send(Take { connection, limit }).await
    }

    /// Drops what is too old; answers how many.
    pub async fn expire(&self, before: Timestamp) -> Result<u64, SendError> {
        self.expire.send(Expire { before }).await
    }

    /// Writes what waits for the next start.
    pub async fn close(&self) -> Result<(), SendError> {
        self.close.send(Close).await
    }

    /// The mailbox, for its depth and metrics.
    pub fn gate(&self) -> &Gate {
        self.notify.gate()
    }
}
