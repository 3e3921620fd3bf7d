//! Housekeeping: deletes messages that are too old, at start and by interval.
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

/// When messages are expired; how old they may be stands in the settings of the commands.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Whether to begin at start.
    pub on_start: bool,
    /// From the beginning of one job to the next.
    pub interval: Duration,
}

/// The actor.
pub struct Housekeeping {
    services: Arc<Services>,
    schedule: Schedule,
    working: bool,
}

impl Housekeeping {
    /// Not started yet.
    pub fn new(services: Arc<Services>, schedule: Schedule) -> Self {
        Housekeeping { services, schedule, working: false }
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
        if self.services.settings.message_ttl.is_none() {
            return;
        }
        if self.schedule.on_start {
            self.begin(ctx);
        }
        ctx.run_interval(self.schedule.interval, Self::begin);
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
