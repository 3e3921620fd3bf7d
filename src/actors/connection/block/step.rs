//! Steps: verified commands on their way to an answer, and segments of them.

use std::collections::HashSet;

use bytes::Bytes;

use super::load::party;
use crate::actors::connection::subscription::{Acknowledging, Delivered};
use crate::actors::registry::{Epoch, Mark};
use crate::protocol::command::{Command, MessageFlags, ServiceQueues};
use crate::protocol::keys::PublicDhKey;
use crate::protocol::response::{QueueIds, Response};
use crate::protocol::transmission::ClientTransmission;
use crate::protocol::{CorrelationId, EntityId, MessageId, QueueId, ServiceId};
use crate::store::files::notification::Notification;
use crate::store::{Audience, DhSecret, FirstMessage, NewQueue, Op, Peeked, QueueRecord, StoreError, Timestamp};

/// Where a command stands. Each phase of a segment moves its steps on; all end as [`Step::Answered`].
#[derive(Debug)]
pub enum Step {
    /// Nothing more to do than to answer.
    Answered(Response),
    /// The store is to change something.
    Change {
        /// What. Taken when it is handed to the store.
        op: Option<Op>,
        /// What the outcome means.
        then: Then,
    },
    /// The registry is to be told of a subscription, then answered.
    Subscribe {
        /// The queue.
        queue: QueueId,
        /// The answer on success.
        answer: Response,
        /// Whether the queue is to be looked at.
        look: Look,
        /// Whether the queue has just become one of this client's service.
        joins: bool,
    },
    /// The actor of notifications is to be told of a subscription, then answered.
    SubscribeNotifier {
        /// The notifier's ID of the queue.
        notifier: QueueId,
        /// The answer on success.
        answer: Response,
        /// Whether its association with a service was just changed.
        associated: bool,
        /// The service before.
        was: Option<ServiceId>,
    },
    /// `SUBS`, `NSUBS`: the client's service is to be subscribed.
    SubscribeService {
        /// What the client believes that the service has.
        expected: ServiceQueues,
    },
    /// `GET`.
    Get {
        /// The queue.
        queue: QueueId,
    },
    /// The data of a link is to be read.
    Link {
        /// The link.
        link_id: QueueId,
        /// The queue for its sender.
        sender_id: QueueId,
    },
    /// `QUE`.
    Info(Box<QueueRecord>),
}

/// Whether a queue is to be looked at once it is subscribed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// It is: it may hold messages.
    Needed,
    /// It was empty when its mark stood here; it is if the mark has moved.
    IfMoved(Mark),
    /// It is not: it was just created, and nobody else knows it.
    Never,
}

/// What is to follow a change.
#[derive(Debug)]
pub enum Then {
    /// `OK`.
    Ok,
    /// `IDS`.
    Created(Box<Creation>),
    /// `LNK`, read after the change.
    Link {
        /// The link.
        link_id: QueueId,
        /// The queue for its sender.
        sender_id: QueueId,
    },
    /// `OK`, and delivery when the queue was empty.
    Sent(Box<Sending>),
    /// `MSG` or `OK`.
    Acknowledged {
        /// The queue.
        queue: QueueId,
        /// What was acknowledged.
        acknowledging: Acknowledging,
        /// Encrypts the next message.
        dh_secret: DhSecret,
    },
    /// The queue's recipient was associated with this client's service, or released from one; it is subscribed next.
    Associated {
        /// The queue.
        queue: QueueId,
        /// The answer when it is subscribed.
        answer: Response,
    },
    /// The queue's notifier was associated with this client's service, or released from one; it is subscribed next.
    NotifierAssociated {
        /// The notifier's ID of the queue.
        notifier: QueueId,
        /// The answer when it is subscribed.
        answer: Response,
    },
    /// `NID`.
    Notifier {
        /// The notifier's ID of the queue.
        id: QueueId,
        /// The server's half of the notification secret.
        dh_key: PublicDhKey,
    },
    /// `OK`, and `DELD` to the subscriber.
    Deleted {
        /// The queue.
        queue: QueueId,
        /// The service that it was associated with when it was loaded.
        service: Option<ServiceId>,
    },
}

/// A queue being created.
#[derive(Debug)]
pub struct Creation {
    /// What is stored; kept to draw other IDs should they be taken.
    pub queue: NewQueue,
    /// The answer.
    pub ids: QueueIds,
    /// Whether creating also subscribes.
    pub subscribe: bool,
    /// The client chose IDs: if they are taken the answer is `AUTH`.
    pub ids_by_client: bool,
    /// Where its mark stood before.
    pub mark: Mark,
}

/// A message being sent.
#[derive(Debug)]
pub struct Sending {
    /// The queue.
    pub queue: QueueId,
    /// The message.
    pub id: MessageId,
    /// When.
    pub timestamp: Timestamp,
    /// Flags.
    pub flags: MessageFlags,
    /// Body as sent.
    pub body: Bytes,
    /// Encrypts it to the recipient.
    pub dh_secret: DhSecret,
    /// The service that the recipient was associated with when the queue was loaded.
    pub service: Option<ServiceId>,
}

/// A stored message that its queue's subscriber is to get.
#[derive(Debug)]
pub struct PendingDelivery {
    /// The message.
    pub sending: Box<Sending>,
    /// Its number within the queue.
    pub sequence: u64,
    /// The service that the recipient was associated with when it was stored.
    pub service: Option<ServiceId>,
}

/// A subscription that comes into force with its answer.
#[derive(Debug)]
pub struct Activation {
    /// The queue.
    pub queue: QueueId,
    /// Which of this connection's subscriptions.
    pub epoch: Epoch,
    /// What the store had for it.
    pub first: First,
    /// Whether the queue has just become one of this client's service.
    pub joins: bool,
}

/// The subscription of the client's service that comes into force with its answer.
#[derive(Debug)]
pub struct ServiceActivation {
    /// Which of this connection's subscriptions.
    pub epoch: Epoch,
    /// What the service has.
    pub queues: ServiceQueues,
}

/// What the store had for a new subscription.
#[derive(Debug)]
pub enum First {
    /// Nothing.
    Nothing,
    /// Nothing, and there never was: the queue was just created.
    New,
    /// A message.
    Message(Box<FirstMessage>),
    /// A message for which there is no room now.
    Waiting,
    /// It is not for this connection: who subscribed later has associated it with another service, or with none.
    Lost,
    /// No such queue any more.
    Absent,
    /// A message that cannot be read.
    Unreadable(StoreError),
}

impl From<Peeked> for First {
    fn from(peeked: Peeked) -> Self {
        match peeked {
            Peeked::Absent => First::Absent,
            Peeked::Empty => First::Nothing,
            Peeked::Waiting => First::Waiting,
            Peeked::Message(first) => First::Message(first),
            Peeked::Unreadable(failure) => First::Unreadable(failure),
        }
    }
}

/// A command of a segment.
#[derive(Debug)]
pub struct Planned {
    /// To be repeated in the answer.
    pub correlation_id: CorrelationId,
    /// To be repeated in the answer.
    pub entity_id: EntityId,
    /// Where it stands.
    pub step: Step,
    /// The subscription that its answer puts in force.
    pub activation: Option<Activation>,
    /// The same of the client's service.
    pub service_activation: Option<ServiceActivation>,
}

/// Commands that are executed together.
#[derive(Debug, Default)]
pub struct Segment {
    /// In the order of the block.
    pub steps: Vec<Planned>,
    /// Messages to be delivered.
    pub deliveries: Vec<PendingDelivery>,
    /// Queues (by recipient ID) of which the store, which failed, cannot tell whether it has a message, or them.
    pub doubtful: Vec<(QueueId, Option<ServiceId>)>,
    /// Queues that were deleted, and who is to be told.
    pub deleted: Vec<(QueueId, Audience)>,
    /// Notifications to be handed in, with their notifiers' services.
    pub notifications: Vec<(Notification, Option<ServiceId>)>,
    /// Notifiers that were replaced or removed, with their services.
    pub removed_notifiers: Vec<(QueueId, Option<ServiceId>)>,
    /// Queues whose association was changed, and the service before.
    pub associated: Vec<(QueueId, Option<ServiceId>)>,
    /// Queues (by recipient ID) to be noted as used today.
    pub touched: Vec<QueueId>,
    changed: HashSet<QueueId>,
    read: HashSet<QueueId>,
    used: HashSet<QueueId>,
    shown: HashSet<QueueId>,
    creates: bool,
    large_answers: usize,
}

impl Segment {
    /// Answers of up to 16 KiB each that a segment may produce.
    pub const MAX_LARGE_ANSWERS: usize = 8;

    /// Whether the command can be executed together with those of the segment.
    pub fn admits(&self, transmission: &ClientTransmission, record: Option<&QueueRecord>) -> bool {
        let effect = Effect::of(&transmission.command);
        if effect.large_answer && self.large_answers >= Self::MAX_LARGE_ANSWERS {
            return false;
        }
        let Some(record) = record else {
            // Absent, unless the segment makes it.
            return !self.creates || party(&transmission.command).is_none();
        };
        let queue = &record.recipient_id;
        let out_of_date = self.changed.contains(queue);
        let overtakes_a_read = effect.writes && self.read.contains(queue);
        let overtakes_a_use = (effect.uses || effect.shows_use) && self.used.contains(queue);
        let overtakes_a_show = effect.uses && self.shown.contains(queue);
        !(out_of_date || overtakes_a_read || overtakes_a_use || overtakes_a_show)
    }

    /// Whether the answer to another `ACK` may carry the next message.
    pub fn may_answer_with_message(&mut self, room: usize) -> bool {
        let may = self.large_answers < Self::MAX_LARGE_ANSWERS.min(room);
        self.large_answers += usize::from(may);
        may
    }

    /// Whether IDs that named nothing may name something after the segment.
    pub fn creates(&self) -> bool {
        self.creates
    }

    /// Notes what a command, about to be planned, does to its queue.
    pub fn note(&mut self, command: &Command, record: Option<&QueueRecord>) {
        let effect = Effect::of(command);
        self.large_answers += usize::from(effect.large_answer);
        self.creates |= effect.creates;
        let Some(record) = record else { return };
        if effect.changes_record {
            self.changed.insert(record.recipient_id);
        }
        if effect.reads {
            self.read.insert(record.recipient_id);
        }
        if effect.uses {
            self.used.insert(record.recipient_id);
        }
        if effect.shows_use {
            self.shown.insert(record.recipient_id);
        }
    }

    /// Appends a step.
    pub fn push(&mut self, correlation_id: CorrelationId, entity_id: EntityId, step: Step) {
        if let Step::Change {
            op: Some(Op::AssociateRecipient { queue, .. } | Op::AssociateNotifier { queue, .. }),
            ..
        } = &step
        {
            self.changed.insert(*queue);
        }
        self.steps.push(Planned { correlation_id, entity_id, step, activation: None, service_activation: None });
    }

    /// Queues whose record is out of date after the segment.
    pub fn changed_queues(&self) -> &HashSet<QueueId> {
        &self.changed
    }
}

/// What a command does to its queue, as far as other commands of the block must know.
#[derive(Clone, Copy, Default)]
struct Effect {
    /// The queue's record is another afterwards.
    changes_record: bool,
    /// It adds or removes something.
    writes: bool,
    /// It sees what was written before it.
    reads: bool,
    /// It begins to use it on this connection.
    uses: bool,
    /// It tells how it is used on this connection.
    shows_use: bool,
    /// It makes IDs that named nothing.
    creates: bool,
    /// Its answer has up to 16 KiB. (That of `ACK` only where [`Segment::may_answer_with_message`].)
    large_answer: bool,
}

impl Effect {
    fn of(command: &Command) -> Effect {
        use Command as C;
        let none = Effect::default();
        let change = Effect { changes_record: true, writes: true, ..none };
        match command {
            C::Key(_) | C::Rkey(_) | C::Ldel | C::Ndel | C::Off | C::Del | C::Skey(_) => change,
            C::Lset(..) | C::Nkey(..) => Effect { creates: true, ..change },
            C::New(_) => Effect { creates: true, ..none },
            C::Lkey(_) => Effect { reads: true, large_answer: true, ..change },
            C::Send(..) => Effect { writes: true, ..none },
            C::Ack(_) => Effect { writes: true, reads: true, ..none },
            C::Get => Effect { reads: true, uses: true, large_answer: true, ..none },
            C::Lget => Effect { reads: true, large_answer: true, ..none },
            C::Sub => Effect { reads: true, uses: true, ..none },
            C::Que => Effect { reads: true, shows_use: true, ..none },
            C::Nsub => Effect { reads: true, ..none },
            C::Subs(_) | C::Nsubs(_) | C::Ping | C::Prxy(..) | C::Pfwd(..) | C::Rfwd(_) | C::Rslv(_) => none,
        }
    }
}

/// A message as noted in a subscription.
pub fn delivered(message: &crate::store::Message) -> Delivered {
    Delivered { id: message.id, sequence: message.sequence }
}
