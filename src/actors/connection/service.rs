//! A service's connection: its subscription to all queues that are associated with the service. Pure state.
//!
//! Which queues those are, the store knows; here is their number and the hash of their IDs, as far as this connection was
//! told of them: what `ENDS` says when another connection of the service takes over.

use std::collections::VecDeque;

use crate::actors::registry::Epoch;
use crate::protocol::command::{IdsHash, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};

use super::subscription::Confirmed;

/// Queues that left not long ago and are remembered: 24 KiB.
const REMEMBERED: usize = 1000;

const NONE: ServiceQueues = ServiceQueues { count: 0, hash: IdsHash([0; 16]) };

/// How far the waiting messages of the service's queues have been looked for, after `SUBS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// They are not: nobody has asked, or all were sent.
    Done,
    /// The next page is that of the queues behind this one.
    Next(Option<QueueId>),
    /// There are no more pages; `ALLS` follows what was found.
    Last,
}

/// See the module.
#[derive(Debug)]
pub struct ServiceSubscription {
    /// The service.
    pub id: ServiceId,
    /// What it does.
    pub role: ServiceRole,
    epoch: Option<Epoch>,
    /// A command that subscribes is being executed: the newest epoch that ended meanwhile.
    pending: Option<Option<Epoch>>,
    queues: ServiceQueues,
    /// Queues that left last: that a queue is gone is often found by one and told by another, and counts once.
    left: VecDeque<QueueId>,
    /// Whether `SUBS` (`NSUBS`) was answered.
    complete: bool,
    /// Of a messaging service.
    pub pages: Pages,
    /// Of a subscription that has ended: the client is still to be told.
    ended: Option<ServiceQueues>,
}

impl ServiceSubscription {
    /// Of a connection that has subscribed to nothing yet.
    pub fn new(id: ServiceId, role: ServiceRole) -> Self {
        ServiceSubscription {
            id,
            role,
            epoch: None,
            pending: None,
            queues: NONE,
            left: VecDeque::new(),
            complete: false,
            pages: Pages::Done,
            ended: None,
        }
    }

    /// Whether this is the service's connection, as far as it knows.
    pub fn in_force(&self) -> bool {
        self.epoch.is_some()
    }

    /// Which of the connection's subscriptions is in force.
    pub fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// Whether `SUBS` was answered since the subscription came into force.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The queues that it covers.
    pub fn queues(&self) -> ServiceQueues {
        self.queues
    }

    /// A command that subscribes begins.
    pub fn begin(&mut self) {
        self.pending.get_or_insert(None);
    }

    /// The registry has it. `Ended` when another connection has taken over already. An earlier subscription may have ended
    /// meanwhile, of which the client is to be told before the answer.
    pub fn confirm(&mut self, epoch: Epoch) -> Confirmed {
        let Some(ended) = self.pending.take() else {
            // Confirmed by another command of the same block already.
            return if self.epoch == Some(epoch) { Confirmed::InForce } else { Confirmed::Ended };
        };
        if self.epoch.is_some() && self.epoch <= ended {
            self.end();
        }
        self.epoch = Some(epoch);
        match ended.is_some_and(|ended| ended >= epoch) {
            true => {
                self.end();
                Confirmed::Ended
            }
            false => Confirmed::InForce,
        }
    }

    /// No command that subscribes is being executed any more, and none was confirmed. Whether the subscription has ended
    /// meanwhile.
    pub fn abandon(&mut self) -> bool {
        let ended = self.pending.take().flatten();
        let ends = ended.is_some() && self.epoch <= ended;
        if ends {
            self.end();
        }
        ends
    }

    /// Another connection of the service took over from the subscription of this epoch. Whether that is the one in force.
    pub fn on_ended(&mut self, epoch: Epoch) -> bool {
        if let Some(ended) = &mut self.pending {
            *ended = (*ended).max(Some(epoch));
            return false;
        }
        let ends = self.epoch == Some(epoch);
        if ends {
            self.end();
        }
        ends
    }

    fn end(&mut self) {
        self.epoch = None;
        self.complete = false;
        self.pages = Pages::Done;
        self.left = VecDeque::new();
        let queues = std::mem::replace(&mut self.queues, NONE);
        self.ended.get_or_insert(queues);
    }

    /// What `ENDS` is to say, if it was not said yet.
    pub fn take_ended(&mut self) -> Option<ServiceQueues> {
        self.ended.take()
    }

    /// Whether `ENDS` was not said yet.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// `SUBS` is answered with these queues: the messages that wait in them follow.
    pub fn complete(&mut self, queues: ServiceQueues) {
        self.queues = queues;
        self.left = VecDeque::new();
        self.complete = true;
        if self.role == ServiceRole::Messaging {
            self.pages = Pages::Next(None);
        }
    }

    /// A queue was associated with the service on this connection.
    pub fn join(&mut self, id: &QueueId) {
        self.left.retain(|left| left != id);
        self.queues.count += 1;
        self.queues.hash.toggle(&id.0);
    }

    /// A queue left the service, or is gone. Whether that was not known.
    pub fn leave(&mut self, id: &QueueId) -> bool {
        if self.left.contains(id) {
            return false;
        }
        if self.left.len() == REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(*id);
        if self.queues.count > 0 {
            self.queues.count -= 1;
            self.queues.hash.toggle(&id.0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId([7; 24]);

    fn subscription() -> ServiceSubscription {
        ServiceSubscription::new(ServiceId([1; 24]), ServiceRole::Messaging)
    }

    #[test]
    fn queues_that_join_and_leave_are_counted() {
        let mut subscription = subscription();
        subscription.join(&QUEUE);
        assert_eq!(subscription.queues(), ServiceQueues { count: 1, hash: IdsHash::of([&QUEUE.0[..]]) });
        assert!(subscription.leave(&QUEUE));
        assert_eq!(subscription.queues(), NONE);
        assert!(!subscription.leave(&QUEUE), "known");
        assert_eq!(subscription.queues(), NONE);
        subscription.join(&QUEUE);
        assert!(subscription.leave(&QUEUE), "again");
    }

    #[test]
    fn of_the_queues_that_left_the_last_ones_are_remembered() {
        let mut subscription = subscription();
        let id = |n: usize| QueueId(std::array::from_fn(|at| u8::try_from(n >> (8 * at.min(2)) & 0xff).unwrap()));
        assert!((0..=REMEMBERED).all(|n| subscription.leave(&id(n))));
        assert_eq!(subscription.left.len(), REMEMBERED);
        assert!(!subscription.leave(&id(REMEMBERED)) && !subscription.leave(&id(1)));
        assert!(subscription.leave(&id(0)));
    }

    #[test]
    fn the_end_of_the_subscription_in_force_is_told_once_with_its_queues() {
        let mut subscription = subscription();
        subscription.begin();
        assert_eq!(subscription.confirm(Epoch(5)), Confirmed::InForce);
        subscription.join(&QUEUE);
        assert!(!subscription.on_ended(Epoch(4)) && subscription.in_force());
        assert!(subscription.on_ended(Epoch(5)) && !subscription.in_force());
        assert_eq!(subscription.take_ended().map(|queues| queues.count), Some(1));
        assert_eq!((subscription.take_ended(), subscription.queues()), (None, NONE));
    }

    #[test]
    fn who_subscribes_again_is_told_that_an_earlier_subscription_ended() {
        let mut subscription = subscription();
        subscription.begin();
        subscription.confirm(Epoch(1));
        subscription.join(&QUEUE);
        subscription.begin();
        assert!(!subscription.on_ended(Epoch(1)));
        assert_eq!(subscription.confirm(Epoch(3)), Confirmed::InForce);
        assert_eq!(subscription.take_ended().map(|queues| queues.count), Some(1));
        assert!(subscription.on_ended(Epoch(3)));
        subscription.begin();
        assert_eq!(subscription.take_ended(), Some(NONE));
        assert_eq!(subscription.confirm(Epoch(4)), Confirmed::InForce);
        assert!(!subscription.has_ended());
    }

    #[test]
    fn a_subscription_that_was_taken_over_before_it_was_confirmed_ends_at_once() {
        let mut subscription = subscription();
        subscription.begin();
        subscription.on_ended(Epoch(2));
        assert_eq!(subscription.confirm(Epoch(2)), Confirmed::Ended);
        assert!(!subscription.in_force() && subscription.take_ended().is_some());
    }

    #[test]
    fn a_subscription_that_failed_leaves_the_one_before_unless_that_ended() {
        let mut subscription = subscription();
        subscription.begin();
        subscription.confirm(Epoch(2));
        subscription.begin();
        assert!(!subscription.abandon() && subscription.in_force());
        subscription.begin();
        subscription.on_ended(Epoch(2));
        assert!(subscription.abandon() && subscription.has_ended());
    }
}
