//! The state of a connection, shared by its actor and the job that executes its block. Pure but for wakers: no I/O.
//!
//! Borrowed for moments only, never across an await.

mod service;

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

pub use self::service::NotifierSubscriptions;
use super::doubts::Doubts;
use super::encode::Encoder;
use super::event::{ConnectionEvent, Delivery};
use super::outbound::{Notice, Notices, Outbound};
use super::service::ServiceSubscription;
use super::subscription::{Confirmed, Offer, Prohibited, Source, Subscriptions};
use crate::actors::registry::Epoch;
use crate::protocol::response::Response;
use crate::protocol::{CorrelationId, EntityId, MessageId, QueueId};

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The connection broke.
    Peer,
    /// The peer has sent all that it will: what it asked for is answered first.
    Left,
    /// It has no subscription and was silent for too long.
    Inactive,
    /// It took no byte for too long while something waited, or left a block unfinished for as long.
    Stalled,
    /// The server stops: what is being answered is finished first.
    Shutdown,
}

impl CloseReason {
    /// Whether what is being answered is finished before the connection closes.
    pub fn is_graceful(self) -> bool {
        matches!(self, CloseReason::Left | CloseReason::Shutdown)
    }
}

/// When an idle or stalled connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Silence after which a connection without subscriptions is closed; `None`: never.
    pub inactive: Option<Duration>,
    /// Time without progress after which a connection with something to write, or with part of a block, is closed.
    pub stalled: Duration,
    /// How often inactive connections are looked for, at the least.
    pub check_interval: Option<Duration>,
}

/// A response ready to be encoded.
pub type Answer = (CorrelationId, EntityId, Response);

/// See the module.
#[derive(Debug)]
pub struct Core {
    /// Subscriptions and deliveries.
    pub subscriptions: Subscriptions,
    /// What waits to be written.
    pub outbound: Outbound,
    /// `END`s and `DELD`s that wait.
    pub notices: Notices,
    /// The subscription to all queues of the client's service. Rare, and so apart.
    pub service: Option<Box<ServiceSubscription>>,
    /// What others said of subscriptions that may be out of date. Rare, and so apart.
    doubts: Option<Box<Doubts>>,
    /// Subscriptions to notifiers. Rare, and so apart.
    notifiers: Option<Box<NotifierSubscriptions>>,
    notifications_wait: bool,
    encoder: Encoder,
    /// Set when the connection is to close.
    close: Option<CloseReason>,
    last_active: Instant,
    waiting_since: Option<Instant>,
    partial_since: Option<Instant>,
    put_off: u64,
    waker: Option<Waker>,
}

/// A shared [`Core`], for one thread.
pub type CoreRef = Rc<RefCell<Core>>;

impl Core {
    /// The state of a connection that was just made.
    pub fn new(encoder: Encoder, client_blocks: usize) -> CoreRef {
        Rc::new(RefCell::new(Core {
            subscriptions: Subscriptions::default(),
            outbound: Outbound::new(client_blocks),
            notices: Notices::default(),
            service: None,
            doubts: None,
            notifiers: None,
            notifications_wait: false,
            encoder,
            close: None,
            last_active: Instant::now(),
            waiting_since: None,
            partial_since: None,
            put_off: 0,
            waker: None,
        }))
    }

    /// Something happened to one of this connection's subscriptions.
    pub fn on_event(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Deliver(delivery) => self.deliver(delivery, Source::Pushed),
            ConnectionEvent::Doubt { queue } => self.on_doubt(queue),
            ConnectionEvent::Ended { queue, epoch } => self.on_ended(queue, epoch),
            ConnectionEvent::Deleted { queue } => self.on_deleted(queue),
            ConnectionEvent::Released { queue } => self.on_released(queue),
            ConnectionEvent::NotificationsWait => self.on_notifications(),
            ConnectionEvent::NotifierEnded { notifier } => self.on_notifier_doubt(notifier, Notice::Ended),
            ConnectionEvent::NotifierDeleted { notifier } => self.on_notifier_doubt(notifier, Notice::Deleted),
            ConnectionEvent::ServiceEnded { epoch } => self.on_service_ended(epoch),
        }
    }

    /// Sends a message to the client if its subscription takes it now.
    pub fn deliver(&mut self, delivery: Delivery, source: Source) {
        let room = self.outbound.room() > 0;
        if let Some(answer) = self.accept(delivery, source, room) {
            self.push_answers(&[answer]);
        }
    }

    /// Notes a message as delivered if its subscription takes it now: the caller is to send it. `room`: whether he can.
    pub fn accept(&mut self, delivery: Delivery, source: Source, room: bool) -> Option<Answer> {
        let Delivery { queue, message, body } = delivery;
        let offer = self.subscriptions.offer(queue, message, source, room);
        if offer == Offer::Later && !room {
            self.put_off += 1;
        }
        (offer == Offer::Deliver).then(|| (CorrelationId::NONE, queue.into(), message_sent(message.id, body)))
    }

    /// Deliveries put off since the last call because the outbound queue was full.
    pub fn take_put_off(&mut self) -> u64 {
        std::mem::take(&mut self.put_off)
    }

    fn on_doubt(&mut self, queue: QueueId) {
        self.subscriptions.suspect(queue);
        self.wake();
    }

    fn on_ended(&mut self, queue: QueueId, epoch: Epoch) {
        if self.subscriptions.ended(queue, epoch) {
            self.notices.note(queue, Notice::Ended);
        }
    }

    /// The queue is gone: its subscription too, of which the client is told.
    pub fn on_deleted(&mut self, queue: QueueId) {
        let of_service = self.leave(queue);
        if self.subscriptions.forget(queue) || of_service {
            self.notices.note(queue, Notice::Deleted);
            self.wake();
        }
    }

    /// `SUB` begins: a notice that the queue's earlier subscription ended is void.
    pub fn begin_subscription(&mut self, queue: QueueId) -> Result<(), Prohibited> {
        self.subscriptions.begin(queue)?;
        self.notices.cancel(&queue);
        Ok(())
    }

    /// The registry has the subscription; `END` follows when it was taken over already.
    ///
    /// `joins`: the queue has just become one of the client's service.
    pub fn confirm_subscription(&mut self, queue: QueueId, epoch: Epoch, joins: bool) -> Confirmed {
        if self.service.is_some() {
            return self.confirm_for_service(queue, epoch, joins);
        }
        let confirmed = self.subscriptions.confirm(queue, epoch);
        if confirmed == Confirmed::Ended {
            self.notices.note(queue, Notice::Ended);
        }
        confirmed
    }

    /// Appends answers, in as few blocks as they fit.
    ///
    /// A connection that has ended takes none: nobody will read them.
    pub fn push_answers(&mut self, answers: &[Answer]) {
        if self.has_ended() {
            return;
        }
        for payload in self.encoder.payloads(answers) {
            self.outbound.push(payload);
        }
        self.wake();
    }

    /// Whether there are notices to be sent.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty() || self.service.as_ref().is_some_and(|service| service.has_ended())
    }

    /// Moves notices to the outbound queue while there is room.
    pub fn flush_notices(&mut self) -> bool {
        let mut moved = self.flush_service_notice();
        while self.outbound.room() > 0 && !self.notices.is_empty() {
            let answers: Vec<Answer> = self
                .notices
                .take(Encoder::MAX_NOTICES)
                .into_iter()
                .map(|(queue, notice)| (CorrelationId::NONE, queue.into(), notice.into()))
                .collect();
            self.push_answers(&answers);
            moved = true;
        }
        moved
    }

    /// Resolves once the outbound queue has room. For the job that executes a block. Whether it had to wait.
    pub async fn room(core: &CoreRef) -> bool {
        let mut waited = false;
        std::future::poll_fn(|cx| {
            let polled = core.borrow_mut().poll_room(cx);
            waited |= polled.is_pending();
            polled
        })
        .await;
        waited
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.outbound.room() > 0 || self.has_ended() {
            return Poll::Ready(());
        }
        self.register(cx);
        Poll::Pending
    }

    /// The peer sent something, or took it.
    pub fn note_activity(&mut self) {
        self.last_active = Instant::now();
        self.waiting_since = None;
        self.partial_since = None;
    }

    /// Nothing can be read now: whether part of a block was, and is held.
    pub fn note_partial(&mut self, partial: bool) {
        match partial {
            true => drop(self.partial_since.get_or_insert_with(Instant::now)),
            false => self.partial_since = None,
        }
    }

    /// Something waits to be written and the socket takes nothing.
    pub fn note_waiting(&mut self) {
        self.waiting_since.get_or_insert_with(Instant::now);
    }

    /// Closes the connection if it has tried the server's patience.
    pub fn sweep(&mut self, patience: &Patience) {
        let too_long = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() >= patience.stalled);
        let stalled = too_long(self.waiting_since) || too_long(self.partial_since);
        let silent = patience.inactive.is_some_and(|limit| self.last_active.elapsed() >= limit);
        if stalled {
            self.close(CloseReason::Stalled);
        } else if silent && !self.is_subscribed() {
            self.close(CloseReason::Inactive);
        }
    }

    /// Asks the connection to close. A graceful end can still become an immediate one.
    pub fn close(&mut self, reason: CloseReason) {
        if self.close.is_none_or(CloseReason::is_graceful) {
            self.close = Some(reason);
        }
        self.wake();
    }

    /// What was written is with the kernel.
    pub fn note_written(&mut self) {
        self.waiting_since = None;
    }

    /// Whether a write waits for the peer.
    pub fn is_waiting(&self) -> bool {
        self.waiting_since.is_some()
    }

    fn has_ended(&self) -> bool {
        self.close.is_some_and(|reason| !reason.is_graceful())
    }

    /// Whether and why the connection is to close.
    pub fn closing(&self) -> Option<CloseReason> {
        self.close
    }

    /// Remembers whom to wake when the state changes.
    pub fn register(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// `MSG`.
pub fn message_sent(id: MessageId, body: Bytes) -> Response {
    Response::Msg { id: Bytes::copy_from_slice(&id.0), body }
}

impl From<Notice> for Response {
    fn from(notice: Notice) -> Self {
        match notice {
            Notice::Ended => Response::End,
            Notice::Deleted => Response::Deld,
        }
    }
}
