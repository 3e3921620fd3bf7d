//! What waited when the server ended, from the files that it has left.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use super::core::Core;
use super::journal::Journal;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::files::notification::Notification;
use crate::store::files::{NOTIFICATION_JOURNAL, NOTIFICATION_LOG, NotificationLog, read_notification_journal};
use crate::store::transfer::{Damage, TransferError, file};
use crate::store::{Party, QueueRecord, Store, StoreError};

/// Notifiers that are looked up at a time.
const PAGE: usize = 500;

/// What the files hold. To be read before the server runs: it blocks.
#[derive(Debug)]
pub struct Saved {
    directory: PathBuf,
    notifications: Vec<Notification>,
    damaged: usize,
}

/// Why what waited can not be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A file can not be read or written.
    #[error("notifications that wait: {0}")]
    File(#[from] TransferError),
    /// The store can not say whose they are.
    #[error("notifications that wait: {0}")]
    Store(#[from] StoreError),
}

impl Saved {
    /// Reads the log of an orderly stop, ours or the reference's, and the journal of a server that was killed.
    ///
    /// # Errors
    /// One that is there can not be read. What is damaged in it is logged and left out.
    pub fn read(directory: &Path) -> Result<Self, TransferError> {
        let (log, journal) = (directory.join(NOTIFICATION_LOG), directory.join(NOTIFICATION_JOURNAL));
        let (mut notifications, mut damaged) = (Vec::new(), 0);
        let mut report = |damage: Damage| {
            damaged += 1;
            warn!(%damage, "a notification that waited is damaged and left out");
        };
        if file::is_present(&log) {
            let mut log = NotificationLog::open(&log)?;
            while let Some(notification) = log.next(&mut report)? {
                notifications.push(notification);
            }
        }
        if file::is_present(&journal) {
            notifications.extend(read_notification_journal(&journal, &mut report)?);
        }
        remove_doubles(&mut notifications);
        Ok(Saved { directory: directory.to_owned(), notifications, damaged })
    }

    /// Puts what the files hold into `core`, but for notifiers that are gone, and begins the journal with it. The files are
    /// kept under the name `.bak` when something in them was damaged, and always the log.
    ///
    /// # Errors
    /// The store fails, or the journal can not be written.
    pub async fn restore(self, core: &mut Core, store: &dyn Store) -> Result<Journal, RestoreError> {
        let total = self.notifications.len();
        for page in self.notifications.chunks(PAGE) {
            let notifiers: Vec<QueueId> = page.iter().map(|notification| notification.notifier).collect();
            for (notification, service) in page.iter().zip(services(store, &notifiers).await?) {
                if let Some(service) = service {
                    core.restore(notification.clone(), service);
                }
            }
        }
        if total > 0 {
            info!(restored = core.pending().len(), of = total, "notifications that wait");
        }
        self.begin(core)
    }

    fn begin(&self, core: &mut Core) -> Result<Journal, RestoreError> {
        let (log, journal) = (self.directory.join(NOTIFICATION_LOG), self.directory.join(NOTIFICATION_JOURNAL));
        if self.damaged > 0 && file::is_present(&journal) {
            file::back_up(&journal)?;
        }
        let (waiting, _) = core.pending().take_unwritten();
        let started = Journal::start(&self.directory, waiting.iter().map(|(number, one)| (*number, one)))?;
        if file::is_present(&log) {
            file::rename(&log, &file::with_suffix(&log, ".bak"))?;
        }
        Ok(started)
    }
}

/// A server that was killed between writing the log and removing the journal has left both.
fn remove_doubles(notifications: &mut Vec<Notification>) {
    let mut seen: HashSet<(QueueId, MessageId)> = HashSet::with_capacity(notifications.len());
    notifications.retain(|notification| seen.insert((notification.notifier, notification.message)));
}

/// Of each notifier whether it is there, and its service.
async fn services(store: &dyn Store, notifiers: &[QueueId]) -> Result<Vec<Option<Option<ServiceId>>>, StoreError> {
    let service = |record: QueueRecord| record.notifier.and_then(|notifier| notifier.service);
    match store.queues(Party::Notifier, notifiers).await {
        Ok(records) => Ok(records.into_iter().map(|record| record.map(service)).collect()),
        Err(StoreError::Unreadable { places, .. }) => {
            let readable: Vec<QueueId> =
                (0..notifiers.len()).filter(|place| !places.contains(place)).map(|place| notifiers[place]).collect();
            let mut records = store.queues(Party::Notifier, &readable).await?.into_iter();
            let each = (0..notifiers.len()).map(|place| match places.contains(&place) {
                true => None,
                false => records.next().flatten().map(service),
            });
            Ok(each.collect())
        }
        Err(failure) => Err(failure),
    }
}
