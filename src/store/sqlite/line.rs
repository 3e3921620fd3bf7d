//! The bounded line before a store's thread.
//!
//! Whoever submits work first gets a place in the line and as many bytes of it as the work occupies, and waits for them if
//! need be, but not longer than a set time. Both are given back when the work is done: the limits bound what waits and
//! what is being done together. A line is served in order, and a large batch is not overtaken by small ones for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};

use super::work::{self, Work};
use crate::store::{LineMetrics, StoreError};

/// How much may wait, and how long for a place.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) places: u32,
    pub(super) bytes: u32,
    pub(super) wait: Duration,
}

/// The submitting end.
pub(super) struct Line {
    limits: Limits,
    places: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// `None` once the line is closed. As every submitter holds a place, it always has room.
    sender: Mutex<Option<mpsc::Sender<Queued>>>,
    full: AtomicU64,
    refused: AtomicU64,
}

/// Work in the line.
pub(super) struct Queued {
    work: Box<dyn Work>,
    weight: u32,
    place: Place,
}

/// A place in the line and its bytes: given back when dropped.
type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// A line and the end where its work comes out; that end reads `None` when the line is closed and empty.
pub(super) fn line(limits: Limits) -> (Line, mpsc::Receiver<Queued>) {
    let (sender, receiver) = mpsc::channel(limits.places as usize);
    let line = Line {
        limits,
        places: Arc::new(Semaphore::new(limits.places as usize)),
        bytes: Arc::new(Semaphore::new(limits.bytes as usize)),
        sender: Mutex::new(Some(sender)),
        full: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    };
    (line, receiver)
}

impl Line {
    /// Has `run` done by the thread, counting as `operations` and `weight` bytes, and waits for its result.
    ///
    /// Dropped before there was a place, nothing is done; dropped later, all is done.
    pub(super) async fn submit<T, F>(&self, operations: usize, weight: usize, run: F) -> Result<T, StoreError>
    where
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        // What is larger than the whole line takes the whole line.
        let weight = u32::try_from(weight).unwrap_or(u32::MAX).min(self.limits.bytes);
        let place = self.place(weight).await?;
        let (work, answer) = work::work(operations, run);
        self.send(Queued { work, weight, place })?;
        answer.await.unwrap_or_else(|_| Err(thread_gone()))
    }

    fn send(&self, queued: Queued) -> Result<(), StoreError> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_ref().ok_or(StoreError::Closed)?;
        sender.try_send(queued).map_err(|_| thread_gone())
    }

    async fn place(&self, weight: u32) -> Result<Place, StoreError> {
        if let Some(place) = self.place_now(weight)? {
            return Ok(place);
        }
        self.full.fetch_add(1, Ordering::Relaxed);
        match tokio::time::timeout(self.limits.wait, self.place_later(weight)).await {
            Ok(place) => place.map_err(|_| StoreError::Closed),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(StoreError::Overloaded)
            }
        }
    }

    fn place_now(&self, weight: u32) -> Result<Option<Place>, StoreError> {
        let place = self.places.clone().try_acquire_owned();
        match place.and_then(|place| Ok((place, self.bytes.clone().try_acquire_many_owned(weight)?))) {
            Ok(place) => Ok(Some(place)),
            Err(TryAcquireError::NoPermits) => Ok(None),
            Err(TryAcquireError::Closed) => Err(StoreError::Closed),
        }
    }

    async fn place_later(&self, weight: u32) -> Result<Place, AcquireError> {
        let place = self.places.clone().acquire_owned().await?;
        Ok((place, self.bytes.clone().acquire_many_owned(weight).await?))
    }

    /// Lets nobody in any more; those who wait for a place are answered.
    pub(super) fn refuse(&self) {
        self.places.close();
        self.bytes.close();
    }

    /// Ends the line: lets nobody in any more, and its thread ends when what is in the line has come out.
    pub(super) fn end(&self) {
        self.refuse();
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) fn metrics(&self) -> LineMetrics {
        LineMetrics {
            depth: u64::from(self.limits.places).saturating_sub(self.places.available_permits() as u64),
            full: self.full.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

fn thread_gone() -> StoreError {
    StoreError::Failed("a thread of the store has stopped".into())
}

impl Queued {
    /// Bytes that it occupies.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Operations that it counts as.
    pub(super) fn operations(&self) -> usize {
        self.work.operations()
    }

    /// Does it, keeping the result.
    pub(super) fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.work.run(connection)
    }

    /// Gives its place back and answers.
    pub(super) fn answer(self, outcome: Result<(), StoreError>) {
        drop(self.place);
        self.work.answer(outcome);
    }
}
