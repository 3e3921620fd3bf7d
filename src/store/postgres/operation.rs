//! From an operation to its statement, and from the statement's row to the outcome.
//!
//! What an outcome depends on is decided by the statement, in the transaction; here is only what cannot be stored at all.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use super::columns::{self, ColumnError, Columns, KeyList, MOST_KEYS, QueueRow, day_of, day_seconds};
use super::pipeline::{Param, Step};
use super::statements as sql;
use crate::protocol::{QueueId, ServiceId};
use crate::store::op::SendMessage;
use crate::store::record::{NewQueue, Notifier, QueueStatus, Timestamp};
use crate::store::{Audience, Op, OpOutcome, Sent};

/// What statements depend on beside their operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Messages that make a queue full.
    pub(super) quota: u32,
    /// Whether deleted queues leave a row.
    pub(super) keep_deleted: bool,
}

/// Where the outcome of an operation is found.
enum Place {
    /// Here.
    Known(OpOutcome),
    /// In the only row of this step.
    Step(usize),
    /// In one of the rows of this step.
    Row(usize, usize),
}

/// The statements of a group of operations.
pub(super) struct Plan<'a> {
    steps: Vec<Step<'a>>,
    places: Vec<Place>,
}

/// Queues and days that are noted by one statement.
#[derive(Default)]
struct Touches {
    queues: Vec<QueueId>,
    days: Vec<i64>,
}

impl<'a> Plan<'a> {
    /// Plans these operations; `now` is when queues are deleted.
    pub(super) fn new(ops: &[&'a Op], rules: Rules, now: Timestamp) -> Self {
        let mut plan = Plan { steps: Vec::with_capacity(ops.len() + 1), places: Vec::with_capacity(ops.len()) };
        plan.steps.extend(lock(ops));
        plan.steps.extend(lock_services(ops));
        for run in ops.chunk_by(|one, next| is_touch(one) && is_touch(next)) {
            match run {
                [op] if !is_touch(op) => plan.add(op, rules, now),
                touches => plan.touch(touches),
            }
        }
        plan
    }

    /// The statements, in their order.
    pub(super) fn take_steps(&mut self) -> Vec<Step<'a>> {
        std::mem::take(&mut self.steps)
    }

    /// The outcomes of the operations, given the rows of each step.
    pub(super) fn outcomes(self, ops: &[&Op], rows: &[Vec<Row>]) -> Result<Vec<OpOutcome>, ColumnError> {
        let row = |step: usize, row: usize| rows.get(step).and_then(|rows| rows.get(row));
        let outcome = |(place, op): (Place, &&Op)| match place {
            Place::Known(outcome) => Ok(outcome),
            Place::Step(step) => outcome(op, row(step, 0)),
            Place::Row(step, number) => outcome(op, row(step, number)),
        };
        self.places.into_iter().zip(ops).map(outcome).collect()
    }

    fn add(&mut self, op: &'a Op, rules: Rules, now: Timestamp) {
        let place = match step(op, rules, now) {
            Ok(step) => {
                self.steps.push(step);
                Place::Step(self.steps.len() - 1)
            }
            Err(outcome) => Place::Known(outcome),
        };
        self.places.push(place);
    }

    fn touch(&mut self, ops: &[&Op]) {
        let mut touches = Touches::default();
        for op in ops {
            if let Op::Touch { queue, day } = op {
                self.places.push(Place::Row(self.steps.len(), touches.queues.len()));
                touches.queues.push(*queue);
                touches.days.push(day_seconds(*day));
            }
        }
        let Touches { queues, days } = touches;
        self.steps.push(Step { sql: sql::TOUCH, params: vec![Box::new(queues), Box::new(days)] });
    }
}

/// All queues are locked before anything is done, so that no group waits for another while that waits for it.
pub(super) fn lock(ops: &[&Op]) -> Option<Step<'static>> {
    let there = ops.iter().filter(|op| !matches!(op, Op::CreateQueue(_)));
    let queues: BTreeSet<QueueId> = there.map(|op| *op.queue()).collect();
    let queues: Vec<QueueId> = queues.into_iter().collect();
    (!queues.is_empty()).then(|| Step { sql: sql::LOCK, params: vec![Box::new(queues)] })
}

/// The services that these operations may change the numbers of. Nothing but operations on services and notifiers does, and
/// so most groups lock none.
fn lock_services(ops: &[&Op]) -> Option<Step<'static>> {
    let (mut services, mut queues) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            Op::CreateQueue(new) => {
                services.extend(new.record.recipient_service);
                services.extend(new.record.notifier.as_ref().and_then(|notifier| notifier.service));
            }
            Op::AssociateRecipient { queue, service } | Op::AssociateNotifier { queue, service, .. } => {
                services.extend(*service);
                queues.push(*queue);
            }
            Op::SetNotifier { queue, notifier } => {
                services.extend(notifier.service);
                queues.push(*queue);
            }
            Op::DeleteNotifier { queue } | Op::DeleteQueue { queue } => queues.push(*queue),
            _ => {}
        }
    }
    let none = services.is_empty() && queues.is_empty();
    (!none).then(|| Step { sql: sql::LOCK_SERVICES, params: vec![Box::new(services), Box::new(queues)] })
}

fn is_touch(op: &Op) -> bool {
    matches!(op, Op::Touch { .. })
}

/// Whether two groups could wait for each other at a unique index: when they insert IDs that clients choose.
pub(super) fn inserts_ids(op: &Op) -> bool {
    matches!(op, Op::CreateQueue(_) | Op::SetLink { .. } | Op::SetNotifier { .. })
}

/// The statement of an operation, or its outcome where no statement is needed.
fn step(op: &Op, rules: Rules, now: Timestamp) -> Result<Step<'_>, OpOutcome> {
    let (sql, params): (_, Vec<Param<'_>>) = match op {
        Op::CreateQueue(new) => return create(new),
        Op::SecureQueue { queue, key } => (sql::SECURE, vec![Box::new(queue), Box::new(key)]),
        Op::SetRecipientKeys { queue, keys } if !(1..=MOST_KEYS).contains(&keys.len()) => {
            (sql::EXISTS, vec![Box::new(queue)])
        }
        Op::SetRecipientKeys { queue, keys } => {
            (sql::SET_RECIPIENT_KEYS, vec![Box::new(queue), Box::new(KeyList(keys.clone()))])
        }
        Op::SetLink { queue, link_id, data } => (
            sql::SET_LINK,
            vec![Box::new(queue), Box::new(link_id), Box::new(&data.fixed[..]), Box::new(&data.user[..])],
        ),
        Op::DeleteLink { queue } => (sql::DELETE_LINK, vec![Box::new(queue)]),
        Op::AssociateRecipient { queue, service } => {
            (sql::ASSOCIATE_RECIPIENT, vec![Box::new(queue), Box::new(service)])
        }
        Op::AssociateNotifier { queue, notifier, service } => {
            (sql::ASSOCIATE_NOTIFIER, vec![Box::new(queue), Box::new(notifier), Box::new(service)])
        }
        Op::SetNotifier { queue, notifier } => (sql::SET_NOTIFIER, notifier_params(queue, Some(notifier))),
        Op::DeleteNotifier { queue } => (sql::SET_NOTIFIER, notifier_params(queue, None)),
        Op::SuspendQueue { queue } => (sql::SET_STATUS, vec![Box::new(queue), Box::new(QueueStatus::Off)]),
        Op::BlockQueue { queue, info } => {
            (sql::SET_STATUS, vec![Box::new(queue), Box::new(QueueStatus::Blocked(info.clone()))])
        }
        Op::UnblockQueue { queue } => (sql::SET_STATUS, vec![Box::new(queue), Box::new(QueueStatus::Active)]),
        Op::DeleteQueue { queue } if rules.keep_deleted => {
            (sql::MARK_DELETED, vec![Box::new(queue), Box::new(day_of(now.seconds))])
        }
        Op::DeleteQueue { queue } => (sql::DELETE, vec![Box::new(queue)]),
        Op::Touch { queue, day } => (sql::TOUCH, vec![Box::new(vec![*queue]), Box::new(vec![day_seconds(*day)])]),
        Op::Send(message) => (sql::SEND, send_params(message, rules.quota)),
        Op::Acknowledge { queue, message, with_next } => {
            (sql::ACKNOWLEDGE, vec![Box::new(queue), Box::new(message), Box::new(with_next)])
        }
    };
    Ok(Step { sql, params })
}

fn create(new: &NewQueue) -> Result<Step<'_>, OpOutcome> {
    let keys = new.record.recipient_keys.len();
    if !(1..=MOST_KEYS).contains(&keys) || new.record.link_id.is_some() != new.link_data.is_some() {
        return Err(OpOutcome::Conflict);
    }
    Ok(Step { sql: sql::CREATE, params: QueueRow::new(new).into_values() })
}

fn notifier_params<'a>(queue: &'a QueueId, notifier: Option<&'a Notifier>) -> Vec<Param<'a>> {
    vec![
        Box::new(queue),
        Box::new(notifier.map(|notifier| &notifier.id)),
        Box::new(notifier.map(|notifier| &notifier.key)),
        Box::new(notifier.map(|notifier| &notifier.dh_secret)),
        Box::new(notifier.and_then(|notifier| notifier.service.as_ref())),
    ]
}

fn send_params(message: &SendMessage, quota: u32) -> Vec<Param<'_>> {
    vec![
        Box::new(message.queue),
        Box::new(message.id),
        Box::new(message.timestamp.seconds),
        Box::new(message.flags.notification),
        Box::new(&message.body[..]),
        Box::new(i64::from(quota)),
        Box::new(message.expire_before.map(|before| before.seconds)),
        Box::new(message.delete_link),
    ]
}

/// The outcome that a statement's row tells.
fn outcome(op: &Op, row: Option<&Row>) -> Result<OpOutcome, ColumnError> {
    let Some(row) = row else {
        return Ok(if matches!(op, Op::CreateQueue(_)) { OpOutcome::Duplicate } else { OpOutcome::NoQueue });
    };
    let mut columns = Columns::from(row, 0);
    match op {
        Op::SetLink { .. } => Ok(match columns.take::<i32>()? {
            sql::LINK_SET => OpOutcome::Done,
            sql::LINK_TAKEN => OpOutcome::Duplicate,
            _ => OpOutcome::Conflict,
        }),
        Op::SetNotifier { .. } | Op::DeleteNotifier { .. } => Ok(match columns.take()? {
            true => OpOutcome::Duplicate,
            // One that cannot be read is none that anything could have been delivered to.
            false => OpOutcome::NotifierWas(columns::notifier(&mut columns).ok().flatten().map(Box::new)),
        }),
        Op::AssociateRecipient { .. } | Op::AssociateNotifier { .. } => Ok(match columns.take()? {
            true => OpOutcome::Associated { was: columns.take()? },
            false => OpOutcome::Conflict,
        }),
        Op::DeleteQueue { .. } => audience(&mut columns).map(OpOutcome::Deleted),
        Op::Touch { .. } => Ok(if columns.take()? { OpOutcome::Done } else { OpOutcome::NoQueue }),
        Op::Send(_) => sent(&mut columns),
        Op::Acknowledge { with_next, .. } => acknowledged(&mut columns, *with_next),
        _ => Ok(if columns.take()? { OpOutcome::Done } else { OpOutcome::Conflict }),
    }
}

fn sent(columns: &mut Columns<'_>) -> Result<OpOutcome, ColumnError> {
    let (active, size, expired): (bool, i64, i64) = (columns.take()?, columns.take()?, columns.take()?);
    let (number, marker): (Option<i64>, bool) = (columns.take()?, columns.take()?);
    Ok(match number {
        _ if !active => OpOutcome::Conflict,
        Some(number) if !marker => OpOutcome::Sent(Sent {
            sequence: number.unsigned_abs(),
            was_empty: size == 0,
            expired: u32::try_from(expired).unwrap_or(u32::MAX),
            audience: audience(columns)?,
        }),
        _ => OpOutcome::Quota,
    })
}

/// The service and the notifier in the next five columns. What cannot be read must not fail what was done: it is nothing
/// that could be told anything.
fn audience(columns: &mut Columns<'_>) -> Result<Audience, ColumnError> {
    let service = columns.take::<Option<&[u8]>>()?.and_then(ServiceId::from_slice);
    Ok(Audience { service, notifier: columns::notifier(columns).ok().flatten().map(Box::new) })
}

fn acknowledged(columns: &mut Columns<'_>, with_next: bool) -> Result<OpOutcome, ColumnError> {
    let deleted = columns.take()?;
    let more = columns.peek::<Option<i64>>()?.is_some();
    // One that cannot be read must not fail what was done: who fetches it is told.
    let next = if with_next && more { columns::message(columns).ok().map(Box::new) } else { None };
    Ok(OpOutcome::Acknowledged { deleted, next, more })
}
