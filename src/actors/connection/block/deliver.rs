//! Telling subscribers of what a segment changed: messages for them, queues that are gone.
//!
//! The one whose command causes a delivery waits for the place in the subscriber's mailbox; a subscriber always takes its
//! mail at once (what it can not send it fetches later), so nobody waits for a slow client.

use super::step::Segment;
use crate::actors::connection::deliver::encrypt_sent;
use crate::actors::connection::event::{ConnectionEvent, Delivery};
use crate::actors::connection::services::JobContext;
use crate::actors::connection::subscription::{Delivered, Source};
use crate::actors::registry::Displaced;
use crate::protocol::QueueId;

/// Delivers the messages of the segment and announces its deletions.
pub async fn deliver(cx: &JobContext, segment: &mut Segment) {
    let deliveries = std::mem::take(&mut segment.deliveries);
    if !deliveries.is_empty() {
        let queues: Vec<QueueId> = deliveries.iter().map(|d| d.sending.queue).collect();
        let found = cx.services.registry.find(&queues).await.unwrap_or_default();
        for (delivery, subscriber) in deliveries.into_iter().zip(found) {
            let Some(subscriber) = subscriber else { continue };
            let message = Delivered { id: delivery.sending.id, sequence: delivery.sequence };
            let body = encrypt_sent(&delivery.sending);
            let delivery = Delivery { queue: delivery.sending.queue, message, body };
            if subscriber.id == cx.me.id {
                // Who sends to itself gets the message before the answer.
                cx.core.borrow_mut().deliver(delivery, Source::Pushed);
            } else {
                let queue = delivery.queue;
                if subscriber.events.post(ConnectionEvent::Deliver(delivery)).await.is_err() {
                    // It is gone, and gets the message with its next SUB. Should it have had no time to say so (a defect
                    // that made it panic), the registry must not remember it for ever.
                    let _ = cx.services.registry.unsubscribe(subscriber.id, &[queue]).await;
                }
            }
        }
    }
    announce_doubtful(cx, std::mem::take(&mut segment.doubtful)).await;
    announce_deleted(cx, std::mem::take(&mut segment.deleted)).await;
}

/// Lets the subscribers of queues that perhaps got a message, or were deleted, ask the store, once it works again.
async fn announce_doubtful(cx: &JobContext, mut queues: Vec<QueueId>) {
    queues.sort_unstable();
    queues.dedup();
    if queues.is_empty() {
        return;
    }
    let found = cx.services.registry.find(&queues).await.unwrap_or_default();
    for (queue, subscriber) in queues.into_iter().zip(found) {
        match subscriber {
            Some(subscriber) if subscriber.id == cx.me.id => cx.core.borrow_mut().subscriptions.want(queue),
            // Who has gone asks with its next SUB.
            Some(subscriber) => drop(subscriber.events.post(ConnectionEvent::Doubt { queue }).await),
            None => {}
        }
    }
}

/// `DELD` to whoever is subscribed to deleted queues; this connection itself is only made to forget them.
async fn announce_deleted(cx: &JobContext, queues: Vec<QueueId>) {
    if queues.is_empty() {
        return;
    }
    let displaced = cx.services.registry.remove(&queues).await.unwrap_or_default();
    {
        let mut core = cx.core.borrow_mut();
        for queue in &queues {
            core.subscriptions.forget(*queue);
        }
    }
    for Displaced { queue, connection, .. } in displaced {
        if connection.id != cx.me.id {
            let _ = connection.events.post(ConnectionEvent::Deleted { queue }).await;
        }
    }
}

/// `END` to those who lost subscriptions to this connection.
pub async fn announce_ended(displaced: Vec<Displaced>) {
    for Displaced { queue, connection, epoch } in displaced {
        let _ = connection.events.post(ConnectionEvent::Ended { queue, epoch }).await;
    }
}
