//! What others said of this connection's subscriptions, and may be out of date when it arrives: the store is asked before
//! the client is told.
//!
//! A queue that was released from a service may have been associated with it again, by a command of this very connection
//! that is being executed. So doubts are settled by a job, which no other is executed beside: what is found out is true with
//! regard to all commands that were answered, and the answers of those that come after follow.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::outbound::Notice;
use super::services::JobContext;
use crate::protocol::QueueId;
use crate::protocol::handshake::ServiceRole;
use crate::store::{Party, Peeked, QueueRecord};

/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be asked. Bounded by the subscriptions, each of which is here once.
#[derive(Debug, Default)]
pub struct Doubts {
    /// Queues of the service that are perhaps no more.
    pub queues: BTreeSet<QueueId>,
    /// Notifiers that somebody else has perhaps subscribed to, or that are perhaps gone, and what the client is told then.
    pub notifiers: BTreeMap<QueueId, Notice>,
}

/// Finds out what is true.
pub async fn settle(cx: JobContext) {
    let doubts = cx.core.borrow_mut().take_doubts();
    settle_notifiers(&cx, doubts.notifiers.into_iter().collect()).await;
    let queues: Vec<QueueId> = doubts.queues.into_iter().collect();
    if !queues.is_empty() && !settle_queues(&cx, &queues).await {
        let queues = queues.into_iter().collect();
        cx.core.borrow_mut().restore_doubts(Doubts { queues, ..Doubts::default() });
        tokio::time::sleep(RETRY).await;
    }
}

/// A service's notifiers are those that the store says; others are who the actor of notifications says.
async fn settle_notifiers(cx: &JobContext, doubts: Vec<(QueueId, Notice)>) {
    if doubts.is_empty() {
        return;
    }
    let notifiers: Vec<QueueId> = doubts.iter().map(|(notifier, _)| *notifier).collect();
    let own = cx.session.service_in(ServiceRole::Notifier);
    let kept: Vec<bool> = match own {
        None => cx.services.notifications.are_subscribed(cx.me.id, notifiers).await.unwrap_or_default(),
        Some(_) => match cx.services.store.queues(Party::Notifier, &notifiers).await {
            Ok(records) => {
                let service = |record: QueueRecord| record.notifier.and_then(|notifier| notifier.service);
                records.into_iter().map(|record| record.and_then(service) == own).collect()
            }
            Err(failure) => {
                cx.services.store_failures.report(&failure);
                let notifiers = doubts.into_iter().collect();
                cx.core.borrow_mut().restore_doubts(Doubts { notifiers, ..Doubts::default() });
                return tokio::time::sleep(RETRY).await;
            }
        },
    };
    let mut core = cx.core.borrow_mut();
    for ((notifier, notice), kept) in doubts.into_iter().zip(kept) {
        if !kept {
            core.on_notifier_ended(notifier, notice);
        }
    }
}

/// Whether the store could be asked.
async fn settle_queues(cx: &JobContext, queues: &[QueueId]) -> bool {
    let own = cx.session.service_in(ServiceRole::Messaging);
    let looked = match cx.services.store.first_messages(queues, 0).await {
        Ok(looked) => looked,
        Err(failure) => {
            cx.services.store_failures.report(&failure);
            return false;
        }
    };
    let mut core = cx.core.borrow_mut();
    for (queue, looked) in queues.iter().zip(looked) {
        match looked.first {
            Peeked::Absent => core.on_deleted(*queue),
            _ if looked.service != own => core.on_left(*queue),
            _ => {}
        }
    }
    true
}
