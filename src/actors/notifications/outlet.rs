//! The connection that notifications wait for: in which order its notifiers have their turns, and what it has taken. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use super::pending::{Listed, Number, Pending};
use crate::actors::registry::{ConnectionId, ConnectionRef};
use crate::protocol::QueueId;
use crate::store::files::notification::Notification;

/// The connection that something waits for.
#[derive(Debug)]
pub struct Outlet {
    /// The connection.
    pub connection: ConnectionRef,
    /// Notifiers for which something waits, each once.
    pub ready: VecDeque<QueueId>,
    /// What was taken last, and not confirmed.
    pub taken: Vec<Number>,
    /// For whom that was.
    pub taken_for: Vec<QueueId>,
}

impl Outlet {
    /// Of a connection for which nothing waits yet.
    pub fn new(connection: &ConnectionRef) -> Self {
        Outlet { connection: Arc::clone(connection), ready: VecDeque::new(), taken: Vec::new(), taken_for: Vec::new() }
    }

    /// What was taken was sent.
    pub fn confirm(&mut self) -> Vec<Number> {
        std::mem::take(&mut self.taken)
    }

    /// Notifiers that were taken from are first in line with what is left of theirs.
    pub fn go_on(&mut self, own: ConnectionId, pending: &mut Pending) {
        for notifier in std::mem::take(&mut self.taken_for).into_iter().rev() {
            if let Some(line) = pending.line(&notifier)
                && line.listed == Listed::TakenBy(own)
            {
                line.listed = Listed::With(own);
                self.ready.push_front(notifier);
            }
        }
    }

    /// Takes what waits for a notifier, if it still stands in this line.
    pub fn take_for(
        &mut self,
        own: ConnectionId,
        notifier: QueueId,
        pending: &mut Pending,
        limit: usize,
    ) -> Vec<Notification> {
        match pending.line(&notifier) {
            Some(line) if line.listed == Listed::With(own) => line.listed = Listed::TakenBy(own),
            // Removed, dropped or gone to another connection meanwhile.
            _ => return Vec::new(),
        }
        self.taken_for.push(notifier);
        let (numbers, taken): (Vec<Number>, Vec<Notification>) = pending.take(&notifier, limit).into_iter().unzip();
        self.taken.extend(numbers);
        taken
    }
}
