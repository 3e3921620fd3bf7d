//! A store that notes what it is asked, fails when it is told to, and keeps its answers back until it may give them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::protocol::command::{LinkData, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{
    Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, Peeked, QueueRecord, QueueState, ServiceCheck,
    ServiceRecord, Store, StoreError, Timestamp,
};

/// What a store is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    Queues,
    FirstMessages,
    Apply,
    Enrol,
    ServiceQueues,
    WaitingQueues,
}

/// How a kind of call is answered.
#[derive(Default)]
struct Control {
    /// How many things each call asked for, at the most.
    asked: Vec<usize>,
    failure: Option<Failure>,
    /// What was asked is done, and its answer waits for a permit.
    held: Option<Arc<Semaphore>>,
}

/// How a kind of call fails.
#[derive(Clone)]
struct Failure {
    error: StoreError,
    /// For all that, what was asked is done.
    done: bool,
}

/// See the module.
pub struct DirectedStore {
    inner: SqliteStore,
    /// Queues whose messages cannot be read.
    damaged: Mutex<Vec<QueueId>>,
    controls: Mutex<HashMap<Call, Control>>,
}

impl DirectedStore {
    pub fn new() -> Arc<Self> {
        let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
        Arc::new(DirectedStore { inner, damaged: Mutex::default(), controls: Mutex::default() })
    }

    fn control<T>(&self, call: Call, with: impl FnOnce(&mut Control) -> T) -> T {
        with(self.controls.lock().unwrap().entry(call).or_default())
    }

    /// How many things each call of this kind asked for, since the last time that this was asked.
    pub fn asked(&self, call: Call) -> Vec<usize> {
        self.control(call, |control| std::mem::take(&mut control.asked))
    }

    /// How many calls of this kind there were, since they were taken.
    pub fn calls(&self, call: Call) -> usize {
        self.control(call, |control| control.asked.len())
    }

    /// Makes calls of this kind fail, and do nothing.
    pub fn fail(&self, call: Call, error: StoreError) {
        self.control(call, |control| control.failure = Some(Failure { error, done: false }));
    }

    /// Makes calls of this kind do what they are to and fail for all that.
    pub fn fail_when_done(&self, call: Call, error: StoreError) {
        self.control(call, |control| control.failure = Some(Failure { error, done: true }));
    }

    /// Makes the messages of a queue unreadable.
    pub fn damage(&self, queue: QueueId) {
        self.damaged.lock().unwrap().push(queue);
    }

    pub fn work(&self, call: Call) {
        self.control(call, |control| control.failure = None);
    }

    /// Keeps back the answers to calls of this kind from now on; each permit lets one go, in their order.
    pub fn hold(&self, call: Call) -> Arc<Semaphore> {
        let held = Arc::new(Semaphore::new(0));
        self.control(call, |control| control.held = Some(Arc::clone(&held)));
        held
    }

    /// Answers calls of this kind at once from now on.
    pub fn let_go(&self, call: Call) {
        self.control(call, |control| control.held = None);
    }

    async fn direct<T>(
        &self,
        call: Call,
        asked: usize,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (failure, held) = self.control(call, |control| {
            control.asked.push(asked);
            (control.failure.clone(), control.held.clone())
        });
        let answer = match failure {
            None => future.await,
            Some(Failure { error, done: true }) => future.await.and(Err(error)),
            Some(Failure { error, done: false }) => Err(error),
        };
        if let Some(held) = held {
            held.acquire().await.map_err(|_| StoreError::Closed)?.forget();
        }
        answer
    }
}

#[async_trait]
impl Store for DirectedStore {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        self.direct(Call::Queues, ids.len(), self.inner.queues(party, ids)).await
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        let mut found = self.direct(Call::FirstMessages, ids.len(), self.inner.first_messages(ids, limit)).await?;
        let damaged = self.damaged.lock().unwrap();
        for (_, looked) in ids.iter().zip(&mut found).filter(|(id, _)| damaged.contains(id)) {
            looked.first = Peeked::Unreadable(StoreError::Failed("a column".into()));
        }
        Ok(found)
    }

    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
        self.inner.queue_states(ids).await
    }

    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
        self.inner.link_data(link_ids).await
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
        self.direct(Call::Apply, ops.len(), self.inner.apply(ops)).await
    }

    async fn expire_messages(&self, before: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError> {
        self.inner.expire_messages(before, limit).await
    }

    async fn enrol(&self, service: ServiceRecord) -> Result<Enrolled, StoreError> {
        self.direct(Call::Enrol, 1, self.inner.enrol(service)).await
    }

    async fn service_queues(&self, service: ServiceId, role: ServiceRole) -> Result<ServiceQueues, StoreError> {
        self.direct(Call::ServiceQueues, 1, self.inner.service_queues(service, role)).await
    }

    async fn waiting_queues(
        &self,
        service: ServiceId,
        after: Option<QueueId>,
        limit: usize,
    ) -> Result<Vec<QueueId>, StoreError> {
        self.direct(Call::WaitingQueues, limit, self.inner.waiting_queues(service, after, limit)).await
    }

    async fn check_services(&self, repair: bool) -> Result<Vec<ServiceCheck>, StoreError> {
        self.inner.check_services(repair).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner.counts().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }
}
