//! The subscriptions of a segment.
//!
//! The registry is told first, then the store is read: a message that is committed after the read finds the new
//! subscriber in the registry. A queue that was empty when it was loaded is read only if its mark has moved since. A
//! subscription comes into force in the connection with its answer, so that no message precedes its `SOK`; what arrives in
//! between is fetched right after.
//!
//! The client of a service subscribes for its service: the registry is told that this is the service's connection. Whose
//! queue it is, the store tells when it is read; who finds that somebody else was later has lost it already.

use super::deliver::{announce_ended, announce_service_ended, announce_to_services};
use super::step::{Activation, First, Look, Segment, Step};
use super::store_error;
use crate::actors::connection::event::ConnectionEvent;
use crate::actors::connection::services::JobContext;
use crate::actors::mailbox::SendError;
use crate::actors::registry::Epoch;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{QueueId, ServiceId};
use crate::store::{Looked, StoreError};

/// Subscribes to the queues of the segment.
pub async fn subscribe(cx: &JobContext, segment: &mut Segment) {
    let wanted = begin(cx, segment);
    let associated = std::mem::take(&mut segment.associated);
    if wanted.is_empty() {
        return;
    }
    let epochs = match register(cx, &wanted, &associated).await {
        Ok(epochs) => epochs,
        Err(_) => return give_up(cx, segment, &wanted, &ErrorType::Internal).await,
    };
    let released = associated.into_iter().filter_map(|(queue, was)| Some((queue, was?))).collect();
    announce_to_services(cx, released, |queue| ConnectionEvent::Released { queue }).await;
    match peek(cx, &wanted).await {
        Ok(firsts) => answer(cx, segment, wanted, epochs, firsts).await,
        Err(failure) => give_up(cx, segment, &wanted, &store_error(cx, &failure)).await,
    }
}

/// A subscription being made.
struct Wanted {
    position: usize,
    queue: QueueId,
    look: Look,
    joins: bool,
}

fn begin(cx: &JobContext, segment: &mut Segment) -> Vec<Wanted> {
    let mut core = cx.core.borrow_mut();
    let mut wanted = Vec::new();
    for (position, planned) in segment.steps.iter_mut().enumerate() {
        let Step::Subscribe { queue, look, joins, .. } = planned.step else { continue };
        match core.begin_subscription(queue) {
            Ok(()) => wanted.push(Wanted { position, queue, look, joins }),
            Err(_) => {
                let prohibited = ErrorType::Cmd(CommandError::Prohibited);
                planned.step = Step::answered(Response::Err(prohibited));
            }
        }
    }
    if !wanted.is_empty() {
        core.begin_service();
    }
    wanted
}

/// Tells the registry, and those who lost their subscriptions. Answers the epoch of each subscription.
async fn register(
    cx: &JobContext,
    wanted: &[Wanted],
    associated: &[(QueueId, Option<ServiceId>)],
) -> Result<Vec<Epoch>, SendError> {
    let queues: Vec<QueueId> = wanted.iter().map(|w| w.queue).collect();
    let registry = &cx.services.registry;
    let Some(service) = cx.session.service_in(ServiceRole::Messaging) else {
        let (epochs, displaced) = registry.subscribe(&cx.me, &queues).await?;
        announce_ended(displaced).await;
        return Ok(epochs);
    };
    let epoch = register_service(cx, service).await?;
    // A queue that was the service's before has no subscriber of its own.
    let joined: Vec<QueueId> = associated.iter().map(|(queue, _)| *queue).collect();
    announce_ended(registry.remove(&joined).await?).await;
    Ok(vec![epoch; queues.len()])
}

/// Makes this the connection of its service, and tells the one before.
pub async fn register_service(cx: &JobContext, service: ServiceId) -> Result<Epoch, SendError> {
    let subscribed = cx.services.registry.subscribe_service(&cx.me, service).await?;
    announce_service_ended(subscribed.displaced).await;
    Ok(subscribed.epoch)
}

/// What the store has for the queues that have to be looked at, in the order of `wanted`; at most as many messages as the
/// outbound queue takes.
async fn peek(cx: &JobContext, wanted: &[Wanted]) -> Result<Vec<First>, StoreError> {
    let look: Vec<bool> = wanted.iter().map(|wanted| wanted.must_look(cx)).collect();
    let queues: Vec<QueueId> = wanted.iter().zip(&look).filter(|(_, look)| **look).map(|(w, _)| w.queue).collect();
    let mut looked = Vec::new().into_iter();
    if !queues.is_empty() {
        let room = cx.core.borrow().outbound.room();
        looked = cx.services.store.first_messages(&queues, room).await?.into_iter();
    }
    let own = cx.session.service_in(ServiceRole::Messaging);
    let first = |(wanted, look): (&Wanted, bool)| match (look, wanted.look) {
        (true, _) => looked.next().map_or(First::Absent, |looked| first_for(looked, own)),
        (false, Look::Never) => First::New,
        (false, _) => First::Nothing,
    };
    Ok(wanted.iter().zip(look).map(first).collect())
}

fn first_for(Looked { service, first }: Looked, own: Option<ServiceId>) -> First {
    match First::from(first) {
        First::Absent => First::Absent,
        _ if service != own => First::Lost,
        first => first,
    }
}

impl Wanted {
    /// Whether the queue may hold a message, or be gone: asked when it is in the registry.
    fn must_look(&self, cx: &JobContext) -> bool {
        match self.look {
            Look::Needed => true,
            Look::IfMoved(mark) => cx.services.registry.mark(&self.queue) != mark,
            Look::Never => false,
        }
    }
}

async fn answer(cx: &JobContext, segment: &mut Segment, wanted: Vec<Wanted>, epochs: Vec<Epoch>, firsts: Vec<First>) {
    let (mut gone, mut lost) = (Vec::new(), Vec::new());
    let mut unreadable: Option<(Vec<Wanted>, ErrorType)> = None;
    for ((wanted, epoch), first) in wanted.into_iter().zip(epochs).zip(firsts) {
        match first {
            First::Absent => gone.push(wanted),
            First::Unreadable(failure) => {
                unreadable.get_or_insert_with(|| (Vec::new(), store_error(cx, &failure))).0.push(wanted);
            }
            first => {
                if matches!(first, First::Lost) {
                    lost.push(wanted.queue);
                }
                let Wanted { queue, joins, .. } = wanted;
                settle(segment, &wanted, Activation { queue, epoch, first, joins });
            }
        }
    }
    if let Some((wanted, reason)) = unreadable {
        give_up(cx, segment, &wanted, &reason).await;
    }
    if !gone.is_empty() {
        // Deleted since it was loaded.
        give_up(cx, segment, &gone, &ErrorType::Auth).await;
    }
    unregister(cx, &lost).await;
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
    unregister(cx, &queues).await;
}

/// Forgets subscriptions in the registry; of a service's queues it has none.
async fn unregister(cx: &JobContext, queues: &[QueueId]) {
    if !queues.is_empty() && cx.session.service.is_none() {
        // Fails only when the registry has stopped, and with it all subscriptions.
        let _ = cx.services.registry.unsubscribe(cx.me.id, queues).await;
    }
}
