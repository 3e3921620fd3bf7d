//! `SUBS` and `NSUBS`: the subscription of a client to all queues of its service. Spec: "Service subscriptions".

use super::deliver::announce_service_ended;
use super::step::{Segment, ServiceActivation, Step};
use super::store_error;
use super::subscribe::register_service;
use crate::actors::connection::services::JobContext;
use crate::actors::mailbox::SendError;
use crate::actors::registry::Epoch;
use crate::protocol::ServiceId;
use crate::protocol::command::ServiceQueues;
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;

/// Subscribes the service, if the segment asks for it: it is registered first, then its queues are counted. A connection
/// that has asked before is told what it was told of since.
pub async fn subscribe(cx: &JobContext, segment: &mut Segment) {
    for position in 0..segment.steps.len() {
        let Some(Step::SubscribeService { expected }) = segment.steps.get(position).map(|planned| &planned.step) else {
            continue;
        };
        let expected = *expected;
        let subscribed = subscribe_service(cx, expected).await;
        let Some(planned) = segment.steps.get_mut(position) else { continue };
        match subscribed {
            Ok((queues, activation)) => {
                planned.step = Step::answered(Response::Soks(queues));
                planned.service_activation = activation;
            }
            Err(reason) => planned.step = Step::answered(Response::Err(reason)),
        }
    }
}

/// Makes this the connection of its service.
async fn register(cx: &JobContext, id: ServiceId, role: ServiceRole) -> Result<Epoch, SendError> {
    if role == ServiceRole::Messaging {
        return register_service(cx, id).await;
    }
    let subscribed = cx.services.notifications.subscribe_service(&cx.me, id).await?;
    announce_service_ended(subscribed.displaced).await;
    Ok(subscribed.epoch)
}

async fn subscribe_service(
    cx: &JobContext,
    expected: ServiceQueues,
) -> Result<(ServiceQueues, Option<ServiceActivation>), ErrorType> {
    let (id, role) = {
        let mut core = cx.core.borrow_mut();
        let service = core.service.as_mut().ok_or(ErrorType::Service)?;
        if service.is_complete() {
            return Ok((service.queues(), None));
        }
        let (id, role) = (service.id, service.role);
        core.begin_service();
        (id, role)
    };
    let epoch = register(cx, id, role).await.map_err(|_| ErrorType::Internal)?;
    let queues = cx.services.store.service_queues(id, role).await.map_err(|failure| store_error(cx, &failure))?;
    cx.services.counters.drift.note(expected, queues);
    Ok((queues, Some(ServiceActivation { epoch, queues })))
}
