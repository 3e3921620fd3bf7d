//! Clients that are services: their sessions, and what their queues are in the store.

use bytes::Bytes;

use super::peer::{Queue, settle, until};
use super::{Peer, World};
use crate::actors::connection::session::SessionService;
use crate::protocol::certificate::Fingerprint;
use crate::protocol::command::{Command, IdsHash, MessageFlags, QueueMode, ServiceQueues};
use crate::protocol::crypto::{
    PrivateAuthKey, SecretDhKey, SigningKey, random_array, random_message_id, random_queue_id, random_service_id,
};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::response::{QueueIds, Response};
use crate::protocol::transmission::{Authorization, ServiceSignature};
use crate::protocol::{CorrelationId, EntityId, QueueId, ServiceId, Version};
use crate::store::op::SendMessage;
use crate::store::{DhSecret, Enrolled, NewQueue, Notifier, Op, QueueRecord, QueueStatus, ServiceRecord};

/// A service that does not know what it has.
pub const UNKNOWN: ServiceQueues = ServiceQueues { count: -1, hash: IdsHash([0; 16]) };

/// A service without queues.
pub const NOTHING: ServiceQueues = ServiceQueues { count: 0, hash: IdsHash([0; 16]) };

/// A service that the server keeps.
#[derive(Clone, Copy)]
pub struct Service {
    pub id: ServiceId,
    pub role: ServiceRole,
    fingerprint: Fingerprint,
}

/// A service in one session.
#[derive(Clone)]
pub struct ServiceSession {
    pub service: Service,
    /// Signs in this session only.
    key: SigningKey,
}

impl ServiceSession {
    pub fn id(&self) -> EntityId {
        EntityId(self.service.id.into())
    }

    pub fn key(&self) -> PrivateAuthKey {
        PrivateAuthKey::Signing(self.key.clone())
    }

    /// The same session's key, in the name of another service.
    pub fn naming(&self, service: &Service) -> Self {
        ServiceSession { service: *service, key: self.key.clone() }
    }

    /// What the server knows of it after the handshake.
    pub fn known_to_server(&self) -> SessionService {
        let Service { id, role, fingerprint } = self.service;
        let PublicAuthKey::Ed25519(key) = self.key.public_key().unwrap() else { panic!("an Ed25519 key") };
        SessionService { id, role, fingerprint, key }
    }

    /// The queue's key signs the service's certificate with the command, the service signs the command alone.
    pub fn authorize(
        &self,
        queue_key: &PrivateAuthKey,
        bytes: &[u8],
        id: &CorrelationId,
    ) -> (Authorization, Option<ServiceSignature>) {
        let bound = [&self.service.fingerprint.0, bytes].concat();
        let signature = self.key.sign(bytes).unwrap().try_into().unwrap();
        (queue_key.authorize(&bound, id, None).unwrap(), Some(signature))
    }
}

impl World {
    /// A service that the store keeps.
    pub async fn service(&self, role: ServiceRole) -> Service {
        let (id, fingerprint) = (random_service_id(), Fingerprint(random_array()));
        let record = ServiceRecord {
            id,
            role,
            certificate_chain: vec![Bytes::from_static(b"certificate")],
            certificate_hash: Bytes::copy_from_slice(&fingerprint.0),
            created_at: self.services.clock.today(),
        };
        assert_eq!(self.services.store.enrol(record).await.unwrap(), Enrolled::New);
        Service { id, role, fingerprint }
    }

    /// A new connection of a service, of the newest version.
    pub fn connect_service(&self, service: &Service) -> Peer {
        self.connect_service_as(service, Version::NAMES)
    }

    pub fn connect_service_as(&self, service: &Service, version: Version) -> Peer {
        let session = ServiceSession { service: *service, key: SigningKey::generate_ed25519() };
        self.connect_in_session(version, Some(session))
    }

    /// As many queues of a messaging service, or of none, put into the store beside all connections.
    pub async fn stored_queues(&self, service: Option<&Service>, count: usize) -> Vec<Queue> {
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let queues: Vec<NewQueue> = (0..count).map(|_| stored_queue(&key, service)).collect();
        let ops = queues.iter().map(|queue| Op::CreateQueue(Box::new(queue.clone()))).collect();
        self.services.store.apply(ops).await.unwrap();
        queues.into_iter().map(|queue| as_known(&key, queue.record)).collect()
    }

    /// As many notifiers of a service, or of none, of queues that are put into the store beside all connections.
    pub async fn stored_notifiers(&self, service: Option<&Service>, count: usize) -> Vec<StoredNotifier> {
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let queues: Vec<NewQueue> = (0..count).map(|_| notified_queue(&key, service)).collect();
        let ids = queues.iter().filter_map(|queue| queue.record.notifier.as_ref()).map(|notifier| notifier.id);
        let notifiers = ids.map(|id| StoredNotifier { id }).collect();
        let ops = queues.into_iter().map(|queue| Op::CreateQueue(Box::new(queue))).collect();
        self.services.store.apply(ops).await.unwrap();
        notifiers
    }

    /// A message in each of the queues, stored beside all connections.
    pub async fn store_messages(&self, queues: &[Queue]) {
        let message = |queue: &Queue| SendMessage {
            queue: queue.id(),
            id: random_message_id(),
            timestamp: self.services.clock.now(),
            flags: MessageFlags::default(),
            body: Bytes::from_static(b"waits"),
            expire_before: None,
            delete_link: false,
        };
        let ops = queues.iter().map(|queue| Op::Send(Box::new(message(queue)))).collect();
        self.services.store.apply(ops).await.unwrap();
    }

    /// What the store says that a service has.
    pub async fn stored(&self, service: &Service) -> ServiceQueues {
        self.services.store.service_queues(service.id, service.role).await.unwrap()
    }

    /// Which connection the registry has for a messaging service.
    pub async fn connection_of(&self, service: &Service) -> Option<u64> {
        let found = self.services.registry.find_services(vec![service.id]).await.unwrap();
        found[0].as_ref().map(|connection| connection.id.0)
    }
}

fn stored_queue(key: &PrivateAuthKey, service: Option<&Service>) -> NewQueue {
    let record = QueueRecord {
        recipient_id: random_queue_id(),
        sender_id: random_queue_id(),
        recipient_keys: vec![key.public_key().unwrap()],
        dh_secret: DhSecret(random_array()),
        sender_key: None,
        mode: Some(QueueMode::Messaging),
        status: QueueStatus::Active,
        link_id: None,
        notifier: None,
        recipient_service: service.map(|service| service.id),
        updated_at: None,
    };
    NewQueue { record, link_data: None }
}

/// A notifier as its client knows it.
pub struct StoredNotifier {
    pub id: QueueId,
}

fn notified_queue(key: &PrivateAuthKey, service: Option<&Service>) -> NewQueue {
    let mut queue = stored_queue(key, None);
    queue.record.notifier = Some(Notifier {
        id: random_queue_id(),
        key: key.public_key().unwrap(),
        dh_secret: DhSecret(random_array()),
        service: service.map(|service| service.id),
    });
    queue
}

fn as_known(key: &PrivateAuthKey, record: QueueRecord) -> Queue {
    let ids = QueueIds {
        recipient_id: record.recipient_id.into(),
        sender_id: record.sender_id.into(),
        dh_key: SecretDhKey::generate().public_key(),
        mode: record.mode,
        link_id: None,
        service_id: record.recipient_service.map(|id| EntityId(id.into())),
        notifier: None,
    };
    Queue { key: key.clone(), ids }
}

impl Peer {
    /// `SUBS` or `NSUBS` as the service's role is: the answer.
    pub async fn subscribe_service(&self, expected: ServiceQueues) -> Response {
        let session = self.as_service.as_ref().unwrap();
        self.ask(session.id(), Some(&session.key()), subscription(&session.service, expected)).await
    }

    /// The same, asserting that the service has what the answer says.
    pub async fn serve(&self, queues: ServiceQueues) {
        assert_eq!(self.subscribe_service(UNKNOWN).await, Response::Soks(queues));
    }

    /// Puts `SUBS` or `NSUBS` on the wire.
    pub fn put_service_subscription(&self, expected: ServiceQueues) -> CorrelationId {
        let session = self.as_service.as_ref().unwrap();
        self.put(&[(session.id(), Some(&session.key()), subscription(&session.service, expected))]).remove(0)
    }

    /// Lets the connection take all of its mail, and do what follows: each round asks the store too.
    pub async fn quiesce(&self) {
        for _ in 0..3 {
            let answer = self.ask(random_queue_id().into(), None, Command::Lget).await;
            assert!(matches!(answer, Response::Err(_)), "{answer:?}");
            settle().await;
        }
    }

    /// Waits until all mail of a connection that does not read is taken.
    pub async fn quiesce_unread(&self) {
        until("its mail is taken", || self.handle.events.gate().depth() == 0).await;
        settle().await;
    }

    /// Asserts that nothing was sent that was not asked for.
    pub async fn is_told_nothing(&self) {
        self.quiesce().await;
        let told = self.take_received();
        assert!(told.is_empty(), "{told:?}");
    }
}

pub fn subscription(service: &Service, expected: ServiceQueues) -> Command {
    match service.role {
        ServiceRole::Notifier => Command::Nsubs(expected),
        ServiceRole::Messaging | ServiceRole::Proxy => Command::Subs(expected),
    }
}

/// The number of queues and the hash of their IDs, computed from them.
pub fn queues_with<'a>(queues: impl IntoIterator<Item = &'a Queue>) -> ServiceQueues {
    ids_with(queues.into_iter().map(Queue::id))
}

pub fn ids_with(ids: impl IntoIterator<Item = QueueId>) -> ServiceQueues {
    let ids: Vec<QueueId> = ids.into_iter().collect();
    ServiceQueues { count: i64::try_from(ids.len()).unwrap(), hash: IdsHash::of(ids.iter().map(|id| &id.0[..])) }
}
