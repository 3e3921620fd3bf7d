//! Fetching messages for subscriptions that could not take them when they were sent, and those that wait in the queues of a
//! service.

use std::time::Duration;

use super::core::{Answer, Core};
use super::deliver::encrypt_stored;
use super::event::Delivery;
use super::service::Pages;
use super::services::JobContext;
use super::subscription::{Delivered, Source};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{CorrelationId, EntityId, QueueId};
use crate::store::{FirstMessage, Looked, Peeked, StoreError};

/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// Queues of a service that are found at a time: 24 KiB.
pub const PAGE: usize = 1000;

/// Asks the store for the first messages of queues that have something to fetch, as many as the outbound queue takes, and
/// delivers what it has. Without such queues, looks for more of the service.
pub async fn fetch(cx: JobContext) {
    let (queues, room) = {
        let mut core = cx.core.borrow_mut();
        let room = core.outbound.room();
        (core.subscriptions.take_wanted(room), room)
    };
    if queues.is_empty() {
        return turn_page(&cx).await;
    }
    match cx.services.store.first_messages(&queues, room).await {
        Ok(looked) => {
            give_up_absent(&cx, &queues, &looked).await;
            deliver(&cx, queues, looked);
        }
        Err(failure) => {
            report_and_wait(&cx, &failure).await;
            let mut core = cx.core.borrow_mut();
            queues.into_iter().for_each(|queue| core.subscriptions.want(queue));
        }
    }
}

async fn report_and_wait(cx: &JobContext, failure: &StoreError) {
    cx.services.store_failures.report(failure);
    tokio::time::sleep(RETRY).await;
}

/// Forgets in the registry the queues that are gone: who deleted them may not know that he did, and then tells nobody.
async fn give_up_absent(cx: &JobContext, queues: &[QueueId], looked: &[Looked]) {
    let absent = queues.iter().zip(looked).filter(|(_, looked)| matches!(looked.first, Peeked::Absent));
    let absent: Vec<QueueId> = absent.map(|(queue, _)| *queue).collect();
    if !absent.is_empty() {
        // Fails only when the registry has stopped, and with it all subscriptions.
        let _ = cx.services.registry.unsubscribe(cx.me.id, &absent).await;
    }
}

fn deliver(cx: &JobContext, queues: Vec<QueueId>, looked: Vec<Looked>) {
    let own = cx.session.service_in(ServiceRole::Messaging);
    let mut core = cx.core.borrow_mut();
    for (queue, Looked { service, first }) in queues.into_iter().zip(looked) {
        if core.subscriptions.is_of_service(&queue) && service != own {
            // What was sent to it was from before it left. Who took it away says so.
            core.subscriptions.forget(queue);
            continue;
        }
        match first {
            Peeked::Empty => core.subscriptions.settle(queue),
            Peeked::Absent => core.on_deleted(queue),
            Peeked::Unreadable(failure) => {
                // It does not become readable by being asked for again; the next SUB is told, as is who asked for all.
                cx.services.store_failures.report(&failure);
                if core.subscriptions.is_paged(&queue) {
                    core.push_answers(&[unreadable(queue)]);
                }
                core.subscriptions.settle(queue);
            }
            Peeked::Waiting => core.subscriptions.want(queue),
            Peeked::Message(first) => {
                let FirstMessage { message, dh_secret } = *first;
                let noted = Delivered { id: message.id, sequence: message.sequence };
                let body = encrypt_stored(&message, &dh_secret);
                core.deliver(Delivery { queue, message: noted, body }, Source::Fetched);
            }
        }
    }
}

fn unreadable(queue: QueueId) -> Answer {
    (CorrelationId::NONE, queue.into(), Response::Err(ErrorType::Store("failed".to_owned())))
}

/// Finds the next queues of the service that have messages, once those before are done; after the last ones, `ALLS`.
async fn turn_page(cx: &JobContext) {
    let (id, epoch, pages) = {
        let core = cx.core.borrow();
        let Some(service) = &core.service else { return };
        (service.id, service.epoch(), service.pages)
    };
    let found = match pages {
        Pages::Done => return,
        Pages::Last => return finish_pages(cx),
        Pages::Next(after) => cx.services.store.waiting_queues(id, after, PAGE).await,
    };
    match found {
        Ok(queues) => {
            let mut core = cx.core.borrow_mut();
            // Another connection may have taken over, and this one again.
            if core.service.as_ref().is_some_and(|service| service.epoch() == epoch && service.pages == pages) {
                note_page(&mut core, queues);
            }
        }
        Err(failure) => report_and_wait(cx, &failure).await,
    }
}

fn note_page(core: &mut Core, queues: Vec<QueueId>) {
    let Some(service) = &mut core.service else { return };
    service.pages = match queues.last() {
        Some(last) if queues.len() == PAGE => Pages::Next(Some(*last)),
        _ => Pages::Last,
    };
    queues.into_iter().for_each(|queue| core.subscriptions.page(queue));
}

fn finish_pages(cx: &JobContext) {
    let mut core = cx.core.borrow_mut();
    if core.subscriptions.are_pages_done()
        && let Some(service) = &mut core.service
    {
        service.pages = Pages::Done;
        core.push_answers(&[(CorrelationId::NONE, EntityId::NONE, Response::Alls)]);
    }
}
