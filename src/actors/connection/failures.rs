//! Telling the operator of a failing store: at once, and then not more than once a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tracing::error;

use crate::actors::clock::Clock;
use crate::actors::supervision::Alarm;
use crate::store::StoreError;

/// Seconds in which no more than one failure is logged.
const QUIET_SECONDS: i64 = 60;

/// Reports failures of the store. Shared by all connections.
#[derive(Debug)]
pub struct StoreFailures {
    clock: Clock,
    alarm: Arc<Alarm>,
    quiet_until: AtomicI64,
    unreported: AtomicU64,
}

impl StoreFailures {
    /// Nothing has failed yet. A store that is closed while the server runs raises the alarm.
    pub fn new(clock: Clock, alarm: Arc<Alarm>) -> Self {
        StoreFailures { clock, alarm, quiet_until: AtomicI64::new(i64::MIN), unreported: AtomicU64::new(0) }
    }

    /// Logs the failure, with the number of those that were not logged since the last one; or counts it. Whether it was
    /// logged.
    pub fn report(&self, failure: &StoreError) -> bool {
        if matches!(failure, StoreError::Closed) {
            self.alarm.raise("store");
        }
        let now = self.clock.now().seconds;
        let quiet_until = self.quiet_until.load(Ordering::Relaxed);
        let next = now.saturating_add(QUIET_SECONDS);
        let mine = now >= quiet_until
            && self.quiet_until.compare_exchange(quiet_until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if mine {
            let unreported = self.unreported.swap(0, Ordering::Relaxed);
            error!(%failure, unreported, "clients are answered ERR STORE: see to the disk or database");
        } else {
            self.unreported.fetch_add(1, Ordering::Relaxed);
        }
        mine
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_are_told_at_once_and_then_once_a_minute() {
        let failures = StoreFailures::new(Clock::following_tokio(1_700_000_000), Arc::default());
        let failure = StoreError::Failed("disk full".into());
        assert!(failures.report(&failure));
        assert!((0..100).all(|_| !failures.report(&failure)));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(failures.report(&failure));
        assert!(!failures.report(&failure));
    }
}
