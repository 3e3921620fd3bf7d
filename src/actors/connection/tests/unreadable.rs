//! A queue that another server left in the database as we cannot read it: only its own commands fail.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::World;
use super::peer::{Ask, send};
use crate::protocol::command::{Command, LinkData, QueueRequest, ServiceQueues};
use crate::protocol::error::ErrorType;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{QueueId, ServiceId};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{
    Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, Peeked, QueueRecord, QueueState, ServiceCheck,
    ServiceRecord, Store, StoreError, Timestamp,
};

/// A store that cannot read some queues, or the messages of some.
struct Damaged {
    inner: SqliteStore,
    queues: Mutex<Vec<QueueId>>,
    messages: Mutex<Vec<QueueId>>,
}

fn failure(places: Vec<usize>) -> StoreError {
    StoreError::Unreadable { places, reason: "a column".into() }
}

#[async_trait]
impl Store for Damaged {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        let places: Vec<usize> = {
            let unreadable = self.queues.lock().unwrap();
            (0..ids.len()).filter(|place| unreadable.contains(&ids[*place])).collect()
        };
        if places.is_empty() { self.inner.queues(party, ids).await } else { Err(failure(places)) }
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        let found = self.inner.first_messages(ids, limit).await?;
        let unreadable = self.messages.lock().unwrap();
        let peek = |(id, found): (_, Looked)| match unreadable.contains(id) {
            true => Looked { first: Peeked::Unreadable(failure(vec![])), ..found },
            false => found,
        };
        Ok(ids.iter().zip(found).map(peek).collect())
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

fn world() -> (World, Arc<Damaged>) {
    let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let store = Arc::new(Damaged { inner, queues: Mutex::default(), messages: Mutex::default() });
    (World::on(Arc::clone(&store) as Arc<dyn Store>, |_| {}), store)
}

fn failed() -> Response {
    Response::Err(ErrorType::Store("failed".into()))
}

#[actix::test]
async fn commands_of_other_queues_in_the_block_are_done() {
    let (world, store) = world();
    let peer = world.connect();
    let mut queues = Vec::new();
    for _ in 0..3 {
        queues.push(peer.create_with(false, QueueRequest::Messaging(None)).await);
    }
    store.queues.lock().unwrap().push(queues[1].id());
    let asks: Vec<Ask<'_>> = queues
        .iter()
        .map(|queue| (queue.recipient(), Some(&queue.key), Command::Sub))
        .chain([(queues[1].recipient(), Some(&queues[1].key), Command::Off), (queues[2].sender(), None, send(b"sent"))])
        .collect();
    let ok = Response::Sok(None);
    let mut answers = Vec::new();
    for answer in peer.put(&asks) {
        answers.push(answer);
    }
    let mut found = Vec::new();
    for transmission in peer.gather(6).await {
        let Some(place) = answers.iter().position(|id| *id == transmission.correlation_id) else { continue };
        found.push((place, transmission.response.unwrap()));
    }
    found.sort_by_key(|(place, _)| *place);
    let found: Vec<_> = found.into_iter().map(|(_, response)| response).collect();
    assert_eq!(found, [&ok, &failed(), &ok, &failed(), &Response::Ok].map(Clone::clone));
}

#[actix::test]
async fn a_queue_whose_message_cannot_be_read_is_not_subscribed_and_others_are() {
    let (world, store) = world();
    let peer = world.connect();
    let (good, bad) = (
        peer.create_with(false, QueueRequest::Messaging(None)).await,
        peer.create_with(false, QueueRequest::Messaging(None)).await,
    );
    store.messages.lock().unwrap().push(bad.id());
    let asks: Vec<Ask<'_>> =
        [&bad, &good].map(|queue| (queue.recipient(), Some(&queue.key), Command::Sub)).into_iter().collect();
    assert_eq!(peer.ask_all(&asks).await, [failed(), Response::Sok(None)]);
    assert_eq!(peer.core.borrow().subscriptions.in_force(), 1);
    assert!(world.services.registry.find(&[bad.id()]).await.unwrap()[0].is_none());
    assert_eq!(peer.ask(bad.recipient(), Some(&bad.key), Command::Get).await, failed());
}
