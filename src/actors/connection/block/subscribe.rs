//! The subscriptions of a segment.
//!
//! The registry is told first, then the store is read: a message that is committed after the read finds the new
//! subscriber in the registry. A subscription comes into force in the connection with its answer, so that no message
//! precedes its `SOK`; what arrives in between is fetched right after.

use super::deliver::announce_ended;
use super::step::{Activation, First, Segment, Step};
use super::store_error;
use crate::actors::connection::services::JobContext;
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
    let (epochs, displaced) = match cx.services.registry.subscribe(&cx.me, &queues).await {
        Ok(subscribed) => subscribed,
        Err(_) => return give_up(cx, segment, &wanted, &ErrorType::Internal).await,
    };
    announce_ended(displaced).await;
    match peek(cx, &wanted).await {
        Ok(firsts) => answer(cx, segment, wanted, epochs, firsts).await,
        Err(failure) => give_up(cx, segment, &wanted, &store_error(cx, &failure)).await,
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

/// What the store has for the queues, in the order of `wanted`, but for those that were just created; at most as many
/// messages as the outbound queue takes.
async fn peek(cx: &JobContext, wanted: &[Wanted]) -> Result<Vec<Option<Peeked>>, StoreError> {
    let queues: Vec<QueueId> = wanted.iter().filter(|w| w.peek).map(|w| w.queue).collect();
    let mut peeked = Vec::new().into_iter();
    if !queues.is_empty() {
        let room = cx.core.borrow().outbound.room();
        peeked = cx.services.store.first_messages(&queues, room).await?.into_iter();
    }
    Ok(wanted.iter().map(|w| w.peek.then(|| peeked.next()).flatten()).collect())
}

async fn answer(
    cx: &JobContext,
    segment: &mut Segment,
    wanted: Vec<Wanted>,
    epochs: Vec<Epoch>,
    peeked: Vec<Option<Peeked>>,
) {
    let mut gone = Vec::new();
    for ((wanted, epoch), peeked) in wanted.into_iter().zip(epochs).zip(peeked) {
        let first = match peeked {
            None => First::New,
            Some(Peeked::Empty) => First::Nothing,
            Some(Peeked::Waiting) => First::Waiting,
            Some(Peeked::Message(first)) => First::Message(first),
            Some(Peeked::Absent) => {
                gone.push(wanted);
                continue;
            }
        };
        settle(segment, &wanted, Activation { queue: wanted.queue, epoch, first });
    }
    if !gone.is_empty() {
        // Deleted since it was loaded.
        give_up(cx, segment, &gone, &ErrorType::Auth).await;
    }
}

fn settle(segment: &mut Segment, wanted: &Wanted, activation: Activation) {
    let Some(planned) = segment.steps.get_mut(wanted.position) else { return };
    let step = std::mem::replace(&mut planned.step, Step::answered(Response::Ok));
    if let Step::Subscribe { answer, .. } = step {
        planned.step = Step::answered(answer);
        planned.activation = Some(activation);
    }
}

/// Forgets the subscriptions, here and in the registry.
async fn give_up(cx: &JobContext, segment: &mut Segment, wanted: &[Wanted], reason: &ErrorType) {
    for Wanted { position, queue, .. } in wanted {
        cx.core.borrow_mut().subscriptions.abandon(*queue);
        if let Some(planned) = segment.steps.get_mut(*position) {
            planned.step = Step::answered(Response::Err(reason.clone()));
        }
    }
    let queues: Vec<QueueId> = wanted.iter().map(|w| w.queue).collect();
    // Fails only when the registry has stopped, and with it all subscriptions.
    let _ = cx.services.registry.unsubscribe(cx.me.id, &queues).await;
}
