//! What is known of all queues: what was sent to them, and what became of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use smp_server::client::{Queue, Request};
use smp_server::protocol::ids::EntityId;

/// Messages of a queue that are sent and not acknowledged, at most: below the quota.
const WINDOW: u64 = 40;

/// Answers to `ACK`s of one queue's messages on different connections that may be read in another order than given.
const OVERLAP: usize = 2;

/// All queues, by their number. What happens is in the order of `now`.
#[derive(Default)]
pub struct Queues {
    queues: RefCell<Vec<Known>>,
    now: Cell<u64>,
    deliveries: Cell<u64>,
}

struct Known {
    queue: Queue,
    /// Messages that were asked to be sent; their numbers are below it.
    asked: u64,
    /// Messages whose `SEND` was answered.
    sent: u64,
    /// When each message's `ACK` was answered.
    acknowledged: Vec<Option<u64>>,
    /// The party to whom a message came last.
    last_receiver: Option<usize>,
    being_deleted: bool,
    deleted: bool,
}

impl Queues {
    /// The time: it passes with each question and answer.
    pub fn tick(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    pub fn add(&self, queue: Queue) -> usize {
        let mut queues = self.queues.borrow_mut();
        queues.push(Known {
            queue,
            asked: 0,
            sent: 0,
            acknowledged: Vec::new(),
            last_receiver: None,
            being_deleted: false,
            deleted: false,
        });
        queues.len() - 1
    }

    pub fn get(&self, queue: usize) -> Queue {
        self.queues.borrow()[queue].queue.clone()
    }

    pub fn position(&self, recipient_id: &EntityId) -> Option<usize> {
        self.queues.borrow().iter().position(|known| known.queue.id() == recipient_id)
    }

    /// Queues that nobody has asked to delete.
    pub fn alive(&self) -> Vec<usize> {
        self.numbers(|known| !known.being_deleted)
    }

    pub fn is_alive(&self, queue: usize) -> bool {
        !self.queues.borrow()[queue].deleted
    }

    pub fn is_being_deleted(&self, queue: usize) -> bool {
        self.queues.borrow()[queue].being_deleted
    }

    pub fn with_room(&self) -> Vec<usize> {
        self.numbers(|known| !known.being_deleted && known.asked - known.count() < WINDOW)
    }

    fn numbers(&self, condition: impl Fn(&Known) -> bool) -> Vec<usize> {
        let queues = self.queues.borrow();
        queues.iter().enumerate().filter(|(_, known)| condition(known)).map(|(number, _)| number).collect()
    }

    /// `SEND` of the next message.
    pub fn message(&self, queue: usize) -> Request {
        let known = &mut self.queues.borrow_mut()[queue];
        let number = known.asked;
        known.asked += 1;
        known.acknowledged.push(None);
        known.queue.sender().message(Default::default(), &number.to_be_bytes())
    }

    pub fn sent(&self, queue: usize) {
        self.queues.borrow_mut()[queue].sent += 1;
    }

    /// A message came to a party that has asked for the queue's messages at `since`.
    pub fn received(&self, queue: usize, number: u64, party: usize, since: u64) {
        let known = &mut self.queues.borrow_mut()[queue];
        assert!(number < known.asked, "message {number} of queue {queue} was never sent");
        let acknowledged = known.acknowledged[number as usize];
        assert!(
            acknowledged.is_none_or(|at| at > since),
            "message {number} of queue {queue} comes again, acknowledged before party {party} subscribed"
        );
        known.last_receiver = Some(party);
        self.deliveries.set(self.deliveries.get() + 1);
    }

    /// `ACK` of a message was answered with success.
    pub fn acknowledged(&self, queue: usize, number: u64) {
        let now = self.tick();
        let known = &mut self.queues.borrow_mut()[queue];
        let earlier = &known.acknowledged[..number as usize];
        assert!(
            known.being_deleted || earlier.iter().filter(|at| at.is_none()).count() <= OVERLAP,
            "message {number} of queue {queue} was delivered before earlier ones were acknowledged"
        );
        known.acknowledged[number as usize].get_or_insert(now);
    }

    pub fn delete(&self, queue: usize) {
        self.queues.borrow_mut()[queue].being_deleted = true;
    }

    pub fn deleted(&self, queue: usize) {
        self.queues.borrow_mut()[queue].deleted = true;
    }

    /// What has to come yet, if anything.
    pub fn left_to_come(&self) -> Option<String> {
        let queues = self.queues.borrow();
        let mut waiting =
            queues.iter().enumerate().filter(|(_, known)| !known.being_deleted && known.count() < known.sent);
        waiting.next().map(|(number, known)| {
            format!("queue {number}: of {} messages {} were acknowledged", known.sent, known.count())
        })
    }

    /// The queues whose last message came to this party.
    pub fn last_received_by(&self, party: usize) -> Vec<usize> {
        self.numbers(|known| !known.being_deleted && known.last_receiver == Some(party))
    }

    pub fn recipient_ids(&self, queues: &BTreeSet<usize>) -> Vec<EntityId> {
        queues.iter().map(|queue| self.get(*queue).id().clone()).collect()
    }

    pub fn summary(&self) -> String {
        let queues = self.queues.borrow();
        let sent: u64 = queues.iter().map(|known| known.sent).sum();
        format!("{} queues, {sent} messages sent, {} delivered", queues.len(), self.deliveries.get())
    }
}

impl Known {
    /// Messages that were acknowledged.
    fn count(&self) -> u64 {
        self.acknowledged.iter().flatten().count() as u64
    }
}
