use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use super::World;
use super::peer::{Ask, new, send, signing_key};
use crate::protocol::command::{Command, LinkData, QueueRequest, ServiceQueues};
use crate::protocol::crypto::sender_id_for;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, QueueId, ServiceId, Version};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{
    Counts, Enrolled, ExpiryStep, Looked, Op, OpOutcome, Party, Peeked, QueueRecord, QueueState, ServiceCheck,
    ServiceRecord, Store, StoreError, Timestamp,
};
use crate::transport::block_io::Incoming;

fn error(error: ErrorType) -> Response {
    Response::Err(error)
}

fn command_error(kind: CommandError) -> Response {
    Response::Err(ErrorType::Cmd(kind))
}

#[actix::test]
async fn commands_of_a_block_are_executed_in_their_order() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create_with(false, QueueRequest::Messaging(None)).await;
    let key = signing_key();
    let public = key.public_key().unwrap();
    let asks: Vec<Ask<'_>> = vec![
        (queue.sender(), None, send(b"before it is secured")),
        (queue.sender(), Some(&key), Command::Skey(public.clone())),
        (queue.sender(), None, send(b"not authorized any more")),
        (queue.sender(), Some(&key), send(b"authorized")),
        (queue.recipient(), Some(&queue.key), Command::Off),
        (queue.sender(), Some(&key), send(b"suspended")),
        (queue.recipient(), Some(&queue.key), Command::Del),
        (queue.sender(), Some(&key), send(b"deleted")),
    ];
    let answers = sender.ask_all(&asks).await;
    let auth = error(ErrorType::Auth);
    let ok = Response::Ok;
    assert_eq!(answers, [&ok, &ok, &auth, &ok, &ok, &auth, &ok, &auth].map(Clone::clone));
}

#[actix::test]
async fn a_full_block_of_255_mixed_commands_is_answered_in_order() {
    let world = World::new();
    let peer = world.connect();
    let mut queues = Vec::new();
    for _ in 0..5 {
        queues.push(peer.create_with(false, QueueRequest::Messaging(None)).await);
    }
    let asks: Vec<Ask<'_>> = (0..255usize)
        .map(|n| match n % 3 {
            0 => (EntityId::NONE, None, Command::Ping),
            1 => (queues[n % 5].sender(), None, send(b"x")),
            _ => (EntityId::from(QueueId([1; 24])), None, send(b"nowhere")),
        })
        .collect();
    let ids = peer.put(&asks);
    let received = peer.gather(255).await;
    let (refused, executed): (Vec<_>, Vec<_>) =
        received.into_iter().partition(|t| t.response == Ok(error(ErrorType::Auth)));
    assert_eq!(refused.len(), 85);
    let order: Vec<_> = executed.iter().map(|t| t.correlation_id.clone()).collect();
    let expected: Vec<_> = ids.iter().enumerate().filter(|(n, _)| n % 3 != 2).map(|(_, id)| id.clone()).collect();
    assert_eq!(order, expected);
}

#[actix::test]
async fn a_command_finds_what_an_earlier_one_of_its_block_has_made() {
    let world = World::new();
    let peer = world.connect();
    let queue = peer.create_with(false, QueueRequest::Contact(None)).await;
    let link_id = EntityId::from(QueueId([6; 24]));
    let data = LinkData { fixed: Bytes::from_static(b"fixed"), user: Bytes::from_static(b"user") };
    let asks: Vec<Ask<'_>> = vec![
        (link_id.clone(), None, Command::Lget),
        (queue.recipient(), Some(&queue.key), Command::Lset(link_id.clone(), data.clone())),
        (link_id.clone(), None, Command::Lget),
        (queue.recipient(), Some(&queue.key), Command::Ldel),
        (link_id, None, Command::Lget),
    ];
    let auth = error(ErrorType::Auth);
    let link = Response::Lnk(queue.sender(), data);
    assert_eq!(peer.ask_all(&asks).await, [auth.clone(), Response::Ok, link, Response::Ok, auth]);
}

#[actix::test]
async fn sub_get_and_que_of_one_block_see_each_other_in_their_order() {
    let world = World::new();
    let peer = world.connect();
    let (first, second) = (
        peer.create_with(false, QueueRequest::Messaging(None)).await,
        peer.create_with(false, QueueRequest::Messaging(None)).await,
    );
    let ask = |queue: &super::peer::Queue, command: Command| (queue.recipient(), command);
    let commands = [
        ask(&first, Command::Get),
        ask(&first, Command::Sub),
        ask(&second, Command::Que),
        ask(&second, Command::Sub),
        ask(&second, Command::Que),
        ask(&second, Command::Get),
    ];
    let keys = [&first.key, &first.key, &second.key, &second.key, &second.key, &second.key];
    let asks: Vec<Ask<'_>> =
        commands.into_iter().zip(keys).map(|((entity, command), key)| (entity, Some(key), command)).collect();
    let answers = peer.ask_all(&asks).await;
    let prohibited = command_error(CommandError::Prohibited);
    let is_subscribed = |answer: &Response| match answer {
        Response::Info(info) => info.subscription.is_some(),
        other => panic!("INFO expected, got {other:?}"),
    };
    assert_eq!(answers[..2], [Response::Ok, prohibited.clone()]);
    assert_eq!((is_subscribed(&answers[2]), is_subscribed(&answers[4])), (false, true));
    assert_eq!((&answers[3], &answers[5]), (&Response::Sok(None), &prohibited));
}

#[actix::test]
async fn ten_sends_in_a_block_are_stored_in_their_order() {
    let world = World::new();
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create_with(false, QueueRequest::Messaging(None)).await;
    let sends: Vec<Ask<'_>> = (0..10u8).map(|n| (queue.sender(), None, send(&[n]))).collect();
    sender.ask_all(&sends).await;
    for n in 0..10u8 {
        let first = world.services.store.first_messages(&[queue.id()], 1).await.unwrap().remove(0);
        let Peeked::Message(first) = first.first else { panic!("a message expected") };
        let crate::store::MessageContent::Sent { body, .. } = &first.message.content else { panic!("no marker") };
        assert_eq!(body.as_ref(), [n]);
        let op = Op::Acknowledge { queue: queue.id(), message: None, with_next: false };
        world.services.store.apply(vec![op]).await.unwrap();
    }
}

#[actix::test]
async fn a_block_that_can_not_be_read_is_answered_and_the_connection_goes_on() {
    let world = World::new();
    let peer = world.connect();
    peer.put_payload(Bytes::from_static(b"\x02 not a batch"));
    peer.put_incoming(Incoming::BadBlock);
    for _ in 0..2 {
        assert_eq!(peer.event().await, (EntityId::NONE, error(ErrorType::Block)));
    }
    assert_eq!(peer.ask(EntityId::NONE, None, Command::Ping).await, Response::Pong);
}

#[actix::test]
async fn securing_is_repeatable_with_the_same_key_only() {
    let world = World::new();
    let peer = world.connect();
    let queue = peer.create().await;
    let (key, other) = (signing_key(), signing_key());
    let (public, other_public) = (key.public_key().unwrap(), other.public_key().unwrap());
    for _ in 0..2 {
        let answer = peer.ask(queue.recipient(), Some(&queue.key), Command::Key(public.clone())).await;
        assert_eq!(answer, Response::Ok);
        let answer = peer.ask(queue.sender(), Some(&key), Command::Skey(public.clone())).await;
        assert_eq!(answer, Response::Ok);
    }
    let answer = peer.ask(queue.recipient(), Some(&queue.key), Command::Key(other_public.clone())).await;
    assert_eq!(answer, error(ErrorType::Auth));
    assert_eq!(peer.ask(queue.sender(), Some(&other), Command::Skey(other_public)).await, error(ErrorType::Auth));
}

#[actix::test]
async fn a_full_queue_refuses_until_it_is_drained_and_shows_a_quota_message() {
    let world = World::with(|_| {}, 3);
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    let sends: Vec<Ask<'_>> = (0..5u8).map(|n| (queue.sender(), None, send(&[n]))).collect();
    let answers = sender.ask_all(&sends).await;
    assert_eq!(answers[..3], vec![Response::Ok; 3]);
    assert_eq!(answers[3..], vec![error(ErrorType::Quota); 2]);
    assert!(matches!(recipient.event().await.1, Response::Msg { .. }));
    for _ in 0..3 {
        assert!(matches!(recipient.acknowledge(&queue).await, Response::Msg { .. }), "three messages and a marker");
    }
    assert_eq!(sender.ask(queue.sender(), None, send(b"still")).await, error(ErrorType::Quota));
    assert_eq!(recipient.acknowledge(&queue).await, Response::Ok);
    assert_eq!(sender.ask(queue.sender(), None, send(b"again")).await, Response::Ok);
}

#[actix::test]
async fn a_contact_queue_shows_its_link_and_can_not_be_secured_by_its_sender() {
    let world = World::new();
    let peer = world.connect();
    let data = LinkData { fixed: Bytes::from_static(b"fixed"), user: Bytes::from_static(b"user") };
    let correlation_id = crate::protocol::CorrelationId(Bytes::from_static(&[5; 24]));
    let sender_id = EntityId::from(sender_id_for(&correlation_id));
    let link_id = EntityId::from(QueueId([8; 24]));
    let key = signing_key();
    let request = QueueRequest::Contact(Some((link_id.clone(), (sender_id.clone(), data.clone()))));
    let wrong = peer.ask(EntityId::NONE, Some(&key), new(&key, true, request.clone())).await;
    assert_eq!(wrong, command_error(CommandError::Prohibited), "the sender ID is the hash of the correlation ID");
    peer.put_with_id(&correlation_id, &key, &new(&key, true, request));
    let created = peer.gather(1).await.remove(0);
    assert!(matches!(created.response, Ok(Response::Ids(_))), "{:?}", created.response);
    assert_eq!(peer.ask(link_id.clone(), None, Command::Lget).await, Response::Lnk(sender_id.clone(), data));
    let secure = Command::Skey(key.public_key().unwrap());
    assert_eq!(peer.ask(sender_id, Some(&key), secure).await, error(ErrorType::Auth));
    let secure = Command::Lkey(key.public_key().unwrap());
    assert_eq!(peer.ask(link_id, Some(&key), secure).await, error(ErrorType::Auth));
}

#[actix::test]
async fn a_queue_takes_sixteen_recipient_keys_and_no_more() {
    let world = World::new();
    let peer = world.connect();
    let queue = peer.create_with(false, QueueRequest::Contact(None)).await;
    let rkey = |count: usize| {
        let others = (1..count).map(|_| signing_key().public_key().unwrap());
        Command::Rkey(std::iter::once(queue.key.public_key().unwrap()).chain(others).collect())
    };
    let too_many = peer.ask(queue.recipient(), Some(&queue.key), rkey(17)).await;
    assert_eq!(too_many, command_error(CommandError::Prohibited));
    assert_eq!(peer.ask(queue.recipient(), Some(&queue.key), rkey(16)).await, Response::Ok);
}

#[actix::test]
async fn messages_larger_than_the_version_allows_are_refused() {
    let world = World::new();
    for (version, largest) in [(6, 16_088), (8, 16_064), (11, 16_048), (20, 16_048)] {
        let peer = world.connect_as(Version(version));
        let queue = peer.create_with(false, QueueRequest::Messaging(None)).await;
        let fits = peer.ask(queue.sender(), None, send(&vec![1; largest])).await;
        assert_eq!(fits, Response::Ok, "version {version}");
        let too_large = peer.ask(queue.sender(), None, send(&vec![1; largest + 1])).await;
        assert_eq!(too_large, error(ErrorType::LargeMsg), "version {version}");
    }
}

#[actix::test]
async fn commands_of_later_roles_are_refused_as_by_a_server_without_them() {
    let world = World::new();
    let peer = world.connect();
    let rfwd = peer.ask(EntityId::NONE, None, Command::Rfwd(Bytes::from_static(b"x"))).await;
    assert!(matches!(rfwd, Response::Err(ErrorType::Proxy(_))), "{rfwd:?}");
    let key = signing_key();
    let nsub = peer.ask(QueueId([3; 24]).into(), Some(&key), Command::Nsub).await;
    assert_eq!(nsub, error(ErrorType::Auth));
}

/// A store whose changes fail while told so: not done, or done for all that.
struct Failing {
    inner: SqliteStore,
    fails: Arc<AtomicBool>,
    does_it: bool,
}

#[async_trait]
impl Store for Failing {
    async fn queues(&self, party: Party, ids: &[QueueId]) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        self.inner.queues(party, ids).await
    }

    async fn first_messages(&self, ids: &[QueueId], limit: usize) -> Result<Vec<Looked>, StoreError> {
        self.inner.first_messages(ids, limit).await
    }

    async fn queue_states(&self, ids: &[QueueId]) -> Result<Vec<QueueState>, StoreError> {
        self.inner.queue_states(ids).await
    }

    async fn link_data(&self, link_ids: &[QueueId]) -> Result<Vec<Option<LinkData>>, StoreError> {
        self.inner.link_data(link_ids).await
    }

    async fn apply(&self, ops: Vec<Op>) -> Result<Vec<OpOutcome>, StoreError> {
        if !self.fails.load(Ordering::Relaxed) {
            return self.inner.apply(ops).await;
        }
        if self.does_it {
            self.inner.apply(ops).await?;
        }
        Err(StoreError::Failed("disk full".into()))
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

#[actix::test]
async fn a_failing_store_is_an_error_to_the_client_and_a_retry_succeeds() {
    let fails = Arc::new(AtomicBool::new(false));
    let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let world = World::on(Arc::new(Failing { inner, fails: Arc::clone(&fails), does_it: false }), |_| {});
    let (recipient, sender) = (world.connect(), world.connect());
    let queue = recipient.create().await;
    assert_eq!(sender.ask(queue.sender(), None, send(b"stored")).await, Response::Ok);
    assert!(matches!(recipient.event().await.1, Response::Msg { .. }));
    fails.store(true, Ordering::Relaxed);
    let failed = error(ErrorType::Store("failed".into()));
    assert_eq!(sender.ask(queue.sender(), None, send(b"lost")).await, failed);
    assert_eq!(recipient.acknowledge(&queue).await, failed);
    fails.store(false, Ordering::Relaxed);
    assert_eq!(recipient.acknowledge(&queue).await, Response::Ok, "the message counted as delivered still");
    assert_eq!(recipient.acknowledge(&queue).await, error(ErrorType::NoMsg));
}

/// Its subscriber would not be told of it, nor of those that are sent after it.
#[actix::test]
async fn a_message_that_was_perhaps_stored_is_looked_for() {
    let fails = Arc::new(AtomicBool::new(false));
    let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let world = World::on(Arc::new(Failing { inner, fails: Arc::clone(&fails), does_it: true }), |_| {});
    let (recipient, sender) = (world.connect(), world.connect());
    let (queue, own) = (recipient.create().await, sender.create().await);
    fails.store(true, Ordering::Relaxed);
    let failed = error(ErrorType::Store("failed".into()));
    assert_eq!(sender.ask(queue.sender(), None, send(b"stored")).await, failed);
    assert_eq!(recipient.event().await.0, queue.recipient());
    assert_eq!(sender.ask(own.sender(), None, send(b"stored")).await, failed);
    assert_eq!(sender.event().await.0, own.recipient());
}

/// Who deleted it gets an error, and tells nobody.
#[actix::test]
async fn a_queue_that_was_perhaps_deleted_is_looked_for() {
    let fails = Arc::new(AtomicBool::new(false));
    let inner = SqliteStore::open(&SqliteOptions::default()).unwrap();
    let world = World::on(Arc::new(Failing { inner, fails: Arc::clone(&fails), does_it: true }), |_| {});
    let (recipient, other) = (world.connect(), world.connect());
    let (queue, own) = (recipient.create().await, other.create().await);
    fails.store(true, Ordering::Relaxed);
    let failed = error(ErrorType::Store("failed".into()));
    for (queue, subscriber) in [(queue, &recipient), (own, &other)] {
        assert_eq!(other.ask(queue.recipient(), Some(&queue.key), Command::Del).await, failed);
        assert_eq!(subscriber.event().await, (queue.recipient(), Response::Deld));
        assert_eq!(subscriber.core.borrow().subscriptions.in_force(), 0);
        assert!(world.services.registry.find(&[queue.id()]).await.unwrap()[0].is_none());
    }
}
