//! Notifications: of messages that a segment has stored, and subscriptions to them (`NSUB`). Spec: "Subscribe to queue
//! notifications".

use bytes::Bytes;

use super::step::{Segment, Sending, Step};
use crate::actors::connection::event::ConnectionEvent;
use crate::actors::connection::services::JobContext;
use crate::actors::mailbox::SendError;
use crate::actors::notifications::core::{Subscribed, Subscription};
use crate::actors::registry::Epoch;
use crate::protocol::crypto::{Nonce, SharedSecret, random_array};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::message::NotificationMetadata;
use crate::protocol::response::Response;
use crate::protocol::{QueueId, ServiceId};
use crate::store::files::notification::Notification;
use crate::store::{Notifier, Party};

/// The notification of a message that was stored, for a queue's notifier.
pub fn notification(sending: &Sending, notifier: &Notifier) -> Option<Notification> {
    let nonce = Nonce(random_array());
    let metadata = NotificationMetadata {
        message_id: Bytes::copy_from_slice(&sending.id.0),
        timestamp: sending.timestamp.seconds,
    };
    let sealed = metadata.seal(&SharedSecret::from_bytes(notifier.dh_secret.0), &nonce);
    Some(Notification {
        notifier: notifier.id,
        message: sending.id,
        timestamp: sending.timestamp,
        nonce,
        metadata: sealed.ok()?.into(),
    })
}

/// Hands in the notifications of the segment, and tells who was subscribed to notifiers that it has removed.
pub async fn notify(cx: &JobContext, segment: &mut Segment) {
    for (notification, service) in std::mem::take(&mut segment.notifications) {
        // Fails only when the actor has stopped.
        let _ = cx.services.notifications.notify(notification, service).await;
    }
    let removed = std::mem::take(&mut segment.removed_notifiers);
    if removed.is_empty() {
        return;
    }
    for (notifier, connection) in cx.services.notifications.remove(removed).await.unwrap_or_default() {
        match connection.id == cx.me.id {
            true => cx.core.borrow_mut().on_own_notifier_removed(notifier),
            false => drop(connection.events.post(ConnectionEvent::NotifierDeleted { notifier }).await),
        }
    }
}

/// A subscription being made.
struct Wanted {
    position: usize,
    notifier: QueueId,
    associated: bool,
    was: Option<ServiceId>,
}

/// Subscribes to the notifiers of the segment.
pub async fn subscribe(cx: &JobContext, segment: &mut Segment) {
    let wanted = begin(cx, segment);
    if wanted.is_empty() {
        return;
    }
    match register(cx, &wanted).await {
        Ok((subscribed, epoch)) => {
            let lost = lost(cx, &wanted, &subscribed).await;
            for ((wanted, subscribed), lost) in wanted.iter().zip(subscribed).zip(lost) {
                settle(cx, segment, wanted, &subscribed, epoch, lost);
            }
        }
        Err(_) => {
            for Wanted { position, .. } in wanted {
                if let Some(planned) = segment.steps.get_mut(position) {
                    planned.step = Step::answered(Response::Err(ErrorType::Internal));
                }
            }
        }
    }
}

fn begin(cx: &JobContext, segment: &Segment) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (position, planned) in segment.steps.iter().enumerate() {
        if let Step::SubscribeNotifier { notifier, associated, was, .. } = planned.step {
            wanted.push(Wanted { position, notifier, associated, was });
        }
    }
    if !wanted.is_empty() {
        cx.core.borrow_mut().begin_service();
    }
    wanted
}

/// Tells the actor, and those who lost their subscriptions.
async fn register(cx: &JobContext, wanted: &[Wanted]) -> Result<(Vec<Subscribed>, Option<Epoch>), SendError> {
    let notifications = &cx.services.notifications;
    let own = cx.session.service_in(ServiceRole::Notifier);
    let subscriptions =
        wanted.iter().map(|w| Subscription { notifier: w.notifier, associated: w.associated }).collect();
    let (subscribed, service) = notifications.subscribe(&cx.me, own, subscriptions).await?;
    for (wanted, subscribed) in wanted.iter().zip(&subscribed) {
        let notifier = wanted.notifier;
        if let Some(before) = subscribed.displaced.as_ref().filter(|before| before.id != cx.me.id) {
            let _ = before.events.post(ConnectionEvent::NotifierEnded { notifier }).await;
        }
    }
    announce_released(cx, wanted, &subscribed, own).await?;
    let epoch = service.as_ref().map(|subscribed| subscribed.epoch);
    super::deliver::announce_service_ended(service.and_then(|subscribed| subscribed.displaced)).await;
    Ok((subscribed, epoch))
}

/// Tells the services that notifiers were taken from, unless they were told that their subscriptions are.
async fn announce_released(
    cx: &JobContext,
    wanted: &[Wanted],
    subscribed: &[Subscribed],
    own: Option<ServiceId>,
) -> Result<(), SendError> {
    let released = wanted.iter().zip(subscribed).filter(|(wanted, _)| wanted.was != own);
    let (released, services): (Vec<_>, Vec<_>) = released.filter_map(|pair| Some((pair, pair.0.was?))).unzip();
    if released.is_empty() {
        return Ok(());
    }
    let found = cx.services.notifications.find_services(services).await?;
    for ((wanted, subscribed), connection) in released.into_iter().zip(found) {
        let told = subscribed.displaced.as_ref().map(|before| before.id);
        if let Some(connection) = connection.filter(|found| found.id != cx.me.id && Some(found.id) != told) {
            let _ = connection.events.post(ConnectionEvent::NotifierEnded { notifier: wanted.notifier }).await;
        }
    }
    Ok(())
}

/// Which of the notifiers somebody else was later to associate with another service, or with none: where that can be.
async fn lost(cx: &JobContext, wanted: &[Wanted], subscribed: &[Subscribed]) -> Vec<bool> {
    let own = cx.session.service_in(ServiceRole::Notifier);
    let doubtful: Vec<bool> =
        wanted.iter().zip(subscribed).map(|(w, subscribed)| w.associated || subscribed.displaced.is_some()).collect();
    let notifiers: Vec<QueueId> =
        wanted.iter().zip(&doubtful).filter(|(_, doubtful)| **doubtful).map(|(w, _)| w.notifier).collect();
    if notifiers.is_empty() {
        return doubtful;
    }
    let Ok(records) = cx.services.store.queues(Party::Notifier, &notifiers).await else {
        return vec![false; wanted.len()];
    };
    let mut records = records.into_iter();
    let is_lost = |doubtful: bool| {
        let record = if doubtful { records.next().flatten() } else { None };
        record.and_then(|record| record.notifier).is_some_and(|notifier| notifier.service != own)
    };
    let lost: Vec<bool> = doubtful.into_iter().map(is_lost).collect();
    let given_up: Vec<QueueId> = wanted.iter().zip(&lost).filter(|(_, lost)| **lost).map(|(w, _)| w.notifier).collect();
    if !given_up.is_empty() {
        let _ = cx.services.notifications.unsubscribe(cx.me.id, given_up).await;
    }
    lost
}

fn settle(
    cx: &JobContext,
    segment: &mut Segment,
    wanted: &Wanted,
    subscribed: &Subscribed,
    epoch: Option<Epoch>,
    lost: bool,
) {
    let Some(planned) = segment.steps.get_mut(wanted.position) else { return };
    let answer = match std::mem::replace(&mut planned.step, Step::answered(Response::Ok)) {
        Step::SubscribeNotifier { answer, .. } => answer,
        _ => return,
    };
    planned.step = Step::answered(answer);
    let mut core = cx.core.borrow_mut();
    match epoch {
        _ if lost => core.on_lost(wanted.notifier),
        None => core.on_notifier_subscribed(wanted.notifier, subscribed.new),
        Some(epoch) => core.on_notifier_associated(wanted.notifier, epoch, wanted.associated),
    }
}
