//! Taking the notifications that wait for this connection, and sending them.
//!
//! What was taken counts as sent when more is taken, which is done when all of it has been written. So a client that does
//! not read leaves the rest where it is.

use super::core::Answer;
use super::services::JobContext;
use crate::protocol::CorrelationId;
use crate::protocol::response::Response;
use crate::store::files::notification::Notification;

/// Notifications that are taken at a time: about four blocks.
pub const PART: usize = 300;

/// Takes what waits, and sends it.
pub async fn take(cx: JobContext) {
    cx.core.borrow_mut().take_notifications();
    // Fails only when the actor has stopped, and nobody is notified of anything.
    let taken = cx.services.notifications.take(cx.me.id, PART).await.unwrap_or_default();
    if taken.is_empty() {
        return;
    }
    let answers: Vec<Answer> = taken.into_iter().map(answer).collect();
    let mut core = cx.core.borrow_mut();
    core.push_answers(&answers);
    core.on_notifications();
}

fn answer(notification: Notification) -> Answer {
    let Notification { notifier, nonce, metadata, .. } = notification;
    (CorrelationId::NONE, notifier.into(), Response::Nmsg { nonce: nonce.0, meta: metadata })
}
