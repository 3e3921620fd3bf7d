//! A scripted peer and the world around the connection under test.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::service::ServiceSession;
use crate::actors::clock::Clock;
use crate::actors::connection::core::{Core, CoreRef};
use crate::actors::connection::encode::Encoder;
use crate::actors::connection::failures::StoreFailures;
use crate::actors::connection::{CommandSettings, Connection, Counters, Mailboxes, Services, Session};
use crate::actors::notifications::pending::Limits;
use crate::actors::notifications::{NotificationsHandle, core as notifications};
use crate::actors::registry::{ConnectionId, ConnectionRef, RegistryHandle, Shard};
use crate::protocol::block::BatchWriter;
use crate::protocol::command::{Command, MessageFlags, NewQueueRequest, QueueRequest};
use crate::protocol::crypto::{PrivateAuthKey, SecretDhKey, SigningKey};
use crate::protocol::response::{QueueIds, Response};
use crate::protocol::transmission::{
    Authorization, ServerTransmission, TransmissionParams, decode_responses, encode_command,
};
use crate::protocol::{CorrelationId, EntityId, QueueId, SessionId, Version};
use crate::store::Store;
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::transport::block_io::{BlockIo, Incoming};

/// What all connections of a test share.
pub struct World {
    pub services: Arc<Services>,
    next: Cell<u64>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {}, 128)
    }

    pub fn with(change: impl FnOnce(&mut CommandSettings), quota: u32) -> Self {
        let options = SqliteOptions { message_queue_quota: quota, ..SqliteOptions::default() };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&options).unwrap());
        Self::on(store, change)
    }

    pub fn on(store: Arc<dyn Store>, change: impl FnOnce(&mut CommandSettings)) -> Self {
        let arbiter = actix_rt::Arbiter::current();
        let notification_metrics = Arc::default();
        let shards = (0..2).map(|_| Shard::start(&arbiter, 64, Arc::default(), &Arc::default())).collect();
        let mut settings = CommandSettings {
            new_queues: true,
            create_password: None,
            message_ttl: None,
            expire_on_send: false,
            client_blocks: 32,
            notification_ttl: 86_400,
            end_interval: Duration::ZERO,
        };
        change(&mut settings);
        let services = Services {
            store,
            registry: RegistryHandle::new(shards),
            notifications: NotificationsHandle::start(
                &arbiter,
                64,
                // Told at once: what a window gathers is shown where windows are.
                notifications::Core::new(Limits { notifier: 5, total: 1000 }, Duration::ZERO),
                None,
                (Arc::default(), Arc::clone(&notification_metrics)),
                &Arc::default(),
            ),
            notification_metrics,
            clock: Clock::following_tokio(1_700_000_000),
            settings,
            counters: Counters::default(),
            store_failures: StoreFailures::new(Clock::System, Arc::default()),
            mailboxes: Mailboxes::default(),
        };
        World { services: Arc::new(services), next: Cell::new(0) }
    }

    /// A new connection of the newest version.
    pub fn connect(&self) -> Peer {
        self.connect_as(Version::NAMES)
    }

    pub fn connect_as(&self, version: Version) -> Peer {
        self.connect_in_session(version, None)
    }

    /// A new connection, of a client that is a service in its session or none.
    pub fn connect_in_session(&self, version: Version, as_service: Option<ServiceSession>) -> Peer {
        let id = ConnectionId(self.next.get() + 1);
        self.next.set(id.0);
        let params = TransmissionParams { version, session_id: SessionId([9; 32]) };
        let service = as_service.as_ref().map(|service| Box::new(service.known_to_server()));
        let session = Session { params, secret_key: SecretDhKey::generate(), service };
        let core = Core::new(Encoder::new(params), self.services.settings.client_blocks);
        let wire = Rc::new(Wire::default());
        let ended = Rc::new(Cell::new(false));
        let held = Box::new(EndSign(Rc::clone(&ended)));
        let io = ScriptedIo(Rc::clone(&wire));
        let services = Arc::clone(&self.services);
        let handle = Connection::start(id, io, session, Rc::clone(&core), services, held);
        Peer { wire, core, handle, as_service, params, ended, received: RefCell::default() }
    }
}

/// Dropped when the connection has ended.
struct EndSign(Rc<Cell<bool>>);

impl Drop for EndSign {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// Two ends of a wire without a network.
#[derive(Default)]
pub struct Wire {
    to_server: RefCell<VecDeque<Incoming>>,
    to_peer: RefCell<VecDeque<Vec<u8>>>,
    /// The peer takes nothing.
    blocked: Cell<bool>,
    /// Payloads after which the peer takes nothing.
    takes: Cell<Option<usize>>,
    writing: RefCell<Option<Vec<u8>>>,
    waker: RefCell<Option<Waker>>,
    closed: Cell<bool>,
    /// Part of a block was read.
    pub partial: Cell<bool>,
    /// Blocks that the server has read.
    pub read: Cell<usize>,
}

impl Wire {
    pub fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

struct ScriptedIo(Rc<Wire>);

impl BlockIo for ScriptedIo {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Incoming>> {
        let next = self.0.to_server.borrow_mut().pop_front();
        match next {
            Some(incoming) => {
                self.0.read.set(self.0.read.get() + 1);
                Poll::Ready(Ok(incoming))
            }
            None => {
                *self.0.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_partial(&self) -> bool {
        self.0.partial.get()
    }

    fn start_write(&mut self, payload: &[u8]) -> io::Result<()> {
        let before = self.0.writing.borrow_mut().replace(payload.to_vec());
        assert!(before.is_none(), "one write at a time");
        Ok(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>> {
        if self.0.writing.borrow().is_none() {
            return Poll::Ready(Ok(()));
        }
        if self.0.blocked.get() {
            *self.0.waker.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        *progress = true;
        self.0.to_peer.borrow_mut().extend(self.0.writing.borrow_mut().take());
        let left = self.0.takes.get().map(|takes| takes.saturating_sub(1));
        self.0.takes.set(left);
        self.0.blocked.set(left == Some(0));
        Poll::Ready(Ok(()))
    }

    fn close(&mut self) {
        self.0.closed.set(true);
    }
}

/// The client's end of a connection.
pub struct Peer {
    pub wire: Rc<Wire>,
    pub core: CoreRef,
    pub handle: ConnectionRef,
    /// The service that the client is in this session.
    pub as_service: Option<ServiceSession>,
    params: TransmissionParams,
    ended: Rc<Cell<bool>>,
    received: RefCell<VecDeque<ServerTransmission>>,
}

/// A queue as its recipient knows it.
pub struct Queue {
    pub key: PrivateAuthKey,
    pub ids: QueueIds,
}

impl Queue {
    pub fn recipient(&self) -> EntityId {
        self.ids.recipient_id.clone()
    }

    pub fn sender(&self) -> EntityId {
        self.ids.sender_id.clone()
    }

    pub fn id(&self) -> QueueId {
        self.ids.recipient_id.queue().unwrap()
    }
}

static CORRELATION: AtomicU64 = AtomicU64::new(1);

/// A command of a batch: entity, key that authorizes it, command.
pub type Ask<'a> = (EntityId, Option<&'a PrivateAuthKey>, Command);

pub fn signing_key() -> PrivateAuthKey {
    PrivateAuthKey::Signing(SigningKey::generate_ed25519())
}

pub fn send(body: &[u8]) -> Command {
    Command::Send(MessageFlags::default(), Bytes::copy_from_slice(body))
}

impl Peer {
    /// Puts a block with these commands on the wire, without waiting for anything. Answers their correlation IDs.
    pub fn put(&self, asks: &[Ask<'_>]) -> Vec<CorrelationId> {
        self.put_signed(asks, Command::uses_service_signature)
    }

    /// The same, the client's service signing those commands that it is told to.
    pub fn put_signed(&self, asks: &[Ask<'_>], signs: impl Fn(&Command) -> bool) -> Vec<CorrelationId> {
        let mut batch = BatchWriter::new();
        let mut ids = Vec::new();
        for (entity, key, command) in asks {
            let number = CORRELATION.fetch_add(1, Ordering::Relaxed);
            let mut id = [0; 24];
            id[..8].copy_from_slice(&number.to_be_bytes());
            let id = CorrelationId(Bytes::copy_from_slice(&id));
            let service = self.as_service.as_ref().filter(|_| signs(command));
            let authorize = |bytes: &[u8]| match (key, service) {
                (Some(key), Some(service)) => service.authorize(key, bytes, &id),
                (Some(key), None) => (key.authorize(bytes, &id, None).unwrap(), None),
                (None, _) => (Authorization::None, None),
            };
            batch.push(|out| encode_command(&self.params, &id, entity, command, authorize, out)).unwrap();
            ids.push(id);
        }
        for payload in batch.finish() {
            self.put_payload(payload.into());
        }
        ids
    }

    pub fn put_payload(&self, payload: Bytes) {
        self.put_incoming(Incoming::Payload(payload));
    }

    pub fn put_incoming(&self, incoming: Incoming) {
        self.wire.to_server.borrow_mut().push_back(incoming);
        self.wire.wake();
    }

    /// Gives commands in one block and waits for all answers, in the order of the commands; events are kept.
    pub async fn ask_all(&self, asks: &[Ask<'_>]) -> Vec<Response> {
        let ids = self.put(asks);
        let mut answers = Vec::new();
        for id in ids {
            answers.push(self.answer(&id).await);
        }
        answers
    }

    /// The answer to a command that was put; events are kept.
    pub async fn answer(&self, id: &CorrelationId) -> Response {
        self.next_where(|t| t.correlation_id == *id).await.response.unwrap()
    }

    pub async fn ask(&self, entity: EntityId, key: Option<&PrivateAuthKey>, command: Command) -> Response {
        self.ask_all(&[(entity, key, command)]).await.remove(0)
    }

    /// The next `count` transmissions, answers and events, in the order in which they came.
    pub async fn gather(&self, count: usize) -> Vec<ServerTransmission> {
        until("as many transmissions", || {
            self.receive();
            self.received.borrow().len() >= count
        })
        .await;
        self.received.borrow_mut().drain(..count).collect()
    }

    /// Puts one command with a given correlation ID on the wire.
    pub fn put_with_id(&self, id: &CorrelationId, key: &PrivateAuthKey, command: &Command) {
        let mut batch = BatchWriter::new();
        let authorize = |bytes: &[u8]| (key.authorize(bytes, id, None).unwrap(), None);
        batch.push(|out| encode_command(&self.params, id, &EntityId::NONE, command, authorize, out)).unwrap();
        for payload in batch.finish() {
            self.put_payload(payload.into());
        }
    }

    /// Gives a command with an authorization made by hand, and waits for its answer.
    pub async fn ask_with(&self, entity: &EntityId, authorization: &Authorization, command: &Command) -> Response {
        let id = CorrelationId(Bytes::from_static(b"made by hand"));
        let mut batch = BatchWriter::new();
        let authorize = |_: &[u8]| (authorization.clone(), None);
        batch.push(|out| encode_command(&self.params, &id, entity, command, authorize, out)).unwrap();
        batch.finish().into_iter().for_each(|payload| self.put_payload(payload.into()));
        self.answer(&id).await
    }

    /// The next event, whatever it is about.
    pub async fn event(&self) -> (EntityId, Response) {
        let t = self.next_where(|t| t.correlation_id == CorrelationId::NONE).await;
        (t.entity_id, t.response.unwrap())
    }

    async fn next_where(&self, wanted: impl Fn(&ServerTransmission) -> bool) -> ServerTransmission {
        tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                self.receive();
                let position = self.received.borrow().iter().position(&wanted);
                if let Some(found) = position.and_then(|at| self.received.borrow_mut().remove(at)) {
                    return found;
                }
                settle().await;
            }
        })
        .await
        .expect("an answer")
    }

    /// Takes what is on the wire.
    pub fn receive(&self) {
        while let Some(payload) = self.wire.to_peer.borrow_mut().pop_front() {
            self.received.borrow_mut().extend(decode_responses(&self.params, &payload.into()));
        }
    }

    /// All that was received and not asked for, in order.
    pub fn take_received(&self) -> Vec<ServerTransmission> {
        self.receive();
        self.received.borrow_mut().drain(..).collect()
    }

    pub fn payloads_waiting(&self) -> usize {
        self.wire.to_peer.borrow().len()
    }

    /// Whether the peer takes what is written to it.
    pub fn block(&self, blocked: bool) {
        self.wire.takes.set(None);
        self.wire.blocked.set(blocked);
        self.wire.wake();
    }

    pub fn closed(&self) -> bool {
        self.wire.closed.get()
    }

    pub fn ended(&self) -> bool {
        self.ended.get()
    }

    pub async fn create(&self) -> Queue {
        self.create_with(true, QueueRequest::Messaging(None)).await
    }

    pub async fn create_with(&self, subscribe: bool, queue: QueueRequest) -> Queue {
        let key = signing_key();
        let response = self.ask(EntityId::NONE, Some(&key), new(&key, subscribe, queue)).await;
        match response {
            Response::Ids(ids) => Queue { key, ids: *ids },
            other => panic!("IDS expected, got {other:?}"),
        }
    }

    pub async fn subscribe(&self, queue: &Queue) {
        let response = self.ask(queue.recipient(), Some(&queue.key), Command::Sub).await;
        assert_eq!(response, Response::Sok(self.as_service.as_ref().map(ServiceSession::id)));
    }

    pub async fn acknowledge(&self, queue: &Queue) -> Response {
        self.ask(queue.recipient(), Some(&queue.key), Command::Ack(Bytes::new())).await
    }
}

pub fn new(key: &PrivateAuthKey, subscribe: bool, queue: QueueRequest) -> Command {
    Command::New(Box::new(NewQueueRequest {
        recipient_key: key.public_key().unwrap(),
        dh_key: SecretDhKey::generate().public_key(),
        password: None,
        subscribe,
        queue: Some(queue),
        notifier: None,
    }))
}

/// Lets everything run that can.
pub async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    // The store's threads answer in their own time.
    std::thread::yield_now();
}

/// Waits until the condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        settle().await;
    }
}
