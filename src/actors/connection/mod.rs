//! The connection actor: one client.
//!
//! Owns the client's session, its subscriptions with what is delivered and not acknowledged, and the outbound queue. It
//! works on one block at a time and does not read while it does, or while its outbound queue is full: TCP holds back the
//! rest. It stops when the peer closes, when the sweep finds it inactive or stalled, or with the server.
//!
//! - [`core`] is its state, [`subscription`] and [`outbound`] the pure parts of it;
//! - `block` executes a block of commands, `fetch` reads what could not be delivered when it was sent;
//! - `pump` moves bytes: it reads, runs the job, and writes, whichever can go on.
//!
//! Invariants kept here: at most one unacknowledged message a subscription, none after its `ACK`, nothing after `END`;
//! answers leave after the commit and in the order of commands of each queue. Its mailbox never waits for anything, so
//! that whoever has something for it never waits long.

mod block;
pub mod core;
mod deliver;
mod delivered;
mod doubts;
pub mod encode;
pub mod event;
pub mod failures;
mod fetch;
mod notifications;
pub mod outbound;
mod pump;
pub mod service;
pub mod services;
pub mod session;
pub mod subscription;
#[cfg(test)]
pub(crate) mod tests;

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, AsyncContext, Context, Handler, Running};
use futures_util::future::LocalBoxFuture;
use tracing::debug;

use self::core::{CloseReason, CoreRef, NotifierSubscriptions};
pub use self::event::{ConnectionEvent, Delivery};
use self::pump::Pump;
use self::service::ServiceSubscription;
pub use self::services::{CommandSettings, Counters, JobContext, Mailboxes, Services};
pub use self::session::Session;
use super::mailbox::{Gate, Letter, Sender};
use super::notifications::ConnectionClosed;
use super::registry::{ConnectionHandle, ConnectionId, ConnectionRef};
use crate::protocol::handshake::ServiceRole;
use crate::transport::block_io::BlockIo;

/// Letters that a connection's mailbox holds. It is emptied whenever the connection is polled, so this bounds what may
/// arrive in between; others wait.
pub const MAILBOX: usize = 16;

/// What the connection holds until it has ended and its subscriptions are given up: dropping it tells its owner. Dropped
/// also when the connection panics.
pub type Held = Box<dyn std::any::Any>;

/// One client's connection.
pub struct Connection<I: BlockIo> {
    io: I,
    core: CoreRef,
    services: Arc<Services>,
    session: Rc<Session>,
    me: ConnectionRef,
    job: Option<LocalBoxFuture<'static, ()>>,
    fetching: Option<LocalBoxFuture<'static, ()>>,
    taking: Option<LocalBoxFuture<'static, ()>>,
    pause: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
    reason: CloseReason,
    /// Whether all that was to be written has been, at its end.
    all_sent: bool,
    held: Option<Held>,
}

impl<I: BlockIo + Unpin> Connection<I> {
    /// Starts the connection on the current arbiter.
    pub fn start(
        id: ConnectionId,
        io: I,
        session: Session,
        core: CoreRef,
        services: Arc<Services>,
        held: Held,
    ) -> ConnectionRef {
        let context = Context::new();
        let address = actix::AsyncContext::address(&context);
        let gate = Gate::new(MAILBOX, Arc::clone(&services.mailboxes.connections));
        let events = Sender::new(&address, gate);
        let me = Arc::new(ConnectionHandle { id, events });
        core.borrow_mut().service =
            session.service.as_ref().map(|service| Box::new(ServiceSubscription::new(service.id, service.role)));
        context.run(Connection {
            io,
            core,
            services,
            session: Rc::new(session),
            me: Arc::clone(&me),
            job: None,
            fetching: None,
            taking: None,
            pause: None,
            reason: CloseReason::Peer,
            all_sent: false,
            held: Some(held),
        });
        me
    }

    fn job_context(&self) -> JobContext {
        JobContext {
            services: Arc::clone(&self.services),
            session: Rc::clone(&self.session),
            core: Rc::clone(&self.core),
            me: Arc::clone(&self.me),
        }
    }
}

impl<I: BlockIo + Unpin> Actor for Connection<I> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.spawn(Pump);
    }

    /// The connection is its own: that nobody else holds its address does not end it.
    fn stopping(&mut self, _: &mut Self::Context) -> Running {
        Running::Stop
    }

    /// Finishes the block that is being executed, so that a message that was stored is also delivered, and gives up the
    /// subscriptions; only then is the connection over for those who count connections.
    fn stopped(&mut self, _: &mut Self::Context) {
        self.io.close();
        debug!(reason = ?self.reason, "connection closed");
        let (core, job, taking) = (Rc::clone(&self.core), self.job.take(), self.taking.take());
        // What is just being taken is not sent.
        let sent = self.all_sent && taking.is_none();
        let (registry, notifications) = (self.services.registry.clone(), self.services.notifications.clone());
        let (id, held) = (self.me.id, self.held.take());
        core.borrow_mut().close(CloseReason::Peer);
        actix_rt::spawn(async move {
            if let Some(job) = job {
                job.await;
            }
            if let Some(taking) = taking {
                taking.await;
            }
            let queues = core.borrow_mut().subscriptions.drain();
            let (service, notifiers) = {
                let mut core = core.borrow_mut();
                (core.service.take(), core.take_notifiers())
            };
            match service {
                Some(service) if service.role == ServiceRole::Messaging => {
                    let _ = registry.unsubscribe_service(id, service.id).await;
                }
                service if service.is_some() || notifiers.is_some() => {
                    let notifiers = notifiers.map_or(Some(Vec::new()), NotifierSubscriptions::known);
                    let service = service.map(|service| service.id);
                    let _ = notifications.closed(ConnectionClosed { connection: id, notifiers, service, sent }).await;
                }
                _ => {}
            }
            // Fails only when the registry has stopped, which is when nobody is subscribed to anything.
            let _ = registry.unsubscribe(id, &queues).await;
            drop(held);
        });
    }
}

impl<I: BlockIo + Unpin> Handler<Letter<ConnectionEvent>> for Connection<I> {
    type Result = ();

    fn handle(&mut self, letter: Letter<ConnectionEvent>, _: &mut Self::Context) {
        let (event, _place) = letter.open();
        self.core.borrow_mut().on_event(event);
    }
}
