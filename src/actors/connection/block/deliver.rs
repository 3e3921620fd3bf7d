//! Telling subscribers of what a segment changed: messages for them, queues that are gone.
//!
//! The one whose command causes a delivery waits for the place in the subscriber's mailbox; a subscriber always takes its
//! mail at once (what it can not send it fetches later), so nobody waits for a slow client.

use super::step::{PendingDelivery, Segment};
use crate::actors::connection::deliver::encrypt_sent;
use crate::actors::connection::event::{ConnectionEvent, Delivery};
use crate::actors::connection::services::JobContext;
use crate::actors::connection::subscription::{Delivered, Source};
use crate::actors::registry::{ConnectionRef, Displaced, DisplacedService};
use crate::protocol::{QueueId, ServiceId};
use crate::store::Audience;

/// Delivers the messages of the segment and announces its deletions.
pub async fn deliver(cx: &JobContext, segment: &mut Segment) {
    let deliveries = std::mem::take(&mut segment.deliveries);
    if !deliveries.is_empty() {
        let queues: Vec<_> = deliveries.iter().map(|delivery| (delivery.sending.queue, delivery.service)).collect();
        let found = find(cx, &queues).await;
        for (delivery, subscriber) in deliveries.into_iter().zip(found) {
            let Some(subscriber) = subscriber else { continue };
            deliver_to(cx, &subscriber, &delivery).await;
        }
    }
    announce_doubtful(cx, std::mem::take(&mut segment.doubtful)).await;
    announce_deleted(cx, std::mem::take(&mut segment.deleted)).await;
}

/// The subscribers of queues, given with the services that they are associated with: a service's queues have the service's
/// connection.
async fn find(cx: &JobContext, queues: &[(QueueId, Option<ServiceId>)]) -> Vec<Option<ConnectionRef>> {
    let registry = &cx.services.registry;
    let (mut plain, mut of_services, mut services) = (Vec::new(), Vec::new(), Vec::new());
    for (queue, service) in queues {
        match service {
            None => plain.push(*queue),
            Some(service) => {
                of_services.push(*queue);
                services.push(*service);
            }
        }
    }
    registry.note(&of_services);
    let mut plain = registry.find(&plain).await.unwrap_or_default().into_iter();
    let mut services = registry.find_services(services).await.unwrap_or_default().into_iter();
    let next = |(_, service): &(QueueId, Option<ServiceId>)| match service {
        None => plain.next().flatten(),
        Some(_) => services.next().flatten(),
    };
    queues.iter().map(next).collect()
}

async fn deliver_to(cx: &JobContext, subscriber: &ConnectionRef, delivery: &PendingDelivery) {
    let message = Delivered { id: delivery.sending.id, sequence: delivery.sequence };
    let queue = delivery.sending.queue;
    let pushed = Delivery { queue, message, body: encrypt_sent(&delivery.sending) };
    if subscriber.id == cx.me.id {
        // Who sends to itself gets the message before the answer.
        return cx.core.borrow_mut().deliver(pushed, Source::Pushed);
    }
    if subscriber.events.post(ConnectionEvent::Deliver(pushed)).await.is_err() {
        // It is gone, and gets the message with its next SUB. Should it have had no time to say so (a defect that made it
        // panic), the registry must not remember it for ever.
        let _ = match delivery.service {
            None => cx.services.registry.unsubscribe(subscriber.id, &[queue]).await,
            Some(service) => cx.services.registry.unsubscribe_service(subscriber.id, service).await,
        };
    }
}

/// Lets the subscribers of queues that perhaps got a message, or were deleted, ask the store, once it works again.
async fn announce_doubtful(cx: &JobContext, mut queues: Vec<(QueueId, Option<ServiceId>)>) {
    queues.sort_unstable();
    queues.dedup();
    if queues.is_empty() {
        return;
    }
    let found = find(cx, &queues).await;
    for ((queue, _), subscriber) in queues.into_iter().zip(found) {
        match subscriber {
            Some(subscriber) if subscriber.id == cx.me.id => cx.core.borrow_mut().subscriptions.suspect(queue),
            // Who has gone asks with its next SUB.
            Some(subscriber) => drop(subscriber.events.post(ConnectionEvent::Doubt { queue }).await),
            None => {}
        }
    }
}

/// `DELD` to whoever is subscribed to deleted queues; this connection itself is only made to forget them.
async fn announce_deleted(cx: &JobContext, deleted: Vec<(QueueId, Audience)>) {
    if deleted.is_empty() {
        return;
    }
    let queues: Vec<QueueId> = deleted.iter().map(|(queue, _)| *queue).collect();
    let displaced = cx.services.registry.remove(&queues).await.unwrap_or_default();
    {
        let mut core = cx.core.borrow_mut();
        let own = cx.session.service.as_ref().map(|service| service.id);
        for (queue, audience) in &deleted {
            core.on_own_deletion(*queue, audience.service.is_some() && audience.service == own);
        }
    }
    for Displaced { queue, connection, .. } in displaced {
        if connection.id != cx.me.id {
            let _ = connection.events.post(ConnectionEvent::Deleted { queue }).await;
        }
    }
    let of_services = deleted.iter().filter_map(|(queue, audience)| Some((*queue, audience.service?)));
    announce_to_services(cx, of_services.collect(), |queue| ConnectionEvent::Deleted { queue }).await;
}

/// Tells the connections of services what happened to their queues; this connection knows.
pub async fn announce_to_services(
    cx: &JobContext,
    queues: Vec<(QueueId, ServiceId)>,
    event: impl Fn(QueueId) -> ConnectionEvent,
) {
    let services = queues.iter().map(|(_, service)| *service).collect();
    let found = cx.services.registry.find_services(services).await.unwrap_or_default();
    for ((queue, _), connection) in queues.into_iter().zip(found) {
        if let Some(connection) = connection
            && connection.id != cx.me.id
        {
            let _ = connection.events.post(event(queue)).await;
        }
    }
}

/// `END` to those who lost subscriptions to this connection.
pub async fn announce_ended(displaced: Vec<Displaced>) {
    for Displaced { queue, connection, epoch } in displaced {
        let _ = connection.events.post(ConnectionEvent::Ended { queue, epoch }).await;
    }
}

/// `ENDS` to the connection of the service that this one has taken the place of.
pub async fn announce_service_ended(displaced: Option<DisplacedService>) {
    if let Some(DisplacedService { connection, epoch }) = displaced {
        let _ = connection.events.post(ConnectionEvent::ServiceEnded { epoch }).await;
    }
}
