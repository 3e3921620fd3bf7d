//! One queue under load: what was asked of the server and what it answered.

use smp_server::client::{Client, ClientError, NewQueue, Queue, Request, Sender};
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::crypto::{PrivateAuthKey, SigningKey};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::ids::MessageId;
use smp_server::protocol::response::Response;

use super::ledger::Ledger;
use super::load::{Connections, Load, ask};

/// Whether a queue exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// `NEW` was answered.
    Alive,
    /// `DEL` was asked and not answered, or refused by a store that may have done it.
    Deleting,
    /// `DEL` was answered.
    Deleted,
}

/// See the module.
pub struct LoadQueue {
    pub queue: Queue,
    pub life: Life,
    pub ledger: Ledger,
    /// The message that was delivered and is not acknowledged.
    pub delivered: Option<MessageId>,
    sender: Sender,
    secured: bool,
}

impl LoadQueue {
    /// What [`LoadQueue::new`] is made from when `NEW` is answered.
    pub fn to_be_created() -> NewQueue {
        NewQueue::messaging()
    }

    pub fn new(queue: Queue) -> Self {
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let sender = Sender::with_key(queue.ids.sender_id.clone(), key);
        LoadQueue { queue, life: Life::Alive, ledger: Ledger::default(), delivered: None, sender, secured: false }
    }

    /// Whether `SKEY` was answered, so that its key must be known.
    pub fn is_secured(&self) -> bool {
        self.secured
    }

    /// Lets the sender secure the queue.
    pub async fn secure(&mut self, client: &mut Client, load: &Load) -> Result<(), ClientError> {
        let key = self.sender.key.as_ref().expect("a key").public_key().expect("a public key");
        let secured = &mut self.secured;
        let note = |_, answer: Response| *secured |= load.count(&answer);
        ask(client, &[self.sender.request(Command::Skey(key))], note).await
    }

    /// `SEND` of message `number` with `size` more bytes.
    pub fn message(&self, number: u64, size: usize) -> Request {
        let body = [format!("{number} {size} ").into_bytes(), vec![b'.'; size]].concat();
        self.sender.message(MessageFlags::default(), &body)
    }

    /// `MSG` came.
    pub fn deliver(&mut self, response: Response) {
        if self.life != Life::Alive {
            // On its way when the queue was deleted.
            return;
        }
        let Response::Msg { id, body } = response else { panic!("{response:?} instead of MSG") };
        assert!(self.delivered.is_none(), "a second message is delivered before the first is acknowledged");
        let message = self.queue.open(&id, &body).expect("a message");
        self.ledger.received(number(message.body().expect("a message of the sender")));
        self.delivered = Some(message.id);
    }

    /// `ACK` of the message that was delivered.
    pub fn acknowledgement(&mut self) -> Request {
        let id = self.delivered.expect("a message was delivered");
        self.ledger.acknowledge();
        self.queue.request(Command::Ack(id.into()))
    }

    /// `ACK` was answered, perhaps with the next message.
    pub fn acknowledged(&mut self, answer: Response) {
        self.ledger.acknowledged();
        self.delivered = None;
        if answer != Response::Ok {
            self.deliver(answer);
        }
    }

    /// Deletes the queue.
    pub async fn delete(&mut self, client: &mut Client, load: &Load) -> Result<(), ClientError> {
        self.life = Life::Deleting;
        let life = &mut self.life;
        ask(client, &[self.queue.request(Command::Del)], |_, answer| {
            *life = match load.count(&answer) {
                true => Life::Deleted,
                false if load.is_in_doubt() => Life::Deleting,
                false => Life::Alive,
            };
        })
        .await
    }

    /// On a fresh connection: verifies that the server has what it answered, and receives all messages. Whether the queue
    /// is there. Afterwards nothing is uncertain any more.
    pub async fn verify(&mut self, connections: &mut Connections) -> bool {
        self.delivered = None;
        let subscribed = self.queue.subscribe(&mut connections.recipient).await;
        match subscribed {
            Err(ClientError::Refused(ErrorType::Auth)) => {
                assert_ne!(self.life, Life::Alive, "a queue that was answered is lost");
                let sent = self.sender.send(&mut connections.sender, b"to nobody").await;
                assert!(matches!(sent, Err(ClientError::Refused(ErrorType::Auth))), "{sent:?} from a deleted queue");
                return false;
            }
            subscribed => subscribed.expect("SUB is answered"),
        }
        assert_ne!(self.life, Life::Deleted, "a deleted queue is there again");
        self.life = Life::Alive;
        self.verify_messages(&mut connections.recipient).await;
        if !self.secured {
            self.sender.secure(&mut connections.sender).await.expect("a queue may be secured again with the same key");
            self.secured = true;
        }
        true
    }

    async fn verify_messages(&mut self, recipient: &mut Client) {
        let size = self.queue.info(recipient).await.expect("QUE is answered").size;
        for _ in 0..size {
            if self.delivered.is_none() {
                let event = self.queue.event(recipient).await.expect("a message that waits is delivered");
                self.deliver(event.response);
            }
            let request = self.acknowledgement();
            let answer = recipient.request(request).await.expect("ACK is answered");
            self.acknowledged(answer);
        }
        assert_eq!(self.delivered, None, "more messages than the server said");
        self.ledger.emptied();
    }
}

/// The number of a message whose body is whole.
fn number(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("text");
    let [number, size, filler] = text.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("not our body") };
    assert_eq!(size.parse(), Ok(filler.len()), "the body is cut");
    assert!(filler.bytes().all(|byte| byte == b'.'), "the body is changed");
    number.parse().expect("a number")
}
