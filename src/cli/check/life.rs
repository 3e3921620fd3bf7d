//! The life of queues: created, secured, sent to, read, suspended, deleted; and links, where the version has them.

use bytes::Bytes;

use super::report::{CheckError, Failure, Report, refused, same};
use crate::client::{Client, ClientError, NewQueue, Queue, ReceivedMessage, Sender, open_link, read_link};
use crate::protocol::Version;
use crate::protocol::command::{Command, LinkData};
use crate::protocol::crypto::{PrivateAuthKey, SecretDhKey, SigningKey, random_queue_id};
use crate::protocol::ids::EntityId;
use crate::protocol::response::Response;

/// A message whose body is not the shortest.
const BODY: &[u8] = b"smp-server check";

/// Two clients and what they do.
pub(super) struct Life<'a> {
    pub(super) report: Report<'a>,
    pub(super) recipient: Client,
    pub(super) sender: Client,
    pub(super) password: Option<Bytes>,
}

impl Life<'_> {
    /// All steps that the version has.
    pub(super) async fn check(mut self) -> Result<(), CheckError> {
        self.report.step("PING", lift(self.recipient.ping())).await?;
        let queue = self.subscribed_queue().await?;
        let sender = self.secured_sender(&queue).await?;
        self.messages(&queue, &sender).await?;
        self.batch(&queue, &sender).await?;
        self.takeover(&queue).await?;
        self.end(&queue, &sender).await?;
        self.get().await?;
        if self.recipient.version() >= Version::SHORT_LINKS {
            self.invitation().await?;
            self.contact_address().await?;
        }
        Ok(())
    }

    /// Keys of current clients: authenticators where the version has them.
    fn new_queue(&self) -> NewQueue {
        let queue = NewQueue::messaging().with_password(self.password.clone());
        match self.key() {
            Some(key) => queue.with_key(key),
            None => queue,
        }
    }

    fn key(&self) -> Option<PrivateAuthKey> {
        let has_authenticators = self.recipient.version() >= Version::AUTHENTICATED_COMMANDS;
        has_authenticators.then(|| PrivateAuthKey::Dh(SecretDhKey::generate()))
    }

    async fn subscribed_queue(&mut self) -> Result<Queue, CheckError> {
        let new = self.new_queue().only_created();
        let queue = self.report.step("NEW", lift(new.create(&mut self.recipient))).await?;
        self.report.step("SUB", lift(queue.subscribe(&mut self.recipient))).await?;
        Ok(queue)
    }

    /// The first message needs no key; then the queue is secured, by the sender where the version allows it.
    async fn secured_sender(&mut self, queue: &Queue) -> Result<Sender, CheckError> {
        let Life { report, recipient, sender: client, .. } = self;
        report.step("SEND without key", lift(queue.sender().send(client, b"hello"))).await?;
        report.step("MSG and ACK", receive(recipient, queue, b"hello")).await?;
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let sender = Sender::with_key(queue.ids.sender_id.clone(), key.clone());
        if client.version() >= Version::SENDER_SECURES {
            report.step("SKEY", lift(sender.secure(client))).await?;
        } else {
            let secured = async { Ok(queue.secure(recipient, &key.public_key().map_err(ClientError::from)?).await?) };
            report.step("KEY", secured).await?;
        }
        report.step("SEND without key is refused", async { refused(queue.sender().send(client, b"no").await) }).await?;
        Ok(sender)
    }

    async fn messages(&mut self, queue: &Queue, sender: &Sender) -> Result<(), CheckError> {
        let Life { report, recipient, sender: client, .. } = self;
        report.step("SEND", lift(sender.send(client, BODY))).await?;
        let message = report.step("MSG", lift(queue.message(recipient))).await?;
        let info = async {
            let info = queue.info(recipient).await?;
            same("1 message in a secured queue", &(1, true), &(info.size, info.secured))
        };
        report.step("QUE", info).await?;
        report.step("ACK", acknowledge(recipient, queue, &message, BODY)).await
    }

    /// Several messages in one block are stored and delivered one by one, in order.
    async fn batch(&mut self, queue: &Queue, sender: &Sender) -> Result<(), CheckError> {
        let Life { report, recipient, sender: client, .. } = self;
        let bodies: [&[u8]; 3] = [b"one", b"two", b"three"];
        let requests = bodies.map(|body| sender.message(Default::default(), body));
        let sent = async {
            for answer in client.request_all(&requests).await? {
                same("OK to each", &Response::Ok, &answer)?;
            }
            Ok(())
        };
        report.step("SEND of three in a block", sent).await?;
        let received = async {
            let mut next = Some(queue.message(recipient).await?);
            let mut received = Vec::new();
            while let Some(message) = next {
                next = queue.acknowledge(recipient, &message.id.0).await?;
                received.extend(message.body().map(<[u8]>::to_vec));
            }
            // The order of commands in one block is not the same in all servers.
            received.sort();
            same("each of three messages once", &vec![b"one".to_vec(), b"three".to_vec(), b"two".to_vec()], &received)
        };
        report.step("MSG and ACK of three", received).await
    }

    /// A subscription goes to who asks last, and back.
    async fn takeover(&mut self, queue: &Queue) -> Result<(), CheckError> {
        let Life { report, recipient, sender: other, .. } = self;
        report.step("SUB from another connection", lift(queue.subscribe(other))).await?;
        report.step("END", ended(recipient, queue)).await?;
        report.step("SUB again", lift(queue.subscribe(recipient))).await?;
        report.step("END of the other", ended(other, queue)).await
    }

    async fn end(&mut self, queue: &Queue, sender: &Sender) -> Result<(), CheckError> {
        let Life { report, recipient, sender: client, .. } = self;
        report.step("OFF", lift(queue.suspend(recipient))).await?;
        report.step("SEND after OFF is refused", async { refused(sender.send(client, BODY).await) }).await?;
        report.step("DEL", lift(queue.delete(recipient))).await?;
        report.step("SUB after DEL is refused", async { refused(queue.subscribe(recipient).await) }).await
    }

    /// Reading without a subscription.
    async fn get(&mut self) -> Result<(), CheckError> {
        let new = self.new_queue().only_created();
        let Life { report, recipient, sender: client, .. } = self;
        let queue = report.step("NEW without subscribing", lift(new.create(recipient))).await?;
        report.step("GET of nothing", async { nothing(queue.get(recipient).await?) }).await?;
        report.step("SEND to it", lift(queue.sender().send(client, BODY))).await?;
        let got = async { queue.get(recipient).await?.ok_or_else(|| Failure::wrong("MSG", "OK")) };
        let message = report.step("GET", got).await?;
        report.step("ACK after GET", acknowledge(recipient, &queue, &message, BODY)).await?;
        report.step("DEL of it", lift(queue.delete(recipient))).await
    }

    /// A link to a queue with one sender, who reads it and secures the queue in one step.
    async fn invitation(&mut self) -> Result<(), CheckError> {
        let data = link_data(b"user data");
        let new = self.new_queue().with_invitation(data.clone());
        let Life { report, recipient, sender: client, .. } = self;
        let queue = report.step("NEW with invitation", lift(new.create(recipient))).await?;
        let linked = async { queue.ids.link_id.clone().ok_or_else(|| Failure::wrong("a link ID", "none")) };
        let link_id = report.step("link ID", linked).await?;
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let opened =
            async { same("the link's data", &linked_data(&queue, &data), &open_link(client, &link_id, &key).await?) };
        report.step("LKEY", opened).await?;
        let sender = Sender::with_key(queue.ids.sender_id.clone(), key);
        report.step("SEND with that key", lift(sender.send(client, BODY))).await?;
        report.step("MSG and ACK by link", receive(recipient, &queue, BODY)).await?;
        report.step("DEL with link", lift(queue.delete(recipient))).await
    }

    /// A link to an address that anyone may read, and its owner change.
    async fn contact_address(&mut self) -> Result<(), CheckError> {
        let link_id = EntityId::from(random_queue_id());
        let (first, second) = (link_data(b"first"), link_data(b"second"));
        let new = self.new_queue().with_contact_link(link_id.clone(), first.clone());
        let key = self.key();
        let Life { report, recipient, sender: client, .. } = self;
        let mut queue = report.step("NEW with contact address", lift(new.create(recipient))).await?;
        let read = async { same("the link's data", &linked_data(&queue, &first), &read_link(client, &link_id).await?) };
        report.step("LGET", read).await?;
        report.step("LSET", lift(queue.set_link(recipient, link_id.clone(), second.clone()))).await?;
        let read = async { same("the new data", &linked_data(&queue, &second), &read_link(client, &link_id).await?) };
        report.step("LGET after LSET", read).await?;
        report.step("LDEL", lift(queue.delete_link(recipient))).await?;
        report.step("LGET after LDEL is refused", async { refused(read_link(client, &link_id).await) }).await?;
        if let Some(key) = key {
            let keys = vec![key.public_key().map_err(|error| wrong_key("RKEY", error))?];
            report.step("RKEY", lift(queue.replace_keys(recipient, keys))).await?;
            let old = queue.request(Command::Que);
            queue.key = key;
            report.step("QUE with the new key", lift(queue.info(recipient))).await?;
            let with_old = async {
                match recipient.request(old).await? {
                    Response::Err(error) => refused::<()>(Err(ClientError::Refused(error))),
                    other => Err(Failure::wrong("ERR AUTH", other.name())),
                }
            };
            report.step("QUE with the old key is refused", with_old).await?;
        }
        report.step("DEL of the address", lift(queue.delete(recipient))).await
    }
}

fn wrong_key(step: &'static str, error: impl std::fmt::Display) -> CheckError {
    CheckError::Step { step, reason: error.to_string() }
}

/// A step that is one action of a client.
async fn lift<T>(action: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
    Ok(action.await?)
}

fn link_data(user: &'static [u8]) -> LinkData {
    LinkData { fixed: Bytes::from_static(b"fixed data"), user: Bytes::from_static(user) }
}

/// What reading the link of `queue` should answer.
fn linked_data(queue: &Queue, data: &LinkData) -> (EntityId, LinkData) {
    (queue.ids.sender_id.clone(), data.clone())
}

fn nothing(message: Option<ReceivedMessage>) -> Result<(), Failure> {
    match message {
        None => Ok(()),
        Some(_) => Err(Failure::wrong("OK", "MSG")),
    }
}

/// Waits for the next message, which must be `body`, and acknowledges it; no other may wait.
async fn receive(client: &mut Client, queue: &Queue, body: &[u8]) -> Result<(), Failure> {
    let message = queue.message(client).await?;
    acknowledge(client, queue, &message, body).await
}

async fn acknowledge(
    client: &mut Client,
    queue: &Queue,
    message: &ReceivedMessage,
    body: &[u8],
) -> Result<(), Failure> {
    same("the body that was sent", &Some(body), &message.body())?;
    nothing(queue.acknowledge(client, &message.id.0).await?)
}

async fn ended(client: &mut Client, queue: &Queue) -> Result<(), Failure> {
    match queue.event(client).await?.response {
        Response::End => Ok(()),
        other => Err(Failure::wrong("END", other.name())),
    }
}
