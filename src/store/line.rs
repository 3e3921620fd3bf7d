//! The bounded line before a store's workers: threads of the embedded store, tasks of the other.
//!
//! Whoever submits work first gets a place in the line and as many bytes of it as the work occupies, and waits for them if
//! need be, but not longer than a set time. Both are given back when the work is done: the limits bound what waits and
//! what is being done together. A line is served in order, and a large batch is not overtaken by small ones for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc, oneshot};

use super::{LineMetrics, StoreError};

/// How much may wait, and how long for a place.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) places: u32,
    pub(super) bytes: u32,
    pub(super) wait: Duration,
}

/// Where the result of work arrives; it fails when the worker is gone.
pub(super) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// The submitting end of a line of `W`.
pub(super) struct Line<W> {
    limits: Limits,
    places: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// `None` once the line is closed. As every submitter holds a place, it always has room.
    sender: Mutex<Option<mpsc::Sender<Queued<W>>>>,
    full: AtomicU64,
    refused: AtomicU64,
}

/// Work in the line.
pub(super) struct Queued<W> {
    work: W,
    weight: u32,
    place: Place,
}

/// A place in the line and its bytes: given back when dropped.
type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// A line and the end where its work comes out; that end reads `None` when the line is closed and empty.
pub(super) fn line<W>(limits: Limits) -> (Line<W>, mpsc::Receiver<Queued<W>>) {
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

impl<W> Line<W> {
    /// Has `work` done, which occupies `weight` bytes, and waits for what it answers.
    ///
    /// Dropped before there was a place, nothing is done; dropped later, all is done.
    pub(super) async fn hand_over<T>(&self, weight: usize, work: W, answer: Answer<T>) -> Result<T, StoreError> {
        // What is larger than the whole line takes the whole line.
        let weight = u32::try_from(weight).unwrap_or(u32::MAX).min(self.limits.bytes);
        let place = self.place(weight).await?;
        self.send(Queued { work, weight, place })?;
        answer.await.unwrap_or_else(|_| Err(worker_gone()))
    }

    fn send(&self, queued: Queued<W>) -> Result<(), StoreError> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_ref().ok_or(StoreError::Closed)?;
        sender.try_send(queued).map_err(|_| worker_gone())
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

    /// Ends the line: lets nobody in any more, and its workers end when what is in the line has come out.
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

fn worker_gone() -> StoreError {
    StoreError::Failed("a worker of the store has stopped".into())
}

impl<W> Queued<W> {
    /// Bytes that it occupies.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// What is to be done.
    pub(super) fn work(&self) -> &W {
        &self.work
    }

    /// What is to be done.
    pub(super) fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    /// Gives its place back: the work is done, and is to be answered now.
    pub(super) fn leave(self) -> W {
        drop(self.place);
        self.work
    }
}
