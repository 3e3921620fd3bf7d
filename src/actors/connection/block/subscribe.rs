//! The subscriptions of a segment.
//!
//! The registry is told first, then the store is read: a message that is committed after the read finds the new
//! subscriber in the registry. A subscription comes into force in the connection with its answer, so that no message
//! precedes its `SOK`; what arrives in between is fetched right after.

use super::deliver::announce_ended;
use super::step::{Activation, First, Segment, Step};
use super::store_error;
use crate::actors::connection::services::JobContext;
use crate::actors::mailbox::SendError;
use crate::actors::registry::Epoch;
use crate::protocol::QueueId;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::response::Response;
use crate::store::{Peeked, StoreError};

/// Subscribes to the queues of the segment.
pub async fn subscribe(cx: &JobContext, segment: &mut Segment) {
    let wanted = begin(cx, segment);
    if wanted.is_empty() {
        return;
    }
    let queues: Vec<QueueId> = wanted.iter().map(|w| w.queue).collect();
    let epochs = match register(cx, &queues).await {
        Ok(epochs) => epochs,
        Err(_) => return fail(cx, segment, &wanted, &ErrorType::Internal),
    };
    match peek(cx, &wanted).await {
        Ok(firsts) => answer(segment, wanted, epochs, firsts),
        Err(failure) => fail(cx, segment, &wanted, &store_error(&failure)),
    }
}

/// A subscription being made.
struct Wanted {
    position: usize,
    queue: QueueId,
    peek: bool,
}

fn begin(cx: &JobContext, segment: &mut Segment) -> Vec<Wanted> {
    let mut core = cx.core.borrow_mut();
    let mut wanted = Vec::new();
    for (position, planned) in segment.steps.iter_mut().enumerate() {
        let Step::Subscribe { queue, peek, .. } = planned.step else { continue };
        match core.begin_subscription(queue) {
            Ok(()) => wanted.push(Wanted { position, queue, peek }),
            Err(_) => {
                let prohibited = ErrorType::Cmd(CommandError::Prohibited);
                planned.step = Step::answered(Response::Err(prohibited));
            }
        }
    }
    wanted
}

async fn register(cx: &JobContext, queues: &[QueueId]) -> Result<Vec<Epoch>, SendError> {
    let (epochs, displaced) = cx.services.registry.subscribe(&cx.me, queues).await?;
    announce_ended(displaced).await;
    Ok(epochs)
}

/// The first messages of the queues, in the order of `wanted`; at most as many as the outbound queue takes.
async fn peek(cx: &JobContext, wanted: &[Wanted]) -> Result<Vec<First>, StoreError> {
    let queues: Vec<QueueId> = wanted.iter().filter(|w| w.peek).map(|w| w.queue).collect();
    let mut peeked = Vec::new().into_iter();
    if !queues.is_empty() {
        let room = cx.core.borrow().outbound.room();
        peeked = cx.services.store.first_messages(&queues, room).await?.into_iter();
    }
    let firsts = wanted.iter().map(|w| match w.peek.then(|| peeked.next()).flatten() {
        Some(Peeked::Message(first)) => First::Message(first),
        Some(Peeked::Waiting) => First::Waiting,
        Some(Peeked::Empty) | None => First::Nothing,
    });
    Ok(firsts.collect())
}

fn answer(segment: &mut Segment, wanted: Vec<Wanted>, epochs: Vec<Epoch>, firsts: Vec<First>) {
    for ((wanted, epoch), first) in wanted.into_iter().zip(epochs).zip(firsts) {
        let Some(planned) = segment.steps.get_mut(wanted.position) else { continue };
        let step = std::mem::replace(&mut planned.step, Step::answered(Response::Ok));
        if let Step::Subscribe { answer, .. } = step {
            planned.step = Step::answered(answer);
            planned.activation = Some(Activation { queue: wanted.queue, epoch, first });
        }
    }
}

/// The registry keeps what it was told: a delivery that finds no subscription here is dropped, the message stays stored.
fn fail(cx: &JobContext, segment: &mut Segment, wanted: &[Wanted], reason: &ErrorType) {
    let mut core = cx.core.borrow_mut();
    for Wanted { position, queue, .. } in wanted {
        core.subscriptions.abandon(*queue);
        if let Some(planned) = segment.steps.get_mut(*position) {
            planned.step = Step::answered(Response::Err(reason.clone()));
        }
    }
}
