//! The thread that writes what waits to disk: what came and went every second, and all that waits at an orderly stop.
//!
//! It has one thing to do at a time: what comes meanwhile stays with the actor, which asks whether it is idle. A disk that
//! fails is tried again every second, and holds up nobody but the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{error, info, warn};

use super::pending::Number;
use crate::store::files::notification::Notification;
use crate::store::files::{NOTIFICATION_JOURNAL, NOTIFICATION_LOG, NotificationJournal, NotificationLogWriter};
use crate::store::transfer::{TransferError, file};

/// What may be in its line: something to write, and then the end.
const PLACES: usize = 2;

/// Pause after the disk failed.
const RETRY: Duration = Duration::from_secs(1);

/// A handle to the thread. Dropped, it ends the thread, and the journal stays for the next start.
#[derive(Debug)]
pub struct Journal {
    work: SyncSender<Work>,
    idle: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Work {
    Write(Batch),
    /// All that waits, for the next start.
    Close(Vec<Notification>, oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct Batch {
    added: Vec<(Number, Notification)>,
    removed: Vec<Number>,
}

impl Journal {
    /// Begins a journal in `directory` with what waits, and starts the thread.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start<'a>(
        directory: &Path,
        waiting: impl IntoIterator<Item = (Number, &'a Notification)>,
    ) -> Result<Self, TransferError> {
        let path = directory.join(NOTIFICATION_JOURNAL);
        let file = NotificationJournal::create(&path, waiting)?;
        let (work, works) = sync_channel(PLACES);
        let idle = Arc::new(AtomicBool::new(true));
        let writer =
            Writer { file, directory: directory.to_owned(), idle: Arc::clone(&idle), batch: None, has_failed: false };
        let thread = std::thread::Builder::new().name("notifications".into()).stack_size(512 * 1024);
        thread.spawn(move || writer.run(&works)).map_err(TransferError::file(&path))?;
        Ok(Journal { work, idle })
    }

    /// Whether it takes something to write.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    /// Writes what came and what went. To be called when it is idle.
    pub fn write(&self, added: Vec<(Number, Notification)>, removed: Vec<Number>) {
        self.idle.store(false, Ordering::Release);
        // Idle, it has room; and it ends only after this.
        let _ = self.work.try_send(Work::Write(Batch { added, removed }));
    }

    /// Writes all that waits into the log, in place of the journal. Resolves when it is done, or can not be.
    pub fn close(self, waiting: Vec<Notification>) -> impl Future<Output = ()> {
        let (done, is_done) = oneshot::channel();
        // There is at most one thing before it in the line.
        let _ = self.work.try_send(Work::Close(waiting, done));
        async move {
            let _ = is_done.await;
        }
    }
}

struct Writer {
    file: NotificationJournal,
    directory: PathBuf,
    idle: Arc<AtomicBool>,
    /// What is to be written.
    batch: Option<Batch>,
    has_failed: bool,
}

impl Writer {
    fn run(mut self, works: &Receiver<Work>) {
        loop {
            let next = match self.batch {
                None => works.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => works.recv_timeout(RETRY),
            };
            match next {
                Ok(Work::Write(batch)) => self.batch = Some(batch),
                Ok(Work::Close(waiting, done)) => {
                    self.close(&waiting);
                    // Nobody may wait for it any more.
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.write();
        }
    }

    fn write(&mut self) {
        let Some(Batch { added, removed }) = &self.batch else { return };
        match self.file.append(added, removed) {
            Ok(()) => {
                self.batch = None;
                self.idle.store(true, Ordering::Release);
                if std::mem::take(&mut self.has_failed) {
                    info!("notifications that wait are written to disk again");
                }
            }
            Err(error) if !std::mem::replace(&mut self.has_failed, true) => {
                warn!(%error, "notifications that wait can not be written to disk: they would be lost if the server ended");
            }
            Err(_) => {}
        }
    }

    fn close(&mut self, waiting: &[Notification]) {
        match write_log(&self.directory, waiting) {
            Ok(()) => {}
            Err(error) => {
                error!(%error, "notifications that wait could not be written: the last second of them is lost");
                self.write();
            }
        }
    }
}

/// The log in the reference's form; the journal has done its service then.
fn write_log(directory: &Path, waiting: &[Notification]) -> Result<(), TransferError> {
    if !waiting.is_empty() {
        let mut log = NotificationLogWriter::create(&directory.join(NOTIFICATION_LOG))?;
        waiting.iter().try_for_each(|notification| log.write(notification))?;
        log.finish()?;
    }
    file::remove(&directory.join(NOTIFICATION_JOURNAL))
}
