//! Queues that were empty when they were loaded are not looked at again, unless something came in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::peer::{Queue, send, until};
use super::{Peer, World};
use crate::protocol::command::{Command, LinkData, QueueRequest, ServiceQueues};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{QueueId, ServiceId};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{
    Contents, Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, QueueRecord, QueueState, ServiceCheck,
    ServiceRecord, Store, StoreError, Timestamp,
};

/// A store that tells which queues are empty, lets a call that asked for them go on when it is told to, and counts looks.
struct Telling {
    inner: SqliteStore,
    go_on: Semaphore,
    asked: AtomicUsize,
    looks: AtomicUsize,
}

#[async_trait]
impl Store for Telling {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        self.inner.queues(party, ids).await
    }

    async fn queues_to_subscribe(&self, ids: &[QueueId]) -> Result<Vec<Option<(QueueRecord, Contents)>>, StoreError> {
        let records = self.inner.queues(Party::Recipient, ids).await?;
        let states = self.inner.queue_states(ids).await?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.go_on.acquire().await.map_err(|_| StoreError::Closed)?.forget();
        let contents = |state: QueueState| if state.size == 0 { Contents::Empty } else { Contents::Unknown };
        Ok(records.into_iter().zip(states).map(|(record, state)| Some((record?, contents(state)))).collect())
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.inner.first_messages(ids, limit).await
    }

    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
        self.inner.queue_states(ids).await
    }

    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
        self.inner.link_data(link_ids).await
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
        self.inner.apply(ops).await
    }

    async fn expire_messages(&self, before: Timestamp, limit: u32) -> Result<ExpiryStep, StoreError> {
        self.inner.expire_messages(before, limit).await
    }

    async fn enrol(&self, service: ServiceRecord) -> Result<Enrolled, StoreError> {
        self.inner.enrol(service).await
    }

    async fn service_queues(&self, service: ServiceId, role: ServiceRole) -> Result<ServiceQueues, StoreError> {
        self.inner.service_queues(service, role).await
    }

    async fn waiting_queues(
        &self,
        service: ServiceId,
        after: Option<QueueId>,
        limit: usize,
    ) -> Result<Vec<QueueId>, StoreError> {
        self.inner.waiting_queues(service, after, limit).await
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

fn world() -> (World, Arc<Telling>) {
    let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let store = Telling { inner, go_on: Semaphore::new(0), asked: AtomicUsize::new(0), looks: AtomicUsize::new(0) };
    let store = Arc::new(store);
    (World::on(Arc::clone(&store) as Arc<dyn Store>, |_| {}), store)
}

/// Puts a SUB that stands between loading the queue and subscribing to it.
async fn begin(recipient: &Peer, store: &Telling, queue: &Queue) {
    let asked = store.asked.load(Ordering::SeqCst);
    recipient.put(&[(queue.recipient(), Some(&queue.key), Command::Sub)]);
    until("the queue to be loaded", || store.asked.load(Ordering::SeqCst) > asked).await;
}

#[actix::test]
async fn an_empty_queue_is_subscribed_without_looking_at_it() {
    let (world, store) = world();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create_with(false, QueueRequest::Messaging(None)).await;
    store.go_on.add_permits(1);
    assert_eq!(recipient.ask(queue.recipient(), Some(&queue.key), Command::Sub).await, Response::Sok(None));
    assert_eq!(store.looks.load(Ordering::SeqCst), 0);
    assert_eq!(sender.ask(queue.sender(), None, send(b"after")).await, Response::Ok);
    assert!(matches!(recipient.event().await.1, Response::Msg { .. }));
}

#[actix::test]
async fn a_message_between_loading_and_subscribing_is_delivered() {
    let (world, store) = world();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create_with(false, QueueRequest::Messaging(None)).await;
    begin(&recipient, &store, &queue).await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"between")).await, Response::Ok);
    store.go_on.add_permits(1);
    let answers = recipient.gather(2).await;
    assert_eq!(answers[0].response, Ok(Response::Sok(None)));
    assert!(matches!(answers[1].response, Ok(Response::Msg { .. })), "{:?}", answers[1].response);
}

#[actix::test]
async fn a_queue_deleted_between_loading_and_subscribing_is_not_subscribed() {
    let (world, store) = world();
    let (recipient, other) = (world.connect(), world.connect());
    let queue = recipient.create_with(false, QueueRequest::Messaging(None)).await;
    begin(&recipient, &store, &queue).await;
    assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Del).await, Response::Ok);
    store.go_on.add_permits(1);
    assert_eq!(recipient.gather(1).await[0].response, Ok(Response::Err(ErrorType::Auth)));
    assert_eq!(recipient.core.borrow().subscriptions.in_force(), 0);
    assert!(world.services.registry.find(&[queue.id()]).await.unwrap()[0].is_none());
}
