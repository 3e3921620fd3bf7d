//! The time of day, as the actors see it. Tests give one that follows tokio's (paused) clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::store::{Day, Timestamp};

const SECONDS_PER_DAY: i64 = 86_400;

/// Where the time of day comes from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The operating system.
    System,
    /// A fixed time at a given instant of tokio's clock, which tests can pause and advance.
    Tokio {
        /// The instant at which it was `seconds`.
        origin: Instant,
        /// Seconds since 1970 at `origin`.
        seconds: i64,
    },
}

impl Clock {
    /// A clock for tests that shows `seconds` now and follows tokio's clock from here.
    pub fn following_tokio(seconds: i64) -> Self {
        Clock::Tokio { origin: Instant::now(), seconds }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp {
                    seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                    nanoseconds: since.subsec_nanos(),
                }
            }
            Clock::Tokio { origin, seconds } => {
                let since = origin.elapsed();
                let passed = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
                Timestamp { seconds: seconds.saturating_add(passed), nanoseconds: since.subsec_nanos() }
            }
        }
    }

    /// The day that now belongs to.
    pub fn today(&self) -> Day {
        Day(i32::try_from(self.now().seconds.div_euclid(SECONDS_PER_DAY)).unwrap_or(i32::MAX))
    }
}
