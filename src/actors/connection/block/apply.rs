//! The changes of a segment: one batch of the store, answered after its commit.

use std::collections::HashSet;

use super::notify::notification;
use super::step::{Creation, Look, PendingDelivery, Planned, Segment, Sending, Step, Then, delivered};
use super::store_error;
use crate::actors::connection::deliver::message_response;
use crate::actors::connection::services::{Counters, JobContext};
use crate::actors::connection::subscription::{Acknowledging, Offer, Source, Subscriptions};
use crate::protocol::QueueId;
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::store::{DhSecret, Message, Op, OpOutcome, Sent, StoreError};

/// Draws of new IDs for a queue before giving up; a second is never needed unless the random generator is broken.
const CREATE_ATTEMPTS: u32 = 3;

/// Makes the changes of the segment and moves its steps on. The first operations note the day of last use of the queues
/// that need it; their outcome matters to nobody. Without other changes they are left to [`touch`].
pub async fn apply(cx: &JobContext, segment: &mut Segment) {
    let mut ops = Vec::new();
    let mut positions = Vec::new();
    for (position, planned) in segment.steps.iter_mut().enumerate() {
        if let Step::Change { op, .. } = &mut planned.step
            && let Some(op) = op.take()
        {
            ops.push(op);
            positions.push(position);
        }
    }
    if ops.is_empty() {
        return;
    }
    let mut touches = touches(cx, segment);
    let touched = touches.len();
    touches.append(&mut ops);
    match cx.services.store.apply(touches).await {
        Ok(outcomes) => {
            for (position, outcome) in positions.into_iter().zip(outcomes.into_iter().skip(touched)) {
                settle(cx, segment, position, outcome).await;
            }
        }
        Err(failure) => fail(cx, segment, &positions, &failure),
    }
}

/// Notes the day of last use of queues that no command of the segment changes.
pub async fn touch(cx: &JobContext, touches: Vec<Op>) {
    if touches.is_empty() {
        return;
    }
    if let Err(failure) = cx.services.store.apply(touches).await {
        cx.services.store_failures.report(&failure);
    }
}

/// The operations that note the day of last use, where they have not been taken yet.
pub fn touches(cx: &JobContext, segment: &mut Segment) -> Vec<Op> {
    let day = cx.services.clock.today();
    let queues: HashSet<QueueId> = segment.touched.drain(..).collect();
    queues.into_iter().map(|queue| Op::Touch { queue, day }).collect()
}

/// Nothing was changed, or, where the connection to a database broke, perhaps everything: every command that wanted a change
/// is answered with the failure. A message that may be there must not wait until the next subscription, and hold up those
/// that are sent after it, and a queue that may be gone not be subscribed for ever: the subscriber is told to look.
fn fail(cx: &JobContext, segment: &mut Segment, positions: &[usize], failure: &StoreError) {
    let reason = store_error(cx, failure);
    let in_doubt = matches!(failure, StoreError::Failed(_));
    for position in positions {
        let Some(planned) = segment.steps.get_mut(*position) else { continue };
        match &planned.step {
            Step::Change { then: Then::Acknowledged { queue, acknowledging, .. }, .. } => {
                cx.core.borrow_mut().subscriptions.restore(*queue, acknowledging.message);
            }
            Step::Change { then: Then::Sent(sending), .. } if in_doubt => {
                segment.doubtful.push((sending.queue, sending.service));
            }
            Step::Change { then: Then::Deleted { queue, service }, .. } if in_doubt => {
                segment.doubtful.push((*queue, *service));
            }
            _ => {}
        }
        planned.step = Step::answered(Response::Err(reason.clone()));
    }
}

/// Moves one step on by the outcome of its change.
async fn settle(cx: &JobContext, segment: &mut Segment, position: usize, outcome: OpOutcome) {
    let Some(planned) = segment.steps.get_mut(position) else { return };
    let step = std::mem::replace(&mut planned.step, Step::answered(Response::Err(ErrorType::Internal)));
    let Step::Change { then, .. } = step else { return };
    if let OpOutcome::NotifierWas(Some(was)) = &outcome {
        segment.removed_notifiers.push((was.id, was.service));
    }
    let next = match then {
        Then::Ok => simple(&outcome, Step::answered(Response::Ok)),
        Then::Link { link_id, sender_id } => simple(&outcome, Step::Link { link_id, sender_id }),
        Then::Created(creation) => created(cx, creation, outcome).await,
        Then::Sent(sending) => sent(cx, segment, sending, outcome),
        Then::Acknowledged { queue, acknowledging, dh_secret } => {
            acknowledged(cx, queue, acknowledging, &dh_secret, outcome)
        }
        Then::Notifier { id, dh_key } => simple(&outcome, Step::answered(Response::Nid(id.into(), dh_key))),
        Then::Associated { queue, answer } => associated(cx, segment, queue, answer, &outcome),
        Then::NotifierAssociated { notifier, answer } => notifier_associated(notifier, answer, &outcome),
        Then::Deleted { queue, .. } => deleted(cx, segment, queue, &outcome),
    };
    if let Some(Planned { step, .. }) = segment.steps.get_mut(position) {
        *step = next;
    }
}

/// The step that follows when the change was done; what else can have become of it is the client's error.
fn simple(outcome: &OpOutcome, done: Step) -> Step {
    match outcome {
        OpOutcome::Done | OpOutcome::NotifierWas(_) | OpOutcome::Deleted(_) => done,
        _ => Step::answered(Response::Err(ErrorType::Auth)),
    }
}

async fn created(cx: &JobContext, mut creation: Box<Creation>, mut outcome: OpOutcome) -> Step {
    for _ in 1..CREATE_ATTEMPTS {
        if outcome != OpOutcome::Duplicate || creation.ids_by_client {
            break;
        }
        creation.redraw();
        let op = Op::CreateQueue(Box::new(creation.queue.clone()));
        outcome = match cx.services.store.apply(vec![op]).await {
            Ok(outcomes) => outcomes.into_iter().next().unwrap_or(OpOutcome::Duplicate),
            Err(failure) => return Step::answered(Response::Err(store_error(cx, &failure))),
        };
    }
    match outcome {
        OpOutcome::Done => announce(cx, *creation),
        OpOutcome::Duplicate if creation.ids_by_client => Step::answered(Response::Err(ErrorType::Auth)),
        _ => Step::answered(Response::Err(ErrorType::Internal)),
    }
}

fn announce(cx: &JobContext, creation: Creation) -> Step {
    Counters::count(&cx.services.counters.queues_created);
    let answer = Response::Ids(Box::new(creation.ids));
    match creation.subscribe {
        true => Step::Subscribe {
            queue: creation.queue.record.recipient_id,
            answer,
            // Who chose the sender ID may have sent to it already.
            look: if creation.ids_by_client { Look::IfMoved(creation.mark) } else { Look::Never },
            joins: creation.queue.record.recipient_service.is_some(),
        },
        false => Step::answered(answer),
    }
}

/// The queue is this client's service's now, or no service's: it is subscribed next, and looked at, as others may have been
/// faster.
fn associated(cx: &JobContext, segment: &mut Segment, queue: QueueId, answer: Response, outcome: &OpOutcome) -> Step {
    match outcome {
        OpOutcome::Associated { was } => {
            cx.services.registry.note(&[queue]);
            segment.associated.push((queue, *was));
            let joins = *was != cx.session.service_in(ServiceRole::Messaging);
            Step::Subscribe { queue, answer, look: Look::Needed, joins }
        }
        _ => Step::answered(Response::Err(ErrorType::Auth)),
    }
}

fn notifier_associated(notifier: QueueId, answer: Response, outcome: &OpOutcome) -> Step {
    match outcome {
        OpOutcome::Associated { was } => Step::SubscribeNotifier { notifier, answer, associated: true, was: *was },
        _ => Step::answered(Response::Err(ErrorType::Auth)),
    }
}

fn sent(cx: &JobContext, segment: &mut Segment, sending: Box<Sending>, outcome: OpOutcome) -> Step {
    let counters = &cx.services.counters;
    match outcome {
        OpOutcome::Sent(Sent { sequence, was_empty, expired, audience }) => {
            Counters::count(&counters.messages_sent);
            Counters::add(&counters.messages_expired, u64::from(expired));
            if let Some(notifier) = &audience.notifier
                && let Some(notification) = notification(&sending, notifier)
            {
                segment.notifications.push((notification, notifier.service));
            }
            if was_empty {
                segment.deliveries.push(PendingDelivery { sending, sequence, service: audience.service });
            }
            Step::answered(Response::Ok)
        }
        OpOutcome::Quota => {
            Counters::count(&counters.quota_exceeded);
            Step::answered(Response::Err(ErrorType::Quota))
        }
        _ => Step::answered(Response::Err(ErrorType::Auth)),
    }
}

fn acknowledged(
    cx: &JobContext,
    queue: QueueId,
    acknowledging: Acknowledging,
    dh_secret: &DhSecret,
    outcome: OpOutcome,
) -> Step {
    let OpOutcome::Acknowledged { deleted, next, more } = outcome else {
        return Step::answered(Response::Err(ErrorType::Auth));
    };
    if deleted {
        Counters::count(&cx.services.counters.messages_acknowledged);
    }
    if acknowledging.got {
        return Step::answered(Response::Ok);
    }
    let mut core = cx.core.borrow_mut();
    match next {
        Some(message) if message_may_follow(&mut core.subscriptions, queue, &message) => {
            Step::answered(message_response(&message, dh_secret))
        }
        _ => {
            match more {
                true => core.subscriptions.want(queue),
                false => core.subscriptions.settle(queue),
            }
            Step::answered(Response::Ok)
        }
    }
}

/// Whether the next message is sent in the answer to `ACK`: not when another was delivered meanwhile.
fn message_may_follow(subscriptions: &mut Subscriptions, queue: QueueId, message: &Message) -> bool {
    subscriptions.offer(queue, delivered(message), Source::Read, true) == Offer::Deliver
}

fn deleted(cx: &JobContext, segment: &mut Segment, queue: QueueId, outcome: &OpOutcome) -> Step {
    if let OpOutcome::Deleted(audience) = outcome {
        Counters::count(&cx.services.counters.queues_deleted);
        segment.removed_notifiers.extend(audience.notifier.iter().map(|notifier| (notifier.id, notifier.service)));
        segment.deleted.push((queue, audience.clone()));
    }
    simple(outcome, Step::answered(Response::Ok))
}
