//! The reads of a segment: `GET`, links, `QUE`. One call of the store a kind.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::step::{Segment, Step, delivered};
use super::store_error;
use crate::actors::connection::deliver::message_response;
use crate::actors::connection::services::JobContext;
use crate::actors::connection::subscription::Use;
use crate::protocol::QueueId;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::response::{InfoTime, MessageInfo, QueueInfo, Response, SubscriptionInfo, SubscriptionKind};
use crate::store::{FirstMessage, Peeked, QueueRecord, QueueState, StoreError};

/// Reads what the segment's commands ask for.
pub async fn read(cx: &JobContext, segment: &mut Segment) {
    get(cx, segment).await;
    links(cx, segment).await;
    info(cx, segment).await;
}

/// Positions of the steps for which `pick` has something to read.
fn pick<T>(segment: &Segment, pick: impl Fn(&Step) -> Option<T>) -> (Vec<usize>, Vec<T>) {
    segment.steps.iter().enumerate().filter_map(|(at, p)| Some((at, pick(&p.step)?))).unzip()
}

fn settle<T>(
    cx: &JobContext,
    segment: &mut Segment,
    positions: &[usize],
    read: Result<Vec<T>, StoreError>,
    mut answer: impl FnMut(usize, T) -> Response,
) {
    match read {
        Ok(values) => {
            for (nth, (at, value)) in positions.iter().zip(values).enumerate() {
                set(segment, *at, answer(nth, value));
            }
        }
        Err(failure) => {
            let reason = store_error(cx, &failure);
            for at in positions {
                set(segment, *at, Response::Err(reason.clone()));
            }
        }
    }
}

fn set(segment: &mut Segment, position: usize, response: Response) {
    if let Some(planned) = segment.steps.get_mut(position) {
        planned.step = Step::answered(response);
    }
}

/// `GET`: like `SUB` it is exclusive on a connection, but the registry does not know of it.
async fn get(cx: &JobContext, segment: &mut Segment) {
    {
        let mut core = cx.core.borrow_mut();
        for planned in &mut segment.steps {
            if let Step::Get { queue } = planned.step
                && core.subscriptions.get(queue).is_err()
            {
                planned.step = Step::answered(Response::Err(ErrorType::Cmd(CommandError::Prohibited)));
            }
        }
    }
    let (positions, queues) = pick(segment, |step| match step {
        Step::Get { queue } => Some(*queue),
        _ => None,
    });
    if queues.is_empty() {
        return;
    }
    let read = cx.services.store.first_messages(&queues, queues.len()).await;
    settle(cx, segment, &positions, read, |nth, looked| match (looked.first, queues.get(nth)) {
        (Peeked::Message(first), Some(queue)) => got(cx, *queue, &first),
        (Peeked::Absent, _) => Response::Err(ErrorType::Auth),
        (Peeked::Unreadable(failure), _) => Response::Err(store_error(cx, &failure)),
        _ => Response::Ok,
    });
}

fn got(cx: &JobContext, queue: QueueId, first: &FirstMessage) -> Response {
    cx.core.borrow_mut().subscriptions.delivered(queue, delivered(&first.message));
    message_response(&first.message, &first.dh_secret)
}

/// `LNK` for `LGET` and `LKEY`.
async fn links(cx: &JobContext, segment: &mut Segment) {
    let (positions, links) = pick(segment, |step| match step {
        Step::Link { link_id, sender_id } => Some((*link_id, *sender_id)),
        _ => None,
    });
    if links.is_empty() {
        return;
    }
    let link_ids: Vec<QueueId> = links.iter().map(|link| link.0).collect();
    let read = cx.services.store.link_data(&link_ids).await;
    settle(cx, segment, &positions, read, |nth, data| match (data, links.get(nth)) {
        (Some(data), Some((_, sender_id))) => Response::Lnk((*sender_id).into(), data),
        _ => Response::Err(ErrorType::Auth),
    });
}

/// `INFO` for `QUE`.
async fn info(cx: &JobContext, segment: &mut Segment) {
    let (positions, records) = pick(segment, |step| match step {
        Step::Info(record) => Some((**record).clone()),
        _ => None,
    });
    if records.is_empty() {
        return;
    }
    let queues: Vec<QueueId> = records.iter().map(|r| r.recipient_id).collect();
    let read = cx.services.store.queue_states(&queues).await;
    settle(cx, segment, &positions, read, |nth, state| match records.get(nth) {
        Some(record) => Response::Info(queue_info(cx, record, &state)),
        None => Response::Err(ErrorType::Internal),
    });
}

fn queue_info(cx: &JobContext, record: &QueueRecord, state: &QueueState) -> QueueInfo {
    QueueInfo {
        secured: record.sender_key.is_some(),
        notifications: record.notifier.is_some(),
        subscription: cx.core.borrow().subscriptions.usage(&record.recipient_id).map(subscription_info),
        size: state.size,
        message: state.first.map(|first| MessageInfo {
            id: STANDARD.encode(first.id.0),
            timestamp: InfoTime { seconds: first.timestamp.seconds, nanoseconds: first.timestamp.nanoseconds },
            quota: first.quota,
        }),
    }
}

fn subscription_info(usage: Use) -> SubscriptionInfo {
    let kind = match usage {
        Use { got: true, .. } => SubscriptionKind::ProhibitSub,
        Use { waiting: true, .. } => SubscriptionKind::SubPending,
        Use { .. } => SubscriptionKind::NoSub,
    };
    SubscriptionInfo { kind, delivered: usage.delivered.map(|id| STANDARD.encode(id.0)) }
}
