//! What a connection of a service, or of a notifier, keeps beside its subscriptions to single queues.

use super::super::doubts::Doubts;
use super::super::outbound::Notice;
use super::super::service::Pages;
use super::super::subscription::Confirmed;
use super::Core;
use crate::actors::registry::Epoch;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{CorrelationId, EntityId, QueueId};

/// Notifiers that a connection remembers by their IDs, so that they need not be looked for when it ends: 6 KiB.
const FEW: usize = 256;

/// A connection's subscriptions to notifiers. What others have taken over is subtracted when it is told.
#[derive(Debug, Default)]
pub struct NotifierSubscriptions {
    count: usize,
    /// Their IDs, while they are few; also of some that have gone.
    few: Vec<QueueId>,
    many: bool,
}

impl NotifierSubscriptions {
    fn add(&mut self, notifier: QueueId) {
        self.count += 1;
        self.many |= self.few.len() == FEW;
        match self.many {
            true => self.few = Vec::new(),
            false => self.few.push(notifier),
        }
    }

    /// The notifiers, if they are remembered.
    pub fn known(self) -> Option<Vec<QueueId>> {
        (!self.many).then_some(self.few)
    }
}

impl Core {
    /// A queue left the service, if this is its connection. Whether it is, and did not know.
    pub(super) fn leave(&mut self, queue: QueueId) -> bool {
        let in_force = self.service.as_mut().filter(|service| service.in_force());
        in_force.is_some_and(|service| service.leave(&queue))
    }

    /// This client has deleted the queue, which was one of its service or not: there is nothing to tell.
    pub fn on_own_deletion(&mut self, queue: QueueId, of_service: bool) {
        if of_service {
            self.leave(queue);
        }
        self.subscriptions.forget(queue);
    }

    pub(super) fn on_released(&mut self, queue: QueueId) {
        if self.service.as_ref().is_some_and(|service| service.in_force()) {
            self.doubts.get_or_insert_default().queues.insert(queue);
            self.wake();
        }
    }

    /// Whether something has to be asked.
    pub fn has_doubts(&self) -> bool {
        self.doubts.is_some()
    }

    /// What has to be asked.
    pub fn take_doubts(&mut self) -> Doubts {
        self.doubts.take().map(|doubts| *doubts).unwrap_or_default()
    }

    /// It could not be asked.
    pub fn restore_doubts(&mut self, doubts: Doubts) {
        let all = self.doubts.get_or_insert_default();
        all.queues.extend(doubts.queues);
        all.notifiers.extend(doubts.notifiers);
    }

    /// The queue is not the service's any more: its client is told.
    pub fn on_left(&mut self, queue: QueueId) {
        if self.leave(queue) {
            self.subscriptions.forget(queue);
            self.notices.note(queue, Notice::Ended);
        }
    }

    pub(super) fn on_service_ended(&mut self, epoch: Epoch) {
        if self.service.as_mut().is_some_and(|service| service.on_ended(epoch)) {
            self.end_service();
        }
    }

    /// The service has another connection: nothing of its queues is sent any more, but `ENDS`.
    fn end_service(&mut self) {
        self.subscriptions.serve_no_more();
        self.wake();
    }

    /// A command that subscribes the service begins. That an earlier subscription has ended is told first: what is sent
    /// after the answer is sent for the new one.
    pub fn begin_service(&mut self) {
        self.tell_service_ended();
        if let Some(service) = &mut self.service {
            service.begin();
        }
    }

    /// The registry has this connection as that of its service. `Ended` when another one has taken over already.
    pub fn confirm_service(&mut self, epoch: Epoch) -> Confirmed {
        let Some(service) = &mut self.service else { return Confirmed::Ended };
        let confirmed = service.confirm(epoch);
        if confirmed == Confirmed::InForce && service.has_ended() {
            self.subscriptions.serve_no_more();
            self.tell_service_ended();
        }
        let Some(service) = &self.service else { return Confirmed::Ended };
        match (confirmed, service.role) {
            (Confirmed::Ended, _) => self.end_service(),
            (Confirmed::InForce, ServiceRole::Messaging) => self.subscriptions.serve(),
            (Confirmed::InForce, _) => {}
        }
        confirmed
    }

    /// What was to subscribe the service failed.
    pub fn abandon_service(&mut self) {
        if self.service.as_mut().is_some_and(|service| service.abandon()) {
            self.end_service();
        }
    }

    /// A service's connection is told of the end of all of its queues at once.
    pub(super) fn confirm_for_service(&mut self, queue: QueueId, epoch: Epoch, joins: bool) -> Confirmed {
        if self.confirm_service(epoch) == Confirmed::Ended {
            self.subscriptions.abandon(queue);
            return Confirmed::Ended;
        }
        self.subscriptions.confirm_for_service(queue);
        if let Some(service) = &mut self.service
            // That of a queue which the service had before is not known to be among those that were counted.
            && (joins || service.queues().count == 0)
        {
            service.join(&queue);
        }
        Confirmed::InForce
    }

    /// `SUB` is answered with success, and others were later: `END` follows.
    pub fn on_lost(&mut self, queue: QueueId) {
        self.subscriptions.abandon(queue);
        self.notices.note(queue, Notice::Ended);
    }

    /// Whether the store is to be asked for messages now.
    pub fn can_fetch(&self) -> bool {
        let pages = self.service.as_ref().map_or(Pages::Done, |service| service.pages);
        let may_turn = match pages {
            Pages::Done => false,
            Pages::Next(_) => true,
            Pages::Last => self.subscriptions.are_pages_done(),
        };
        self.subscriptions.can_fetch() || may_turn
    }

    /// `ENDS`, if the service's subscription has ended.
    pub(super) fn flush_service_notice(&mut self) -> bool {
        self.outbound.room() > 0 && self.tell_service_ended()
    }

    fn tell_service_ended(&mut self) -> bool {
        let Some(service) = &mut self.service else { return false };
        let Some(queues) = service.take_ended() else { return false };
        let answer = (CorrelationId::NONE, EntityId(service.id.into()), Response::Ends(queues));
        self.push_answers(&[answer]);
        true
    }

    /// Whether anything is subscribed.
    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriptions.in_force() > 0
            || self.service.as_ref().is_some_and(|service| service.in_force())
            || self.notifiers.as_ref().is_some_and(|notifiers| notifiers.count > 0)
    }

    /// A notifier is subscribed. What was said of an earlier subscription to it is void.
    pub fn on_notifier_subscribed(&mut self, notifier: QueueId, new: bool) {
        self.notices.cancel(&notifier);
        if new {
            self.notifiers.get_or_insert_default().add(notifier);
        }
    }

    /// A notifier is subscribed for the client's service. `joins`: it has just become one of the service.
    pub fn on_notifier_associated(&mut self, notifier: QueueId, epoch: Epoch, joins: bool) {
        self.notices.cancel(&notifier);
        if self.confirm_service(epoch) == Confirmed::InForce
            && let Some(service) = &mut self.service
            && (joins || service.queues().count == 0)
        {
            service.join(&notifier);
        }
    }

    /// Perhaps a notifier is subscribed by somebody else now, or gone. Of both, it is gone.
    pub fn on_notifier_doubt(&mut self, notifier: QueueId, notice: Notice) {
        let noted = self.doubts.get_or_insert_default().notifiers.entry(notifier).or_insert(notice);
        if notice == Notice::Deleted {
            *noted = notice;
        }
        self.wake();
    }

    /// A notifier is subscribed by somebody else, which the client is told; or it is gone.
    pub fn on_notifier_ended(&mut self, notifier: QueueId, notice: Notice) {
        let was_its = match &mut self.notifiers {
            Some(notifiers) => {
                notifiers.count = notifiers.count.saturating_sub(1);
                true
            }
            None => self.leave(notifier),
        };
        if was_its {
            self.notices.note(notifier, notice);
            self.wake();
        }
    }

    /// The client itself has removed a notifier that it had subscribed to.
    pub fn on_own_notifier_removed(&mut self, notifier: QueueId) {
        if let Some(notifiers) = &mut self.notifiers {
            notifiers.count = notifiers.count.saturating_sub(1);
        }
        self.leave(notifier);
    }

    /// Notifications wait for this connection.
    pub fn on_notifications(&mut self) {
        self.notifications_wait = true;
        self.wake();
    }

    /// Whether there are notifications to be taken.
    pub fn has_notifications(&self) -> bool {
        self.notifications_wait
    }

    /// They are being taken: what is told from now on is about others.
    pub fn take_notifications(&mut self) {
        self.notifications_wait = false;
    }

    /// The subscriptions to notifiers of a connection that ends; `None` if there never was one.
    pub fn take_notifiers(&mut self) -> Option<NotifierSubscriptions> {
        self.notifiers.take().map(|notifiers| *notifiers)
    }
}
