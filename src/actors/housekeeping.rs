//! Housekeeping: deletes messages that are too old and logs the metrics, by interval.
//!
//! Owns nothing but its schedule. One job at a time: an interval that finds the job before it unfinished does nothing.
//! Works in steps of [`STEP`] messages, so that the store's other work goes in between. Stops with the system.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};
use tracing::{debug, info, warn};

use super::connection::{Counters, Services};
use super::metrics;
use super::supervision::Vital;
use crate::store::{Store, StoreError, Timestamp};

/// How often the metrics are logged.
const METRICS_INTERVAL: Duration = Duration::from_secs(3600);

/// Messages deleted in one transaction.
pub const STEP: u32 = 500;

/// The actor.
pub struct Housekeeping {
    services: Arc<Services>,
    interval: Duration,
    working: bool,
    /// Whether the first job is not to wait for an interval.
    at_once: bool,
    _vital: Vital,
}

impl Housekeeping {
    /// Not started yet. `interval`: from the beginning of one job to that of the next.
    pub fn new(services: Arc<Services>, interval: Duration, vital: Vital) -> Self {
        Housekeeping { services, interval, working: false, at_once: false, _vital: vital }
    }

    /// Whether the first job begins with the actor.
    pub fn at_once(self, at_once: bool) -> Self {
        Housekeeping { at_once, ..self }
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.working, true) {
            debug!("the last expiry still goes on");
            return;
        }
        let job = tidy(Arc::clone(&self.services)).into_actor(self);
        ctx.spawn(job.map(|(), housekeeping, _| housekeeping.working = false));
    }
}

impl Actor for Housekeeping {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.interval, Self::begin);
        if self.at_once {
            self.begin(ctx);
        }
        ctx.run_interval(METRICS_INTERVAL, |housekeeping, _| metrics::log(&housekeeping.services));
    }
}

/// Deletes all messages that are too old, and what is left of queues that were deleted long ago.
async fn tidy(services: Arc<Services>) {
    expire(&services).await;
    expire_notifications(&services).await;
    match services.store.purge_deleted_queues(services.clock.now()).await {
        Ok(0) => {}
        Ok(queues) => info!(queues, "removed queues that were deleted long ago"),
        Err(failure) => warn!(%failure, "deleted queues could not be removed; trying again at the next interval"),
    }
}

async fn expire_notifications(services: &Services) {
    let mut before = services.clock.now();
    before.seconds = before.seconds.saturating_sub(services.settings.notification_ttl);
    // Fails only when the actor has stopped.
    if let Ok(expired @ 1..) = services.notifications.expire(before).await {
        info!(notifications = expired, "dropped old notifications");
    }
}

async fn expire(services: &Services) {
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
        let step = store.expire_messages(before, STEP).await?;
        total += u64::from(step.deleted);
        if !step.more {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Notify;

    use super::*;
    use crate::actors::connection::tests::World;
    use crate::actors::supervision::Alarm;
    use crate::protocol::command::{LinkData, ServiceQueues};
    use crate::protocol::handshake::ServiceRole;
    use crate::protocol::{QueueId, ServiceId};
    use crate::store::{
        Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, Peeked, QueueRecord, QueueState, ServiceCheck,
        ServiceRecord,
    };

    /// A store with nothing but messages that expire, as many as one is told to have.
    #[derive(Default)]
    struct Expiring {
        left: AtomicUsize,
        asked: AtomicUsize,
        /// While set, jobs wait for it.
        stuck: Option<Arc<Notify>>,
    }

    #[async_trait]
    impl Store for Expiring {
        async fn queues(&self, _: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
            Ok(vec![None; ids.len()])
        }

        async fn first_messages(&self, ids: &[QueueId], _: usize) -> Result<Vec<Looked>, StoreError> {
            Ok(ids.iter().map(|_| Looked { service: None, first: Peeked::Empty }).collect())
        }

        async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
            Ok(vec![QueueState::default(); ids.len()])
        }

        async fn link_data(&self, ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
            Ok(vec![None; ids.len()])
        }

        async fn apply(&self, _: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
            Err(StoreError::Closed)
        }

        async fn expire_messages(&self, _: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Some(stuck) = &self.stuck {
                stuck.notified().await;
            }
            let deleted = self.left.load(Ordering::Relaxed).min(usize::try_from(limit).unwrap());
            self.left.fetch_sub(deleted, Ordering::Relaxed);
            let deleted = u32::try_from(deleted).unwrap();
            Ok(ExpiryStep { deleted, more: deleted == limit })
        }

        async fn enrol(&self, _service: ServiceRecord) -> Result<Enrolled, StoreError> {
            Err(StoreError::Closed)
        }

        async fn service_queues(&self, _service: ServiceId, _role: ServiceRole) -> Result<ServiceQueues, StoreError> {
            Err(StoreError::Closed)
        }

        async fn waiting_queues(
            &self,
            _service: ServiceId,
            _after: Option<QueueId>,
            _limit: usize,
        ) -> Result<Vec<QueueId>, StoreError> {
            Err(StoreError::Closed)
        }

        async fn check_services(&self, _repair: bool) -> Result<Vec<ServiceCheck>, StoreError> {
            Err(StoreError::Closed)
        }

        async fn counts(&self) -> Result<Counts, StoreError> {
            Ok(Counts::default())
        }

        async fn close(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    const MINUTE: Duration = Duration::from_secs(60);

    /// Housekeeping every minute over this store, on a paused clock.
    fn start(store: &Arc<Expiring>, ttl: Option<i64>) {
        start_with(store, ttl, false);
    }

    fn start_with(store: &Arc<Expiring>, ttl: Option<i64>, at_once: bool) {
        let store: Arc<dyn Store> = Arc::clone(store) as Arc<dyn Store>;
        let world = World::on(store, |settings| settings.message_ttl = ttl);
        tokio::time::pause();
        let vital = Arc::new(Alarm::default()).vital("housekeeping");
        Housekeeping::new(Arc::clone(&world.services), MINUTE, vital).at_once(at_once).start();
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    async fn pass(time: Duration) {
        settle().await;
        tokio::time::advance(time).await;
        settle().await;
    }

    #[actix::test]
    async fn messages_are_expired_by_interval() {
        let store = Arc::new(Expiring { left: 5.into(), ..Expiring::default() });
        start(&store, Some(100));
        pass(MINUTE - Duration::from_secs(1)).await;
        assert_eq!(store.asked.load(Ordering::Relaxed), 0);
        pass(Duration::from_secs(2)).await;
        assert_eq!((store.asked.load(Ordering::Relaxed), store.left.load(Ordering::Relaxed)), (1, 0));
    }

    #[actix::test]
    async fn what_the_start_has_left_is_done_at_once() {
        let store = Arc::new(Expiring { left: 5.into(), ..Expiring::default() });
        start_with(&store, Some(100), true);
        settle().await;
        assert_eq!((store.asked.load(Ordering::Relaxed), store.left.load(Ordering::Relaxed)), (1, 0));
    }

    #[actix::test]
    async fn one_job_goes_on_step_by_step_until_nothing_is_left() {
        let store = Arc::new(Expiring { left: 2500.into(), ..Expiring::default() });
        start(&store, Some(100));
        pass(MINUTE + Duration::from_secs(1)).await;
        assert_eq!((store.asked.load(Ordering::Relaxed), store.left.load(Ordering::Relaxed)), (6, 0));
    }

    #[actix::test]
    async fn a_job_that_is_not_finished_is_not_joined_by_another() {
        let stuck = Arc::new(Notify::new());
        let store = Arc::new(Expiring { left: 5.into(), stuck: Some(Arc::clone(&stuck)), ..Expiring::default() });
        start(&store, Some(100));
        for _ in 0..10 {
            pass(MINUTE).await;
        }
        assert_eq!(store.asked.load(Ordering::Relaxed), 1);
        stuck.notify_one();
        pass(MINUTE).await;
        assert_eq!(store.asked.load(Ordering::Relaxed), 2);
    }

    #[actix::test]
    async fn nothing_expires_without_a_limit() {
        let store = Arc::new(Expiring { left: 5.into(), ..Expiring::default() });
        start(&store, None);
        pass(MINUTE * 10).await;
        assert_eq!(store.asked.load(Ordering::Relaxed), 0);
    }
}
