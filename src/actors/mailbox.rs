//! Bounded mailboxes: the only file that sends to actors.
//!
//! actix's own capacity bounds nothing once addresses are cloned: every sender may push once more when the mailbox is
//! full. So each message travels in a [`Letter`] that carries a permit of its actor's [`Gate`]; the permit is given back
//! when the receiver has dealt with the letter. What is not sent through a [`Sender`] of this file is not bounded, and so
//! clippy forbids it everywhere else (`disallowed-methods`).
//!
//! A full mailbox makes a sender wait ([`Sender::send`], [`Sender::post`]) or refuses it ([`Sender::try_post`]); which one
//! is used for which message stands in `docs/backpressure.md`.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::dev::{MessageResponse, ToEnvelope};
use actix::{Actor, Addr, Handler, Message, Recipient};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;

/// What happened at the mailboxes of one kind of actor. Shared by all actors of the kind.
#[derive(Debug, Default)]
pub struct MailboxMetrics {
    /// Letters that are waiting or being handled now, in all mailboxes of the kind.
    pub depth: AtomicU64,
    /// Letters accepted.
    pub sent: AtomicU64,
    /// Senders that found the mailbox full and waited.
    pub waited: AtomicU64,
    /// Time that they waited, in nanoseconds.
    pub waited_nanoseconds: AtomicU64,
    /// Letters refused because the mailbox was full.
    pub refused: AtomicU64,
    /// Letters that were not delivered because the actor had stopped.
    pub undeliverable: AtomicU64,
}

/// Admits at most `capacity` letters at a time to one actor.
#[derive(Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
    capacity: usize,
    metrics: Arc<MailboxMetrics>,
}

impl Gate {
    /// A gate for one actor. `metrics` are shared with the other actors of its kind.
    pub fn new(capacity: usize, metrics: Arc<MailboxMetrics>) -> Arc<Self> {
        Arc::new(Gate { permits: Arc::new(Semaphore::new(capacity)), capacity, metrics })
    }

    /// Letters that are waiting or being handled.
    pub fn depth(&self) -> usize {
        self.capacity.saturating_sub(self.permits.available_permits())
    }

    /// What happened so far.
    pub fn metrics(&self) -> &MailboxMetrics {
        &self.metrics
    }

    async fn admit(&self) -> Result<Place, SendError> {
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Ok(self.place(permit)),
            Err(TryAcquireError::Closed) => Err(SendError::Stopped),
            Err(TryAcquireError::NoPermits) => self.wait().await.map(|permit| self.place(permit)),
        }
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        self.metrics.depth.fetch_add(1, Ordering::Relaxed);
        self.metrics.sent.fetch_add(1, Ordering::Relaxed);
        Place { _permit: permit, metrics: Arc::clone(&self.metrics) }
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, SendError> {
        self.metrics.waited.fetch_add(1, Ordering::Relaxed);
        let since = Instant::now();
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let nanoseconds = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.metrics.waited_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        permit.map_err(|_| SendError::Stopped)
    }

    fn try_admit(&self) -> Result<Place, SendError> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => SendError::Stopped,
            TryAcquireError::NoPermits => {
                self.metrics.refused.fetch_add(1, Ordering::Relaxed);
                SendError::Full
            }
        })?;
        Ok(self.place(permit))
    }
}

/// Why a message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The mailbox is full (only when not waiting).
    #[error("the mailbox is full")]
    Full,
    /// The actor has stopped, or did so before it answered.
    #[error("the actor has stopped")]
    Stopped,
}

/// A message on its way, with its place in the mailbox.
#[derive(Debug)]
pub struct Letter<M> {
    message: M,
    place: Place,
}

/// A letter's place in the mailbox; free again when dropped.
#[derive(Debug)]
#[must_use = "dropping it admits the next letter: keep it until the message has been dealt with"]
pub struct Place {
    _permit: OwnedSemaphorePermit,
    metrics: Arc<MailboxMetrics>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.metrics.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M> Letter<M> {
    /// The message, and its place in the mailbox to be kept until the message has been dealt with.
    pub fn open(self) -> (M, Place) {
        (self.message, self.place)
    }
}

impl<M: Message> Message for Letter<M> {
    type Result = M::Result;
}

/// A handle that sends messages of one type to one actor, whichever type that actor has.
pub struct Sender<M>
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    recipient: Recipient<Letter<M>>,
    gate: Arc<Gate>,
}

impl<M> Clone for Sender<M>
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn clone(&self) -> Self {
        Sender { recipient: self.recipient.clone(), gate: Arc::clone(&self.gate) }
    }
}

impl<M> std::fmt::Debug for Sender<M>
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("depth", &self.gate.depth()).finish()
    }
}

impl<M> Sender<M>
where
    M: Message + Send + 'static,
    M::Result: Send,
{
    /// A handle to `actor`. All handles of an actor share one `gate`.
    pub fn new<A>(actor: &Addr<A>, gate: Arc<Gate>) -> Self
    where
        A: Actor + Handler<Letter<M>>,
        A::Context: ToEnvelope<A, Letter<M>>,
        <A as Handler<Letter<M>>>::Result: MessageResponse<A, Letter<M>>,
    {
        Sender { recipient: actor.clone().recipient(), gate }
    }

    /// Waits for a place, sends, and waits for the answer.
    pub async fn send(&self, message: M) -> Result<M::Result, SendError> {
        let letter = Letter { message, place: self.gate.admit().await? };
        self.recipient.send(letter).await.map_err(|_| {
            self.gate.metrics.undeliverable.fetch_add(1, Ordering::Relaxed);
            SendError::Stopped
        })
    }

    /// Waits for a place and sends; does not wait for the answer.
    pub async fn post(&self, message: M) -> Result<(), SendError> {
        let letter = Letter { message, place: self.gate.admit().await? };
        self.hand_over(letter)
    }

    /// Sends if there is a place now; does not wait for the answer.
    pub fn try_post(&self, message: M) -> Result<(), SendError> {
        let letter = Letter { message, place: self.gate.try_admit()? };
        self.hand_over(letter)
    }

    /// The gate, for its depth and metrics.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    fn hand_over(&self, letter: Letter<M>) -> Result<(), SendError> {
        if !self.recipient.connected() {
            self.gate.metrics.undeliverable.fetch_add(1, Ordering::Relaxed);
            return Err(SendError::Stopped);
        }
        self.recipient.do_send(letter);
        Ok(())
    }
}

#[cfg(test)]
pub mod probe {
    //! A stand-in for an actor in tests of others: keeps what it is sent, answers by a closure.

    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use actix::{Actor, Context, Handler, Message};

    use super::{Gate, Letter, MailboxMetrics, Sender};

    /// What a probe has received and not yet been asked for.
    pub struct Inbox<M>(Arc<Mutex<VecDeque<M>>>);

    impl<M> Clone for Inbox<M> {
        fn clone(&self) -> Self {
            Inbox(Arc::clone(&self.0))
        }
    }

    impl<M> Inbox<M> {
        /// The oldest message, if any.
        pub fn take(&self) -> Option<M> {
            self.0.lock().unwrap().pop_front()
        }

        /// All messages, oldest first.
        pub fn take_all(&self) -> Vec<M> {
            self.0.lock().unwrap().drain(..).collect()
        }
    }

    type Answer<M> = Box<dyn FnMut(&M) -> <M as Message>::Result>;

    /// The stand-in actor.
    struct Probe<M: Message> {
        inbox: Inbox<M>,
        answer: Answer<M>,
    }

    impl<M: Message + Unpin + 'static> Actor for Probe<M> {
        type Context = Context<Self>;
    }

    impl<M> Handler<Letter<M>> for Probe<M>
    where
        M: Message + Unpin + Send + 'static,
        M::Result: Send,
    {
        type Result = actix::MessageResult<Letter<M>>;

        fn handle(&mut self, letter: Letter<M>, _: &mut Self::Context) -> Self::Result {
            let (message, _place) = letter.open();
            let answer = (self.answer)(&message);
            self.inbox.0.lock().unwrap().push_back(message);
            actix::MessageResult(answer)
        }
    }

    /// Starts a probe of the given capacity on the current arbiter.
    pub fn start<M>(capacity: usize, answer: impl FnMut(&M) -> M::Result + 'static) -> (Sender<M>, Inbox<M>)
    where
        M: Message + Unpin + Send + 'static,
        M::Result: Send,
    {
        let inbox = Inbox(Arc::new(Mutex::new(VecDeque::new())));
        let addr = Probe { inbox: inbox.clone(), answer: Box::new(answer) }.start();
        (Sender::new(&addr, Gate::new(capacity, Arc::new(MailboxMetrics::default()))), inbox)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix::{Context, WrapFuture, fut::ActorFutureExt};
    use tokio::sync::Notify;

    use super::*;

    /// Takes letters, holds each until told to go on.
    struct Stuck {
        go_on: Arc<Notify>,
    }

    #[derive(actix::Message)]
    #[rtype(result = "u32")]
    struct Work(u32);

    impl Actor for Stuck {
        type Context = Context<Self>;
    }

    impl Handler<Letter<Work>> for Stuck {
        type Result = actix::ResponseActFuture<Self, u32>;

        fn handle(&mut self, letter: Letter<Work>, _: &mut Self::Context) -> Self::Result {
            let go_on = Arc::clone(&self.go_on);
            let wait = async move {
                let (work, _place) = letter.open();
                go_on.notified().await;
                work.0
            };
            Box::pin(wait.into_actor(self).map(|answer, _, _| answer))
        }
    }

    fn stuck(capacity: usize) -> (Sender<Work>, Arc<Notify>) {
        let go_on = Arc::new(Notify::new());
        let actor = Stuck { go_on: Arc::clone(&go_on) }.start();
        (Sender::new(&actor, Gate::new(capacity, Arc::new(MailboxMetrics::default()))), go_on)
    }

    #[actix::test]
    async fn a_full_mailbox_refuses_through_each_of_a_hundred_handles() {
        let (sender, _go_on) = stuck(4);
        let handles: Vec<_> = (0..100).map(|_| sender.clone()).collect();
        let accepted = (0..1000).filter(|n| handles[n % 100].try_post(Work(0)).is_ok()).count();
        assert_eq!(accepted, 4);
        assert_eq!(sender.gate().depth(), 4);
        assert_eq!(sender.gate().metrics().depth.load(Ordering::Relaxed), 4);
        assert_eq!(sender.gate().metrics().refused.load(Ordering::Relaxed), 996);
    }

    #[actix::test]
    async fn waiting_senders_are_let_in_one_by_one() {
        let (sender, go_on) = stuck(1);
        let first = actix_rt::spawn({
            let sender = sender.clone();
            async move { sender.send(Work(1)).await }
        });
        let second = actix_rt::spawn({
            let sender = sender.clone();
            async move { sender.send(Work(2)).await }
        });
        while sender.gate().metrics().waited.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(sender.gate().metrics().sent.load(Ordering::Relaxed), 1);
        go_on.notify_one();
        assert_eq!(first.await.unwrap(), Ok(1));
        go_on.notify_one();
        assert_eq!(second.await.unwrap(), Ok(2));
        assert_eq!(sender.gate().depth(), 0);
    }

    #[actix::test]
    async fn time_in_the_handler_is_not_counted_as_waiting() {
        tokio::time::pause();
        let (sender, go_on) = stuck(1);
        let answer = actix_rt::spawn({
            let sender = sender.clone();
            async move { sender.send(Work(1)).await }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        go_on.notify_one();
        assert_eq!(answer.await.unwrap(), Ok(1));
        assert_eq!(sender.gate().metrics().waited_nanoseconds.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_stopped_actor_is_reported_and_counted() {
        let (sender, _go_on) = {
            let go_on = Arc::new(Notify::new());
            let actor = Stuck { go_on: Arc::clone(&go_on) }.start();
            let sender = Sender::<Work>::new(&actor, Gate::new(4, Arc::new(MailboxMetrics::default())));
            (sender, go_on)
        };
        let dead = {
            struct Dead;
            impl Actor for Dead {
                type Context = Context<Self>;
                fn started(&mut self, ctx: &mut Self::Context) {
                    actix::ActorContext::terminate(ctx);
                }
            }
            impl Handler<Letter<Work>> for Dead {
                type Result = u32;
                fn handle(&mut self, _: Letter<Work>, _: &mut Self::Context) -> u32 {
                    0
                }
            }
            let actor = Dead.start();
            let sender = Sender::<Work>::new(&actor, Gate::new(4, Arc::new(MailboxMetrics::default())));
            while actor.connected() {
                tokio::task::yield_now().await;
            }
            sender
        };
        assert_eq!(dead.send(Work(1)).await, Err(SendError::Stopped));
        assert_eq!(dead.try_post(Work(1)), Err(SendError::Stopped));
        assert_eq!(dead.gate().metrics().undeliverable.load(Ordering::Relaxed), 2);
        assert_eq!(sender.try_post(Work(1)), Ok(()));
    }
}
