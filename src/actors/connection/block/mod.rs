//! Executing a block of commands: the job of a connection that is not idle.
//!
//! A block is taken apart into planned [`Step`]s and executed in [`Segment`]s. In a segment all queues are loaded at once,
//! all authorizations verified, all changes made in one batch of the store, then subscriptions and reads. A segment ends
//! where a command depends on what an earlier one of the block changes, or where answers would grow too large; so the
//! commands of each queue are executed in their order, and a block of like commands takes one round trip of each kind.
//!
//! Never answers before the store has committed, and waits for room in the outbound queue between segments.

mod answer;
mod apply;
mod deliver;
mod load;
mod notify;
mod plan;
mod read;
mod service;
mod step;
mod subscribe;
mod verify;

use std::collections::VecDeque;

use bytes::Bytes;

use self::answer::{Finished, answers};
use self::load::Records;
pub use self::step::Sending;
use self::step::{Activation, First, Look, Segment, ServiceActivation, Step};
use super::core::{Answer, Core};
use super::deliver::encrypt_stored;
use super::event::Delivery;
use super::services::JobContext;
use super::subscription::{Confirmed, Source};
use crate::actors::registry::Mark;
use crate::protocol::command::Command;
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::protocol::transmission::{ClientTransmission, decode_commands};
use crate::protocol::{CorrelationId, EntityId};
use crate::store::{FirstMessage, QueueRecord, StoreError};

/// Verifications, counted as those of Ed25519, before other connections of the thread get a turn: about a millisecond.
const EFFORT_IN_A_ROW: usize = 16;

/// Answers that the first message of their subscriptions may share a block with, as the reference does.
const ANSWERS_WITH_MESSAGE: usize = 4;

/// Executes the commands of one block and queues their answers.
pub async fn execute(cx: JobContext, payload: Bytes) {
    let mut refused = Vec::new();
    let mut commands = VecDeque::new();
    for decoded in decode_commands(&cx.session.params, &payload) {
        match decoded {
            Ok(transmission) => commands.push_back(transmission),
            Err(refusal) => refused.push(error(refusal.correlation_id, refusal.entity_id, refusal.error)),
        }
    }
    drop(payload);
    let mut records = Records::default();
    while !commands.is_empty() {
        let segment = next_segment(&cx, &mut commands, &mut records, &mut refused).await;
        let mut waited = push(&cx, &std::mem::take(&mut refused)).await;
        records.forget(segment.changed_queues(), segment.creates());
        let finished = run(&cx, segment).await;
        waited |= finish(&cx, finished).await;
        if waited {
            // As long as the client liked: what was loaded may be out of date.
            records = Records::default();
        }
    }
    push(&cx, &refused).await;
}

/// Answers `ERR BLOCK` to a block that could not be decrypted.
pub async fn refuse(cx: JobContext) {
    push(&cx, &[error(CorrelationId::NONE, EntityId::NONE, ErrorType::Block)]).await;
}

/// Takes as many commands as can be executed together; those that are refused are answered first.
async fn next_segment(
    cx: &JobContext,
    commands: &mut VecDeque<ClientTransmission>,
    records: &mut Records,
    refused: &mut Vec<Answer>,
) -> Segment {
    let mut segment = Segment::default();
    if let Err(failure) = records.load(cx, commands).await {
        refused.extend(commands.drain(..).map(|t| error(t.correlation_id, t.entity_id, failure.clone())));
        return segment;
    }
    let mut effort = 0;
    while let Some(transmission) = commands.pop_front() {
        if let Some(failure) = records.failure(&transmission) {
            refused.push(error(transmission.correlation_id, transmission.entity_id, failure));
            continue;
        }
        let record = records.of(&transmission);
        if !segment.admits(&transmission, record) {
            commands.push_front(transmission);
            break;
        }
        let record = record.cloned();
        let empty_since = records.empty_since(&transmission);
        effort += verify::effort(record.as_ref());
        take(cx, &mut segment, refused, transmission, record, empty_since);
        if effort >= EFFORT_IN_A_ROW {
            effort = 0;
            tokio::task::yield_now().await;
        }
    }
    segment
}

/// Verifies and plans one command.
fn take(
    cx: &JobContext,
    segment: &mut Segment,
    refused: &mut Vec<Answer>,
    transmission: ClientTransmission,
    record: Option<QueueRecord>,
    empty_since: Option<Mark>,
) {
    let (correlation_id, entity_id) = (transmission.correlation_id.clone(), transmission.entity_id.clone());
    if let Err(reason) = verify::verify(cx, &transmission, record.as_ref()) {
        return refused.push(error(correlation_id, entity_id, reason));
    }
    segment.note(&transmission.command, record.as_ref());
    if let Some(record) = &record
        && transmission.command != Command::Del
        && record.updated_at != Some(cx.services.clock.today())
    {
        segment.touched.push(record.recipient_id);
    }
    let entity_id = match transmission.command {
        // Answers without a queue carry no entity ID; these commands have none, but for PFWD's session.
        Command::Ping | Command::New(_) | Command::Rslv(_) | Command::Rfwd(_) => EntityId::NONE,
        _ => entity_id,
    };
    let mut step =
        plan::plan(cx, segment, transmission, record).unwrap_or_else(|reason| Step::answered(Response::Err(reason)));
    if let (Step::Subscribe { look, .. }, Some(mark)) = (&mut step, empty_since) {
        *look = Look::IfMoved(mark);
    }
    segment.push(correlation_id, entity_id, step);
}

/// Executes a segment: changes, then subscriptions, then reads.
async fn run(cx: &JobContext, mut segment: Segment) -> Vec<Finished> {
    apply::apply(cx, &mut segment).await;
    deliver::deliver(cx, &mut segment).await;
    notify::notify(cx, &mut segment).await;
    let touches = apply::touches(cx, &mut segment);
    let look = async {
        subscribe::subscribe(cx, &mut segment).await;
        notify::subscribe(cx, &mut segment).await;
        service::subscribe(cx, &mut segment).await;
        read::read(cx, &mut segment).await;
    };
    // Nobody waits for one after the other.
    tokio::join!(apply::touch(cx, touches), look);
    answers(segment)
}

/// Queues answers that have a block of their own, once there is room. Whether it had to wait.
async fn push(cx: &JobContext, answers: &[Answer]) -> bool {
    if answers.is_empty() {
        return false;
    }
    let waited = Core::room(&cx.core).await;
    cx.core.borrow_mut().push_answers(answers);
    waited
}

/// Queues the answers of a segment and puts its subscriptions in force; their messages follow the answers. Whether it had
/// to wait.
async fn finish(cx: &JobContext, finished: Vec<Finished>) -> bool {
    if finished.is_empty() {
        return false;
    }
    let waited = Core::room(&cx.core).await;
    let (mut answers, mut activations, mut services) = (Vec::new(), Vec::new(), Vec::new());
    for Finished { answer, activation, service_activation } in finished {
        answers.push(answer);
        activations.extend(activation);
        services.extend(service_activation);
    }
    let mut core = cx.core.borrow_mut();
    let mut deliveries = activate(&mut core, activations).into_iter();
    activate_service(&mut core, services);
    if answers.len() <= ANSWERS_WITH_MESSAGE {
        answers.extend(deliveries.next());
    }
    core.push_answers(&answers);
    for delivery in deliveries {
        core.push_answers(&[delivery]);
    }
    waited
}

/// Puts subscriptions in force. Answers their first messages, noted as delivered.
fn activate(core: &mut Core, activations: Vec<Activation>) -> Vec<Answer> {
    let mut deliveries = Vec::new();
    for Activation { queue, epoch, first, joins } in activations {
        if matches!(first, First::Lost) {
            core.on_lost(queue);
            continue;
        }
        if core.confirm_subscription(queue, epoch, joins) == Confirmed::Ended {
            continue;
        }
        match first {
            // An absent queue, and one that cannot be read, has no activation.
            First::Nothing | First::Lost | First::Absent | First::Unreadable(_) => core.subscriptions.settle(queue),
            First::New => {
                core.subscriptions.is_new(queue);
                core.subscriptions.settle(queue);
            }
            First::Waiting => core.subscriptions.want(queue),
            First::Message(first) => {
                let FirstMessage { message, dh_secret } = *first;
                let body = encrypt_stored(&message, &dh_secret);
                let room = core.outbound.room() > deliveries.len();
                let delivery = Delivery { queue, message: step::delivered(&message), body };
                deliveries.extend(core.accept(delivery, Source::Read, room));
            }
        }
    }
    deliveries
}

/// Puts the subscription of the client's service in force, with the number of queues that the client is told. What was to
/// subscribe it and failed is given up.
fn activate_service(core: &mut Core, activations: Vec<ServiceActivation>) {
    for ServiceActivation { epoch, queues } in activations {
        if core.confirm_service(epoch) == Confirmed::InForce
            && let Some(service) = &mut core.service
        {
            service.complete(queues);
        }
    }
    core.abandon_service();
}

fn error(correlation_id: CorrelationId, entity_id: EntityId, error: ErrorType) -> Answer {
    (correlation_id, entity_id, Response::Err(error))
}

/// The store's failure: what it was is for the operator, the client is only told that it was.
fn store_error(cx: &JobContext, failure: &StoreError) -> ErrorType {
    cx.services.store_failures.report(failure);
    let told = match failure {
        StoreError::Failed(_) | StoreError::Unreadable { .. } => "failed",
        StoreError::Overloaded => "overloaded",
        StoreError::Closed => "closed",
    };
    ErrorType::Store(told.to_owned())
}

impl Step {
    /// A step that only waits for its answer to be sent.
    fn answered(response: Response) -> Step {
        Step::Answered(response)
    }
}
