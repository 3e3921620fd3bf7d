//! Fetching messages for subscriptions that could not take them when they were sent.

use std::time::Duration;

use super::deliver::encrypt_stored;
use super::event::Delivery;
use super::services::JobContext;
use super::subscription::Delivered;
use crate::protocol::QueueId;
use crate::store::{FirstMessage, Peeked};

/// Queues asked about at a time; of their messages no more are read than the outbound queue takes.
pub const PAGE: usize = 128;

/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// Asks the store for the first messages of queues that have something to fetch, and delivers what it has.
pub async fn fetch(cx: JobContext) {
    let (queues, room) = {
        let mut core = cx.core.borrow_mut();
        (core.subscriptions.take_wanted(PAGE), core.outbound.room())
    };
    if queues.is_empty() {
        return;
    }
    match cx.services.store.first_messages(&queues, room).await {
        Ok(peeked) => deliver(&cx, queues, peeked),
        Err(failure) => {
            tracing::debug!(%failure, "messages could not be fetched");
            tokio::time::sleep(RETRY).await;
            let mut core = cx.core.borrow_mut();
            queues.into_iter().for_each(|queue| core.subscriptions.want(queue));
        }
    }
}

fn deliver(cx: &JobContext, queues: Vec<QueueId>, peeked: Vec<Peeked>) {
    let mut core = cx.core.borrow_mut();
    for (queue, peeked) in queues.into_iter().zip(peeked) {
        match peeked {
            Peeked::Empty => {}
            Peeked::Waiting => core.subscriptions.want(queue),
            Peeked::Message(first) => {
                let FirstMessage { message, dh_secret } = *first;
                let noted = Delivered { id: message.id, sequence: message.sequence };
                let body = encrypt_stored(&message, &dh_secret);
                core.deliver(Delivery { queue, message: noted, body });
            }
        }
    }
}
