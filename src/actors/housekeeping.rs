//! Housekeeping: deletes messages that are too old, by interval.
//!
//! Owns nothing but its schedule. One job at a time: an interval that finds the job before it unfinished does nothing.
//! Works in steps of [`STEP`] messages, so that the store's other work goes in between. Stops with the system.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};
use tracing::{debug, info, warn};

use super::connection::{Counters, Services};
use crate::store::{Store, StoreError, Timestamp};

/// Messages deleted in one transaction.
pub const STEP: u32 = 1000;

/// The actor.
pub struct Housekeeping {
    services: Arc<Services>,
    interval: Duration,
    working: bool,
}

impl Housekeeping {
    /// Not started yet. `interval`: from the beginning of one job to that of the next.
    pub fn new(services: Arc<Services>, interval: Duration) -> Self {
        Housekeeping { services, interval, working: false }
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.working, true) {
            debug!("the last expiry still goes on");
            return;
        }
        let job = expire(Arc::clone(&self.services)).into_actor(self);
        ctx.spawn(job.map(|(), housekeeping, _| housekeeping.working = false));
    }
}

impl Actor for Housekeeping {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.services.settings.message_ttl.is_some() {
            ctx.run_interval(self.interval, Self::begin);
        }
    }
}

/// Deletes all messages that are too old.
async fn expire(services: Arc<Services>) {
    let Some(before) = services.settings.expire_before(services.clock.now()) else { return };
    match expire_all(services.store.as_ref(), before).await {
        Ok(0) => {}
        Ok(expired) => {
            Counters::add(&services.counters.messages_expired, expired);
            info!(messages = expired, "expired old messages");
        }
        Err(failure) => warn!(%failure, "messages could not be expired; trying again at the next interval"),
    }
}

/// Deletes all messages older than `before`, step by step; answers how many.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub async fn expire_all(store: &dyn Store, before: Timestamp) -> Result<u64, StoreError> {
    let mut total: u64 = 0;
    loop {
        let deleted = store.expire_messages(before, STEP).await?;
        total += u64::from(deleted);
        if deleted < STEP {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::connection::tests::{World, send};
    use crate::protocol::response::Response;

    async fn messages(world: &World) -> u64 {
        world.services.store.counts().await.unwrap().messages
    }

    async fn until_expired(world: &World, left: u64) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while messages(world).await != left {
            assert!(std::time::Instant::now() < deadline, "{left} messages expected");
        }
    }

    #[actix::test]
    async fn messages_expire_by_interval_and_only_the_old_ones() {
        let world = World::with(|settings| settings.message_ttl = Some(100), 128);
        let peer = world.connect();
        let queue = peer.create().await;
        assert_eq!(peer.ask(queue.sender(), None, send(b"old")).await, Response::Ok);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(peer.ask(queue.sender(), None, send(b"young")).await, Response::Ok);
        let housekeeping = Housekeeping::new(Arc::clone(&world.services), Duration::from_secs(20));
        let _running = housekeeping.start();
        tokio::task::yield_now().await;
        assert_eq!(messages(&world).await, 2);
        tokio::time::advance(Duration::from_secs(21)).await;
        until_expired(&world, 1).await;
    }

    #[actix::test]
    async fn nothing_expires_without_a_limit() {
        let world = World::new();
        let peer = world.connect();
        let queue = peer.create().await;
        assert_eq!(peer.ask(queue.sender(), None, send(b"kept")).await, Response::Ok);
        expire(Arc::clone(&world.services)).await;
        assert_eq!(messages(&world).await, 1);
    }

    #[actix::test]
    async fn more_messages_than_a_step_expire_in_one_job() {
        let world = World::with(|_| {}, 5000);
        let peer = world.connect();
        let queue = peer.create().await;
        for _ in 0..10 {
            let sends: Vec<_> = (0..250).map(|_| (queue.sender(), None, send(b"x"))).collect();
            assert!(peer.ask_all(&sends).await.iter().all(|answer| *answer == Response::Ok));
        }
        let mut later = world.services.clock.now();
        later.seconds += 1000;
        assert_eq!(expire_all(world.services.store.as_ref(), later).await.unwrap(), 2500);
    }
}
