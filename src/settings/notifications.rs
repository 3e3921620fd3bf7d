//! `[NOTIFICATIONS]`: how notifications are delivered, and how many may wait.

use std::time::Duration;

use super::keys;
use super::reader::Reader;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Notifications {
    /// How long notifications of a connection are collected before they are sent.
    pub delivery_interval: Duration,
    /// Most that wait for one notifier.
    pub pending_per_notifier: usize,
    /// Most that wait in all.
    pub pending_total: usize,
    /// Age of those that are dropped.
    pub ttl: Duration,
}

impl Notifications {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let milliseconds = reader.number(&keys::DELIVERY_INTERVAL_MS, 0..=60_000, "milliseconds");
        let hours = reader.number(&keys::EXPIRE_NTFS_HOURS, 1..=876_000, "hours");
        Notifications {
            delivery_interval: Duration::from_millis(milliseconds),
            pending_per_notifier: number(reader.number(&keys::PENDING_PER_NOTIFIER, 1..=100_000, "notifications")),
            pending_total: number(reader.number(&keys::PENDING_TOTAL, 1..=10_000_000, "notifications")),
            ttl: Duration::from_secs(hours * 3600),
        }
    }
}
