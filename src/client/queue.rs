//! The recipient's side of a queue.

use bytes::Bytes;

use super::connection::{Client, Event};
use super::error::ClientError;
use super::message::ReceivedMessage;
use super::notifier::{Notifier, NotifierCredentials};
use super::request::Request;
use super::sender::{Sender, expect_ok};
use crate::protocol::command::{Command, LinkData, NewNotifier, NewQueueRequest, QueueRequest};
use crate::protocol::crypto::{
    DhKeyPair, PrivateAuthKey, SecretDhKey, SharedSecret, SigningKey, random_correlation_id, sender_id_for,
};
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::response::{QueueIds, QueueInfo, Response};

/// A queue that is to be created.
#[derive(Clone)]
pub struct NewQueue {
    /// The recipient's key.
    pub key: PrivateAuthKey,
    /// The relay's password for new queues.
    pub password: Option<Bytes>,
    /// Whether creating subscribes.
    pub subscribe: bool,
    /// Mode and link (9+, link 15+).
    pub queue: Option<QueueRequest>,
    /// Notifier credentials (17+).
    pub notifier: Option<NotifierCredentials>,
    correlation_id: CorrelationId,
    dh_key: DhKeyPair,
}

impl Default for NewQueue {
    /// A queue in mode `M` with an Ed25519 key, subscribed to, without a link.
    fn default() -> Self {
        NewQueue {
            key: PrivateAuthKey::Signing(SigningKey::generate_ed25519()),
            password: None,
            subscribe: true,
            queue: Some(QueueRequest::Messaging(None)),
            notifier: None,
            correlation_id: random_correlation_id(),
            dh_key: DhKeyPair::generate(),
        }
    }
}

impl NewQueue {
    /// A queue in mode `M`, which the sender may secure.
    pub fn messaging() -> Self {
        NewQueue::default()
    }

    /// A queue in mode `C`, a contact address.
    pub fn contact() -> Self {
        NewQueue { queue: Some(QueueRequest::Contact(None)), ..NewQueue::default() }
    }

    /// With this recipient's key.
    pub fn with_key(self, key: PrivateAuthKey) -> Self {
        NewQueue { key, ..self }
    }

    /// With the relay's password.
    pub fn with_password(self, password: Option<Bytes>) -> Self {
        NewQueue { password, ..self }
    }

    /// Without subscribing.
    pub fn only_created(self) -> Self {
        NewQueue { subscribe: false, ..self }
    }

    /// A queue in mode `M` with a link (15+); the relay makes the link's ID.
    pub fn with_invitation(self, data: LinkData) -> Self {
        let queue = QueueRequest::Messaging(Some((self.sender_id(), data)));
        NewQueue { queue: Some(queue), ..self }
    }

    /// A queue in mode `C` with a link (15+) of this ID.
    pub fn with_contact_link(self, link_id: EntityId, data: LinkData) -> Self {
        let queue = QueueRequest::Contact(Some((link_id, (self.sender_id(), data))));
        NewQueue { queue: Some(queue), ..self }
    }

    /// With a notifier (17+).
    pub fn with_notifier(self, credentials: NotifierCredentials) -> Self {
        NewQueue { notifier: Some(credentials), ..self }
    }

    /// The sender's ID that a queue with a link must have: it follows from the correlation ID.
    pub fn sender_id(&self) -> EntityId {
        EntityId::from(sender_id_for(&self.correlation_id))
    }

    /// The `NEW` command, for batches; see [`NewQueue::created`].
    pub fn request(&self) -> Result<Request, ClientError> {
        let command = Command::New(Box::new(NewQueueRequest {
            recipient_key: self.key.public_key()?,
            dh_key: self.dh_key.public,
            password: self.password.clone(),
            subscribe: self.subscribe,
            queue: self.queue.clone(),
            notifier: self.notifier.as_ref().map(NotifierCredentials::public).transpose()?,
        }));
        Ok(Request::plain(command).authorized_by(&self.key).with_correlation_id(self.correlation_id.clone()))
    }

    /// The queue that the answer to [`NewQueue::request`] says was created.
    pub fn created(self, answer: Response) -> Result<Queue, ClientError> {
        match answer {
            Response::Ids(ids) => {
                let mut queue = Queue::new(*ids, self.key, &self.dh_key.secret)?;
                let notifier = self.notifier.zip(queue.ids.notifier.clone());
                let notifier = notifier.map(|(credentials, (id, relay_key))| credentials.notifier(id, &relay_key));
                queue.notifier = notifier.transpose()?;
                Ok(queue)
            }
            other => Err(ClientError::unexpected("IDS", other)),
        }
    }

    /// Creates the queue.
    pub async fn create(self, client: &mut Client) -> Result<Queue, ClientError> {
        let answer = client.request(self.request()?).await?;
        self.created(answer)
    }
}

/// A queue, as its recipient knows it.
#[derive(Clone)]
pub struct Queue {
    /// What the relay answered.
    pub ids: QueueIds,
    /// The recipient's key.
    pub key: PrivateAuthKey,
    /// The notifier that the queue was created with, if it was and the relay knows of it (17+).
    pub notifier: Option<Notifier>,
    delivery_secret: SharedSecret,
}

impl Queue {
    /// A queue with these IDs; `dh_key` is the recipient's half of the delivery secret.
    pub fn new(ids: QueueIds, key: PrivateAuthKey, dh_key: &SecretDhKey) -> Result<Self, ClientError> {
        let delivery_secret = dh_key.agree(&ids.dh_key)?;
        Ok(Queue { ids, key, notifier: None, delivery_secret })
    }

    /// The queue for its recipient.
    pub fn id(&self) -> &EntityId {
        &self.ids.recipient_id
    }

    /// A sender of this queue, without a key.
    pub fn sender(&self) -> Sender {
        Sender::unsecured(self.ids.sender_id.clone())
    }

    /// A command of the recipient.
    pub fn request(&self, command: Command) -> Request {
        Request::new(self.id().clone(), command).authorized_by(&self.key)
    }

    /// Subscribes (`SUB`). A message that waits comes as an event.
    pub async fn subscribe(&self, client: &mut Client) -> Result<(), ClientError> {
        match client.request(self.request(Command::Sub)).await? {
            Response::Ok | Response::Sok(_) => Ok(()),
            other => Err(ClientError::unexpected("OK or SOK", other)),
        }
    }

    /// Secures the queue with the sender's key (`KEY`).
    pub async fn secure(&self, client: &mut Client, sender_key: &PublicAuthKey) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Key(sender_key.clone()))).await?)
    }

    /// Lets messages be notified (`NKEY`); a notifier that was there before is no more.
    pub async fn enable_notifications(
        &self,
        client: &mut Client,
        credentials: NotifierCredentials,
    ) -> Result<Notifier, ClientError> {
        let NewNotifier { key, dh_key } = credentials.public()?;
        match client.request(self.request(Command::Nkey(key, dh_key))).await? {
            Response::Nid(id, relay_key) => credentials.notifier(id, &relay_key),
            other => Err(ClientError::unexpected("NID", other)),
        }
    }

    /// Lets messages be notified no more (`NDEL`).
    pub async fn disable_notifications(&self, client: &mut Client) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Ndel)).await?)
    }

    /// The next message that is delivered to the subscription.
    pub async fn message(&self, client: &mut Client) -> Result<ReceivedMessage, ClientError> {
        match client.event_about(self.id()).await?.response {
            Response::Msg { id, body } => self.open(&id, &body),
            other => Err(ClientError::unexpected("MSG", other)),
        }
    }

    /// The next event about this queue.
    pub async fn event(&self, client: &mut Client) -> Result<Event, ClientError> {
        client.event_about(self.id()).await
    }

    /// Acknowledges a message (`ACK`). Answers the next one, if there is one.
    pub async fn acknowledge(&self, client: &mut Client, id: &[u8]) -> Result<Option<ReceivedMessage>, ClientError> {
        let command = Command::Ack(Bytes::copy_from_slice(id));
        self.maybe_message(client.request(self.request(command)).await?)
    }

    /// Gets a message without a subscription (`GET`), if there is one.
    pub async fn get(&self, client: &mut Client) -> Result<Option<ReceivedMessage>, ClientError> {
        self.maybe_message(client.request(self.request(Command::Get)).await?)
    }

    /// Suspends the queue (`OFF`).
    pub async fn suspend(&self, client: &mut Client) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Off)).await?)
    }

    /// Deletes the queue (`DEL`).
    pub async fn delete(&self, client: &mut Client) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Del)).await?)
    }

    /// The queue's state (`QUE`).
    pub async fn info(&self, client: &mut Client) -> Result<QueueInfo, ClientError> {
        match client.request(self.request(Command::Que)).await? {
            Response::Info(info) => Ok(info),
            other => Err(ClientError::unexpected("INFO", other)),
        }
    }

    /// Replaces the recipient's keys (`RKEY`, 15+). Commands go on with the old key until `key` is set.
    pub async fn replace_keys(&self, client: &mut Client, keys: Vec<PublicAuthKey>) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Rkey(keys))).await?)
    }

    /// Sets the link's data (`LSET`, 15+).
    pub async fn set_link(&self, client: &mut Client, link_id: EntityId, data: LinkData) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Lset(link_id, data))).await?)
    }

    /// Deletes the link's data (`LDEL`, 15+).
    pub async fn delete_link(&self, client: &mut Client) -> Result<(), ClientError> {
        expect_ok(client.request(self.request(Command::Ldel)).await?)
    }

    fn maybe_message(&self, answer: Response) -> Result<Option<ReceivedMessage>, ClientError> {
        match answer {
            Response::Ok => Ok(None),
            Response::Msg { id, body } => self.open(&id, &body).map(Some),
            other => Err(ClientError::unexpected("MSG or OK", other)),
        }
    }

    /// Decrypts a message of this queue, from the two fields of `MSG`.
    pub fn open(&self, id: &[u8], body: &[u8]) -> Result<ReceivedMessage, ClientError> {
        ReceivedMessage::open(&self.delivery_secret, id, body)
    }
}
