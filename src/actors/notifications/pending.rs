//! Notifications that wait: for each notifier in their order, and all of them in the order in which they came. Pure.
//!
//! Bounded for each notifier and in all: what is too much drops the oldest. A notifier without any has no entry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::actors::registry::{ConnectionId, QueueMap};
use crate::protocol::{QueueId, ServiceId};
use crate::store::Timestamp;
use crate::store::files::notification::Notification;

/// The number of a notification: counts up in the order in which they come.
pub type Number = u64;

/// How many may wait.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For one notifier.
    pub notifier: usize,
    /// In all.
    pub total: usize,
}

/// One that waits.
#[derive(Debug)]
struct Waiting {
    notification: Notification,
    /// Whether the journal has it.
    written: bool,
    /// Whether a connection has taken it, and not confirmed it yet.
    taken: bool,
}

/// What waits for one notifier.
#[derive(Debug, Default)]
pub struct Line {
    /// The notifier's service, as far as is known.
    pub service: Option<ServiceId>,
    /// In whose line it stands.
    pub listed: Listed,
    numbers: VecDeque<Number>,
}

/// Whether something that waits stands in the line of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listed {
    /// In nobody's.
    #[default]
    Nowhere,
    /// In this one's.
    With(ConnectionId),
    /// This one has taken some of it, and goes on with the rest.
    TakenBy(ConnectionId),
}

/// How many were dropped because of which limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Of their notifier.
    pub notifier: u64,
    /// In all.
    pub total: u64,
}

/// What the journal does not know yet.
#[derive(Debug, Default)]
pub struct Unwritten {
    added: BTreeSet<Number>,
    removed: Vec<Number>,
}

/// See the module.
#[derive(Debug)]
pub struct Pending {
    all: BTreeMap<Number, Waiting>,
    lines: QueueMap<Line>,
    next: Number,
    limits: Limits,
    unwritten: Unwritten,
}

impl Pending {
    /// Nothing.
    pub fn new(limits: Limits) -> Self {
        Pending { all: BTreeMap::new(), lines: QueueMap::default(), next: 0, limits, unwritten: Unwritten::default() }
    }

    /// Appends one; drops the oldest ones if it is too much.
    pub fn push(&mut self, notification: Notification, service: Option<ServiceId>) -> Dropped {
        let notifier = notification.notifier;
        let number = self.next;
        self.next += 1;
        self.all.insert(number, Waiting { notification, written: false, taken: false });
        self.unwritten.added.insert(number);
        let line = self.lines.entry(notifier).or_default();
        line.service = service;
        line.numbers.push_back(number);
        let mut dropped = Dropped::default();
        if line.numbers.len() > self.limits.notifier.max(1)
            && let Some(oldest) = line.numbers.pop_front()
        {
            dropped.notifier += self.forget(oldest);
        }
        while self.all.len() > self.limits.total.max(1) {
            dropped.total += self.drop_oldest();
        }
        dropped
    }

    /// Answers how many were dropped that nobody has taken.
    fn drop_oldest(&mut self) -> u64 {
        let Some((number, waiting)) = self.all.pop_first() else { return 0 };
        self.note_removed(number, waiting.written);
        self.leave_line(waiting.notification.notifier, number);
        u64::from(!waiting.taken)
    }

    /// Takes a notification out of its notifier's line.
    fn leave_line(&mut self, notifier: QueueId, number: Number) {
        let Some(line) = self.lines.get_mut(&notifier) else { return };
        // It is the first one but for those that restore an order that was lost.
        if let Some(place) = line.numbers.iter().position(|other| *other == number) {
            line.numbers.remove(place);
        }
        if line.numbers.is_empty() {
            self.lines.remove(&notifier);
            self.shrink();
        }
    }

    /// Answers how many were forgotten that nobody has taken.
    fn forget(&mut self, number: Number) -> u64 {
        let Some(waiting) = self.all.remove(&number) else { return 0 };
        self.note_removed(number, waiting.written);
        u64::from(!waiting.taken)
    }

    fn note_removed(&mut self, number: Number, written: bool) {
        match written {
            true => self.unwritten.removed.push(number),
            false => drop(self.unwritten.added.remove(&number)),
        }
    }

    /// The first notifications for a notifier, at most `limit`: a connection takes them, and they wait here until they are
    /// delivered.
    pub fn take(&mut self, notifier: &QueueId, limit: usize) -> Vec<(Number, Notification)> {
        let Some(line) = self.lines.get(notifier) else { return Vec::new() };
        let take = |number: &Number| {
            let waiting = self.all.get_mut(number)?;
            waiting.taken = true;
            Some((*number, waiting.notification.clone()))
        };
        line.numbers.iter().take(limit).filter_map(take).collect()
    }

    /// Removes notifications that were delivered, if they are still here.
    pub fn delivered(&mut self, numbers: &[Number]) {
        for number in numbers {
            if let Some(waiting) = self.all.remove(number) {
                self.note_removed(*number, waiting.written);
                self.leave_line(waiting.notification.notifier, *number);
            }
        }
    }

    /// Notifications that were taken wait for another connection; answers how many were dropped meanwhile.
    pub fn give_back(&mut self, numbers: &[Number]) -> u64 {
        let mut dropped = 0;
        for number in numbers {
            match self.all.get_mut(number) {
                Some(waiting) => waiting.taken = false,
                None => dropped += 1,
            }
        }
        dropped
    }

    /// Removes all that waits for a notifier; answers how many nobody has taken.
    pub fn remove(&mut self, notifier: &QueueId) -> u64 {
        let Some(line) = self.lines.remove(notifier) else { return 0 };
        let removed = line.numbers.iter().map(|number| self.forget(*number)).sum();
        self.shrink();
        removed
    }

    /// Removes what was sent before `before`, from the oldest on; answers how many nobody has taken.
    pub fn expire(&mut self, before: Timestamp) -> u64 {
        let mut expired = 0;
        while self.all.first_key_value().is_some_and(|(_, waiting)| waiting.notification.timestamp < before) {
            expired += self.drop_oldest();
        }
        expired
    }

    /// What waits for a notifier, if anything does.
    pub fn line(&mut self, notifier: &QueueId) -> Option<&mut Line> {
        self.lines.get_mut(notifier)
    }

    /// Notifiers of a service for which something waits and that stand in no connection's line, in the order of what waits
    /// longest.
    pub fn of_service(&self, service: ServiceId) -> Vec<QueueId> {
        let of_service =
            self.lines.iter().filter(|(_, line)| line.service == Some(service) && line.listed == Listed::Nowhere);
        let mut notifiers: Vec<(Option<&Number>, QueueId)> =
            of_service.map(|(notifier, line)| (line.numbers.front(), *notifier)).collect();
        notifiers.sort_unstable();
        notifiers.into_iter().map(|(_, notifier)| notifier).collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Notifiers for which something waits.
    pub fn notifiers(&self) -> usize {
        self.lines.len()
    }

    /// All that wait, in their order.
    pub fn all(&self) -> impl Iterator<Item = &Notification> {
        self.all.values().map(|waiting| &waiting.notification)
    }

    /// Whether the journal has to be told something.
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.added.is_empty() || !self.unwritten.removed.is_empty()
    }

    /// What the journal is to be told: those that came and still wait, and those that it has and that do not. It has to be
    /// written then.
    pub fn take_unwritten(&mut self) -> (Vec<(Number, Notification)>, Vec<Number>) {
        let Unwritten { added, removed } = std::mem::take(&mut self.unwritten);
        let mut waiting = Vec::with_capacity(added.len());
        for number in added {
            if let Some(one) = self.all.get_mut(&number) {
                one.written = true;
                waiting.push((number, one.notification.clone()));
            }
        }
        (waiting, removed)
    }

    fn shrink(&mut self) {
        if self.lines.capacity() > 64 && self.lines.len() < self.lines.capacity() / 4 {
            self.lines.shrink_to(self.lines.len() * 2);
        }
    }
}
