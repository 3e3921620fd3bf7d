//! What others said of this connection's subscriptions, and may be out of date when it arrives: the store is asked before
//! the client is told.
//!
//! A queue that was released from a service may have been associated with it again, by a command of this very connection
//! that is being executed. So doubts are settled by a job, which no other is executed beside: what is found out is true with
//! regard to all commands that were answered, and the answers of those that come after follow.

use std::collections::BTreeSet;
use std::time::Duration;

use super::services::JobContext;
use crate::protocol::QueueId;
use crate::protocol::handshake::ServiceRole;
use crate::store::Peeked;

/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be asked. Bounded by the subscriptions, each of which is here once.
#[derive(Debug, Default)]
pub struct Doubts {
    /// Queues of the service that are perhaps no more.
    pub queues: BTreeSet<QueueId>,
    /// Notifiers that somebody else has perhaps subscribed to.
    pub notifiers: BTreeSet<QueueId>,
}

/// Finds out what is true.
pub async fn settle(cx: JobContext) {
    let doubts = cx.core.borrow_mut().take_doubts();
    let queues: Vec<QueueId> = doubts.queues.into_iter().collect();
    if !queues.is_empty() && !settle_queues(&cx, &queues).await {
        let queues = queues.into_iter().collect();
        cx.core.borrow_mut().restore_doubts(Doubts { queues, ..Doubts::default() });
        tokio::time::sleep(RETRY).await;
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
