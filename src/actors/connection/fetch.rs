//! Fetching messages for subscriptions that could not take them when they were sent.

use std::time::Duration;

use super::deliver::encrypt_stored;
use super::event::Delivery;
use super::services::JobContext;
use super::subscription::{Delivered, Source};
use crate::protocol::QueueId;
use crate::store::{FirstMessage, Peeked};

/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// Asks the store for the first messages of queues that have something to fetch, as many as the outbound queue takes, and
/// delivers what it has.
pub async fn fetch(cx: JobContext) {
    let (queues, room) = {
        let mut core = cx.core.borrow_mut();
        let room = core.outbound.room();
        (core.subscriptions.take_wanted(room), room)
    };
    if queues.is_empty() {
        return;
    }
    match cx.services.store.first_messages(&queues, room).await {
        Ok(looked) => {
            let peeked: Vec<Peeked> = looked.into_iter().map(|looked| looked.first).collect();
            give_up_absent(&cx, &queues, &peeked).await;
            deliver(&cx, queues, peeked);
        }
        Err(failure) => {
            cx.services.store_failures.report(&failure);
            tokio::time::sleep(RETRY).await;
            let mut core = cx.core.borrow_mut();
            queues.into_iter().for_each(|queue| core.subscriptions.want(queue));
        }
    }
}

/// Forgets in the registry the queues that are gone: who deleted them may not know that he did, and then tells nobody.
async fn give_up_absent(cx: &JobContext, queues: &[QueueId], peeked: &[Peeked]) {
    let absent = queues.iter().zip(peeked).filter(|(_, peeked)| matches!(peeked, Peeked::Absent));
    let absent: Vec<QueueId> = absent.map(|(queue, _)| *queue).collect();
    if !absent.is_empty() {
        // Fails only when the registry has stopped, and with it all subscriptions.
        let _ = cx.services.registry.unsubscribe(cx.me.id, &absent).await;
    }
}

fn deliver(cx: &JobContext, queues: Vec<QueueId>, peeked: Vec<Peeked>) {
    let mut core = cx.core.borrow_mut();
    for (queue, peeked) in queues.into_iter().zip(peeked) {
        match peeked {
            Peeked::Empty => {}
            Peeked::Absent => core.on_deleted(queue),
            // It does not become readable by being asked for again; the next SUB is told.
            Peeked::Unreadable(failure) => {
                cx.services.store_failures.report(&failure);
            }
            Peeked::Waiting => core.subscriptions.want(queue),
            Peeked::Message(first) => {
                let FirstMessage { message, dh_secret } = *first;
                let noted = Delivered { id: message.id, sequence: message.sequence };
                let body = encrypt_stored(&message, &dh_secret);
                core.deliver(Delivery { queue, message: noted, body }, Source::Read);
            }
        }
    }
}
