//! A connection's subscriptions and what was delivered through them: pure state.
//!
//! Keeps two invariants: at most one unacknowledged message a subscription, and no message after its `ACK` (messages
//! are numbered within their queue; an offer whose number is not above the last acknowledged one is stale).

use std::collections::VecDeque;

pub use super::delivered::{Acknowledging, Confirmed, Delivered, Offer, Prohibited, Source, Use};
use crate::actors::registry::{Epoch, QueueMap};
use crate::protocol::{MessageId, QueueId};

/// How a queue is used on this connection.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// `SUB` is being executed; an epoch that ended already meanwhile.
    Pending {
        /// The newest epoch that was ended while the registry's answer was not yet seen.
        ended: Option<Epoch>,
    },
    /// In force.
    Active {
        /// Which of this connection's subscriptions to the queue.
        epoch: Epoch,
    },
    /// In force for as long as this is the service's connection and the queue the service's. Here only while something
    /// of the queue is delivered or to be fetched.
    Service,
    /// Used by `GET`: not subscribed, and not to be on this connection.
    Got,
}

/// One subscription.
#[derive(Debug)]
struct Subscription {
    state: State,
    delivered: Option<Box<Delivered>>,
    /// The number up to which messages are known to be acknowledged; `None` until one is known: then what is pushed may
    /// be from before the subscription, and only the store can tell.
    acknowledged: Option<u64>,
    fetch: bool,
    /// The store is being asked for it.
    asked: bool,
    /// It was found when the waiting messages of a service were looked for, and is not done yet.
    paged: bool,
}

impl Subscription {
    fn new(state: State) -> Self {
        Subscription { state, delivered: None, acknowledged: None, fetch: false, asked: false, paged: false }
    }

    /// Whether what there is for it may be sent.
    fn is_in_force(&self) -> bool {
        matches!(self.state, State::Active { .. } | State::Service)
    }
}

/// All subscriptions of a connection.
#[derive(Debug, Default)]
pub struct Subscriptions {
    queues: QueueMap<Subscription>,
    to_fetch: VecDeque<QueueId>,
    in_force: usize,
    /// Whether this is the connection of a messaging service: then all queues of the service are subscribed.
    serves: bool,
    /// Queues that were found for a service and are not done yet.
    paged: usize,
}

impl Subscriptions {
    /// `SUB` begins. Subscribing again makes the unacknowledged message be sent again; until it is confirmed the earlier
    /// subscription counts no more, so that its end is not taken for that of the new one.
    pub fn begin(&mut self, queue: QueueId) -> Result<(), Prohibited> {
        let pending = State::Pending { ended: None };
        let subscription = self.queues.entry(queue).or_insert_with(|| Subscription::new(pending));
        match subscription.state {
            State::Got => return Err(Prohibited),
            State::Active { .. } => {
                self.in_force -= 1;
                subscription.state = State::Pending { ended: None };
            }
            State::Service => subscription.state = State::Pending { ended: None },
            State::Pending { .. } => {}
        }
        subscription.delivered = None;
        Ok(())
    }

    /// The registry has it.
    pub fn confirm(&mut self, queue: QueueId, epoch: Epoch) -> Confirmed {
        let Some(subscription) = self.queues.get_mut(&queue) else { return Confirmed::Ended };
        match subscription.state {
            State::Pending { ended } if ended.is_some_and(|ended| ended >= epoch) => {
                self.queues.remove(&queue);
                Confirmed::Ended
            }
            State::Pending { .. } => {
                self.in_force += 1;
                subscription.state = State::Active { epoch };
                if subscription.fetch {
                    self.to_fetch.push_back(queue);
                }
                Confirmed::InForce
            }
            State::Active { .. } | State::Service | State::Got => Confirmed::InForce,
        }
    }

    /// The queue is the service's, and this the service's connection.
    pub fn confirm_for_service(&mut self, queue: QueueId) {
        if let Some(subscription) = self.queues.get_mut(&queue)
            && matches!(subscription.state, State::Pending { .. })
        {
            subscription.state = State::Service;
            if subscription.fetch {
                self.to_fetch.push_back(queue);
            }
        }
    }

    /// This is the connection of its service now.
    pub fn serve(&mut self) {
        self.serves = true;
    }

    /// It is no more: nothing of the service's queues is sent or fetched. `SUB`s that are being executed find out
    /// themselves.
    pub fn serve_no_more(&mut self) {
        self.serves = false;
        self.paged = 0;
        self.queues.retain(|_, subscription| subscription.state != State::Service);
        self.queues.values_mut().for_each(|subscription| subscription.paged = false);
        self.shrink();
    }

    /// A queue of the service has messages: they are to be fetched, unless one is delivered already.
    pub fn page(&mut self, queue: QueueId) {
        if !self.serves {
            return;
        }
        let subscription = self.queues.entry(queue).or_insert_with(|| Subscription::new(State::Service));
        if subscription.state != State::Service || subscription.delivered.is_some() {
            return;
        }
        if !std::mem::replace(&mut subscription.paged, true) {
            self.paged += 1;
        }
        self.want(queue);
    }

    /// Queues that wait to be fetched.
    pub fn waiting(&self) -> usize {
        self.to_fetch.len()
    }

    /// Whether all queues that were found for the service are done: their messages are sent.
    pub fn are_pages_done(&self) -> bool {
        self.paged == 0
    }

    /// Whether the queue was found for the service and is not done yet.
    pub fn is_paged(&self, queue: &QueueId) -> bool {
        self.queues.get(queue).is_some_and(|subscription| subscription.paged)
    }

    /// There is nothing of the queue: a service's connection keeps no memory of it.
    pub fn settle(&mut self, queue: QueueId) {
        if let Some(subscription) = self.queues.get(&queue)
            && subscription.state == State::Service
            && subscription.delivered.is_none()
            && !subscription.fetch
        {
            self.forget(queue);
        }
    }

    /// Whether the queue is here because it is the service's.
    pub fn is_of_service(&self, queue: &QueueId) -> bool {
        self.queues.get(queue).is_some_and(|subscription| subscription.state == State::Service)
    }

    /// `SUB` failed: forgets the subscription.
    pub fn abandon(&mut self, queue: QueueId) {
        if matches!(self.queues.get(&queue), Some(Subscription { state: State::Pending { .. }, .. })) {
            self.queues.remove(&queue);
        }
    }

    /// `GET` begins.
    pub fn get(&mut self, queue: QueueId) -> Result<(), Prohibited> {
        let subscription = self.queues.entry(queue).or_insert_with(|| Subscription::new(State::Got));
        match subscription.state {
            State::Got => {
                subscription.delivered = None;
                Ok(())
            }
            State::Pending { .. } | State::Active { .. } | State::Service => Err(Prohibited),
        }
    }

    /// A message for a subscribed queue. `room`: whether the outbound queue takes it.
    pub fn offer(&mut self, queue: QueueId, message: Delivered, source: Source, room: bool) -> Offer {
        if self.serves && source == Source::Pushed {
            self.queues.entry(queue).or_insert_with(|| Subscription::new(State::Service));
        }
        let Some(subscription) = self.queues.get_mut(&queue) else { return Offer::Drop };
        if source == Source::Fetched && !std::mem::take(&mut subscription.asked) {
            // Read for a subscription that has ended meanwhile. This one asks itself.
            return Offer::Drop;
        }
        let stale = subscription.acknowledged.is_some_and(|acknowledged| message.sequence <= acknowledged);
        if subscription.delivered.is_some() || stale || subscription.state == State::Got {
            return Offer::Drop;
        }
        let active = subscription.is_in_force();
        let may_be_old = source == Source::Pushed && subscription.acknowledged.is_none();
        if !active || !room || may_be_old {
            self.want(queue);
            return Offer::Later;
        }
        // It is the queue's first: all before it are gone.
        subscription.acknowledged.get_or_insert(message.sequence.saturating_sub(1));
        subscription.delivered = Some(Box::new(message));
        self.paged -= usize::from(std::mem::take(&mut subscription.paged));
        Offer::Deliver
    }

    /// The queue was just created by this connection: no message of it is old.
    pub fn is_new(&mut self, queue: QueueId) {
        if let Some(subscription) = self.queues.get_mut(&queue) {
            subscription.acknowledged.get_or_insert(0);
        }
    }

    /// Notes a message as delivered in the answer to the command being executed (`ACK`, `GET`).
    pub fn delivered(&mut self, queue: QueueId, message: Delivered) {
        if let Some(subscription) = self.queues.get_mut(&queue) {
            subscription.delivered = Some(Box::new(message));
        }
    }

    /// `ACK` begins: which message it acknowledges, if `id` (any if `None`) is the delivered one.
    pub fn acknowledge(&mut self, queue: QueueId, id: Option<MessageId>) -> Option<Acknowledging> {
        let subscription = self.queues.get_mut(&queue)?;
        let message = **subscription.delivered.as_ref().filter(|d| id.is_none_or(|id| id == d.id))?;
        subscription.delivered = None;
        subscription.acknowledged = subscription.acknowledged.max(Some(message.sequence));
        Some(Acknowledging { message, got: subscription.state == State::Got })
    }

    /// `ACK` was not stored: the message counts as delivered again.
    pub fn restore(&mut self, queue: QueueId, message: Delivered) {
        if let Some(subscription) = self.queues.get_mut(&queue)
            && subscription.delivered.is_none()
        {
            subscription.acknowledged = Some(message.sequence.saturating_sub(1));
            subscription.delivered = Some(Box::new(message));
        }
    }

    /// Another connection took over the subscription of this epoch. Whether the client is to be told now.
    pub fn ended(&mut self, queue: QueueId, epoch: Epoch) -> bool {
        let Some(subscription) = self.queues.get_mut(&queue) else { return false };
        match &mut subscription.state {
            State::Pending { ended } => {
                *ended = Some(ended.map_or(epoch, |before| before.max(epoch)));
                false
            }
            State::Active { epoch: current } if *current == epoch => {
                self.forget(queue);
                true
            }
            State::Active { .. } | State::Service | State::Got => false,
        }
    }

    /// The queue was deleted. Whether it was subscribed here.
    pub fn forget(&mut self, queue: QueueId) -> bool {
        let removed = self.queues.remove(&queue);
        let active = removed.as_ref().is_some_and(|s| matches!(s.state, State::Active { .. }));
        self.in_force -= usize::from(active);
        self.paged -= usize::from(removed.as_ref().is_some_and(|s| s.paged));
        self.shrink();
        removed.is_some()
    }

    fn shrink(&mut self) {
        if self.queues.capacity() > 64 && self.queues.len() < self.queues.capacity() / 4 {
            self.queues.shrink_to(self.queues.len() * 2);
        }
    }

    /// How the queue is used here.
    pub fn usage(&self, queue: &QueueId) -> Option<Use> {
        self.queues.get(queue).map(|s| Use {
            got: s.state == State::Got,
            waiting: s.fetch,
            delivered: s.delivered.as_ref().map(|d| d.id),
        })
    }

    /// Notes that the store has something for the queue which could not be sent. A subscription that is not in force yet
    /// joins the line when it is.
    pub fn want(&mut self, queue: QueueId) {
        if let Some(subscription) = self.queues.get_mut(&queue)
            && !std::mem::replace(&mut subscription.fetch, true)
            && subscription.is_in_force()
        {
            self.to_fetch.push_back(queue);
        }
    }

    /// [`Self::want`], also for a queue of the service of which nothing is here.
    pub fn suspect(&mut self, queue: QueueId) {
        if self.serves {
            self.queues.entry(queue).or_insert_with(|| Subscription::new(State::Service));
        }
        self.want(queue);
    }

    /// Whether the store is to be asked for any queue now.
    pub fn can_fetch(&self) -> bool {
        !self.to_fetch.is_empty()
    }

    /// Takes up to `limit` queues for which the store is to be asked now: in force, and nothing delivered.
    pub fn take_wanted(&mut self, limit: usize) -> Vec<QueueId> {
        let mut taken = Vec::new();
        while taken.len() < limit {
            let Some(queue) = self.to_fetch.pop_front() else { break };
            let Some(subscription) = self.queues.get_mut(&queue) else { continue };
            subscription.fetch = false;
            match subscription.delivered {
                None => {
                    subscription.asked = true;
                    taken.push(queue);
                }
                Some(_) => self.paged -= usize::from(std::mem::take(&mut subscription.paged)),
            }
        }
        if self.to_fetch.is_empty() {
            self.to_fetch = VecDeque::new();
        }
        taken
    }

    /// Number of subscriptions in force.
    pub fn in_force(&self) -> usize {
        self.in_force
    }

    /// Takes all out, for a connection that ends: the queues to be unsubscribed.
    pub fn drain(&mut self) -> Vec<QueueId> {
        self.in_force = 0;
        self.to_fetch = VecDeque::new();
        let all = std::mem::take(&mut self.queues);
        let registered = |state: &State| !matches!(state, State::Got | State::Service);
        all.into_iter().filter(|(_, s)| registered(&s.state)).map(|(queue, _)| queue).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Source::{Fetched, Pushed, Read};
    use super::*;

    fn queue() -> QueueId {
        QueueId([7; 24])
    }

    fn message(sequence: u64) -> Delivered {
        Delivered { id: MessageId([u8::try_from(sequence).unwrap(); 24]), sequence }
    }

    fn active() -> Subscriptions {
        let mut subscriptions = Subscriptions::default();
        subscriptions.begin(queue()).unwrap();
        assert_eq!(subscriptions.confirm(queue(), Epoch(5)), Confirmed::InForce);
        subscriptions
    }

    #[test]
    fn at_most_one_message_is_unacknowledged() {
        let mut s = active();
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
        assert_eq!(s.offer(queue(), message(2), Read, true), Offer::Drop);
        assert_eq!(s.acknowledge(queue(), Some(message(2).id)), None);
        assert_eq!(
            s.acknowledge(queue(), Some(message(1).id)),
            Some(Acknowledging { message: message(1), got: false })
        );
        assert_eq!(s.acknowledge(queue(), None), None, "acknowledged once only");
        assert_eq!(s.offer(queue(), message(2), Read, true), Offer::Deliver);
    }

    #[test]
    fn a_message_is_never_shown_after_its_acknowledgement() {
        let mut s = active();
        assert_eq!(s.offer(queue(), message(3), Read, true), Offer::Deliver);
        s.acknowledge(queue(), None).unwrap();
        assert_eq!(s.offer(queue(), message(3), Read, true), Offer::Drop);
        assert_eq!(s.offer(queue(), message(2), Read, true), Offer::Drop);
        assert_eq!(s.offer(queue(), message(4), Read, true), Offer::Deliver);
    }

    #[test]
    fn an_acknowledgement_that_was_not_stored_leaves_the_message_delivered() {
        let mut s = active();
        s.offer(queue(), message(3), Read, true);
        let acknowledging = s.acknowledge(queue(), None).unwrap();
        s.restore(queue(), acknowledging.message);
        assert_eq!(s.offer(queue(), message(4), Read, true), Offer::Drop);
        assert_eq!(s.acknowledge(queue(), Some(message(3).id)).map(|a| a.message), Some(message(3)));
    }

    #[test]
    fn what_was_fetched_for_a_subscription_that_has_ended_is_not_for_its_successor() {
        let mut s = Subscriptions::default();
        s.serve();
        s.page(queue());
        assert_eq!(s.take_wanted(10), [queue()]);
        s.forget(queue());
        s.suspect(queue());
        assert_eq!(s.offer(queue(), message(1), Fetched, true), Offer::Drop, "the queue had left the service");
        assert_eq!(s.take_wanted(10), [queue()]);
        assert_eq!(s.offer(queue(), message(1), Fetched, true), Offer::Deliver);
    }

    #[test]
    fn what_finds_no_room_is_fetched_later_and_once() {
        let mut s = active();
        assert_eq!(s.offer(queue(), message(1), Read, false), Offer::Later);
        assert_eq!(s.offer(queue(), message(1), Read, false), Offer::Later);
        assert_eq!(s.usage(&queue()).map(|u| u.waiting), Some(true));
        assert_eq!(s.take_wanted(10), [queue()]);
        assert!(s.take_wanted(10).is_empty());
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
    }

    #[test]
    fn a_message_that_arrives_before_the_subscription_is_answered_is_fetched_after() {
        let mut s = Subscriptions::default();
        s.begin(queue()).unwrap();
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Later);
        assert!(s.take_wanted(10).is_empty(), "not in force yet");
        assert!(!s.can_fetch());
        s.confirm(queue(), Epoch(1));
        assert_eq!(s.take_wanted(10), [queue()]);
    }

    #[test]
    fn a_late_end_of_an_earlier_subscription_does_not_end_the_one_in_force() {
        let mut s = active();
        s.begin(queue()).unwrap();
        s.confirm(queue(), Epoch(9));
        assert!(!s.ended(queue(), Epoch(5)));
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
        assert!(s.ended(queue(), Epoch(9)));
        assert_eq!(s.offer(queue(), message(2), Read, true), Offer::Drop, "nothing is delivered after END");
        assert_eq!(s.in_force(), 0);
    }

    #[test]
    fn races_of_subscribing_again_with_a_take_over_end_the_right_subscription() {
        let mut s = active();
        s.begin(queue()).unwrap();
        assert!(!s.ended(queue(), Epoch(5)), "the end of the earlier one comes late");
        assert_eq!(s.confirm(queue(), Epoch(7)), Confirmed::InForce);
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
        s.begin(queue()).unwrap();
        assert!(!s.ended(queue(), Epoch(8)), "the end of the new one comes early");
        assert_eq!(s.confirm(queue(), Epoch(8)), Confirmed::Ended);
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Drop);
        assert_eq!(s.in_force(), 0);
    }

    #[test]
    fn what_is_pushed_to_a_young_subscription_is_fetched_because_it_may_be_acknowledged_long_since() {
        let mut s = active();
        assert_eq!(s.offer(queue(), message(3), Pushed, true), Offer::Later);
        assert_eq!(s.take_wanted(1), [queue()]);
        assert_eq!(s.offer(queue(), message(4), Read, true), Offer::Deliver);
        s.acknowledge(queue(), None).unwrap();
        assert_eq!(s.offer(queue(), message(3), Pushed, true), Offer::Drop);
        assert_eq!(s.offer(queue(), message(5), Pushed, true), Offer::Deliver);
    }

    #[test]
    fn what_is_pushed_to_a_new_queue_is_delivered_at_once() {
        let mut s = active();
        s.is_new(queue());
        assert_eq!(s.offer(queue(), message(1), Pushed, true), Offer::Deliver);
    }

    #[test]
    fn what_waits_longest_is_fetched_first() {
        let mut s = Subscriptions::default();
        let queues: Vec<_> = (0..5u8).map(|n| QueueId([n; 24])).collect();
        for queue in &queues {
            s.begin(*queue).unwrap();
            s.confirm(*queue, Epoch(1));
            s.want(*queue);
        }
        assert_eq!(s.take_wanted(2), queues[..2]);
        s.want(queues[0]);
        assert_eq!(s.take_wanted(9), [queues[2], queues[3], queues[4], queues[0]]);
    }

    #[test]
    fn a_take_over_before_the_confirmation_ends_the_subscription() {
        let mut s = Subscriptions::default();
        s.begin(queue()).unwrap();
        assert!(!s.ended(queue(), Epoch(3)));
        assert_eq!(s.confirm(queue(), Epoch(3)), Confirmed::Ended);
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Drop);
    }

    #[test]
    fn get_and_sub_exclude_each_other() {
        let mut s = active();
        assert_eq!(s.get(queue()), Err(Prohibited));
        let mut s = Subscriptions::default();
        s.get(queue()).unwrap();
        assert_eq!(s.begin(queue()), Err(Prohibited));
        s.delivered(queue(), message(1));
        assert_eq!(s.acknowledge(queue(), None), Some(Acknowledging { message: message(1), got: true }));
        assert!(s.drain().is_empty(), "GET subscribes to nothing");
    }

    #[test]
    fn subscribing_again_delivers_the_unacknowledged_message_again() {
        let mut s = active();
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
        s.begin(queue()).unwrap();
        s.confirm(queue(), Epoch(6));
        assert_eq!(s.offer(queue(), message(1), Read, true), Offer::Deliver);
    }
}
