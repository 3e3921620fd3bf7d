//! One connection: a session of a service, or an ordinary client. It remembers what it was told, in the order in which it
//! was told.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use smp_server::client::{Client, NewQueue, Request};
use smp_server::protocol::command::{Command, IdsHash, ServiceQueues};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::ids::{CorrelationId, EntityId, MessageId};
use smp_server::protocol::response::Response;

use super::queues::Queues;
use crate::support::random::Random;
use crate::support::until;

/// Queues at the same time, about.
const QUEUES: usize = 30;

/// How long a party that does nothing listens.
const LISTEN: Duration = Duration::from_millis(10);

const NOTHING: ServiceQueues = ServiceQueues { count: 0, hash: IdsHash([0; 16]) };

/// Whose connection it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    Client,
    Service(usize),
}

/// What was asked and is not answered.
enum Asked {
    New(Box<NewQueue>),
    Sub(usize),
    Del(usize),
    Ack(usize, u64),
    Subs,
    Ping,
}

/// See the module.
pub struct Party {
    at: usize,
    pub who: Who,
    client: Client,
    queues: Rc<Queues>,
    random: Random,
    asked: HashMap<CorrelationId, Asked>,
    /// Queues that an ordinary client is subscribed to, as far as it was told.
    held: BTreeSet<usize>,
    /// Queues that it was told to have lost since it has asked for them, or become its service's subscribed session.
    lost: BTreeSet<usize>,
    /// When a session has asked to become the one that is its service's; none when another has.
    current_since: Option<u64>,
    /// When it has asked for a subscription that is not answered.
    asking_since: Option<u64>,
    /// When it has asked for a queue that it was given.
    asked_at: HashMap<usize, u64>,
    /// The last message of each queue that came since.
    delivered: HashMap<usize, u64>,
    /// Messages that it has to acknowledge.
    unacknowledged: VecDeque<(usize, u64, MessageId)>,
    subscribed: Option<ServiceQueues>,
    ended: Option<ServiceQueues>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {} ({:?})", self.at, self.who)
    }
}

impl Party {
    pub fn new(at: usize, who: Who, client: Client, queues: Rc<Queues>, random: Random) -> Self {
        Party {
            at,
            who,
            client,
            queues,
            random,
            asked: HashMap::new(),
            held: BTreeSet::new(),
            lost: BTreeSet::new(),
            current_since: None,
            asking_since: None,
            asked_at: HashMap::new(),
            delivered: HashMap::new(),
            unacknowledged: VecDeque::new(),
            subscribed: None,
            ended: None,
        }
    }

    /// Queues that an ordinary client believes to be subscribed to.
    pub fn held(&self) -> impl Iterator<Item = usize> {
        self.held.iter().copied()
    }

    pub fn is_current_session_of(&self, service: usize) -> bool {
        self.who == Who::Service(service) && self.current_since.is_some()
    }

    /// Does something at random, and acknowledges most of what came.
    pub async fn step(&mut self) {
        let alive = self.queues.alive();
        let chosen = alive.get(self.random.index(alive.len().max(1))).copied().unwrap_or_default();
        match self.random.below(100) {
            _ if alive.is_empty() => self.create().await,
            0..15 if alive.len() < QUEUES => self.create().await,
            15..55 => self.subscribe(chosen).await,
            55..60 if alive.len() > QUEUES / 2 => self.delete(chosen).await,
            60..65 if self.who != Who::Client => drop(self.subscribe_service().await),
            _ => self.listen().await,
        }
        if self.random.below(4) > 0 {
            self.acknowledge_all().await;
        }
    }

    async fn create(&mut self) {
        let new = NewQueue::messaging();
        let request = new.request().expect("NEW");
        self.asking_since = Some(self.queues.tick());
        self.ask(Asked::New(Box::new(new)), request).await;
    }

    async fn subscribe(&mut self, queue: usize) {
        self.asking_since = Some(self.queues.tick());
        self.ask(Asked::Sub(queue), self.queues.get(queue).request(Command::Sub)).await;
    }

    async fn delete(&mut self, queue: usize) {
        self.queues.delete(queue);
        self.ask(Asked::Del(queue), self.queues.get(queue).request(Command::Del)).await;
    }

    /// `SUBS`; what the server says that the service has.
    pub async fn subscribe_service(&mut self) -> ServiceQueues {
        self.asking_since = Some(self.queues.tick());
        let request = self.client.service().expect("a service").subscription(NOTHING);
        self.ask(Asked::Subs, request).await;
        self.ended = None;
        self.subscribed.take().expect("SOKS")
    }

    /// That it is told, or was, that another session has taken over what it had.
    pub async fn ended_with(&mut self, queues: ServiceQueues) {
        until("ENDS", async || {
            self.listen().await;
            self.ended.is_some()
        })
        .await;
        assert_eq!(self.ended.take(), Some(queues), "{self}");
    }

    /// Takes and acknowledges all that the server has sent by now.
    pub async fn take_all(&mut self) {
        self.ask(Asked::Ping, Request::plain(Command::Ping)).await;
        self.acknowledge_all().await;
        self.listen().await;
    }

    async fn acknowledge_all(&mut self) {
        while let Some((queue, number, id)) = self.unacknowledged.pop_front() {
            let request = self.queues.get(queue).request(Command::Ack(id.into()));
            self.ask(Asked::Ack(queue, number), request).await;
        }
    }

    /// Takes what comes in a short time.
    async fn listen(&mut self) {
        if let Ok(received) = tokio::time::timeout(LISTEN, self.client.receive()).await {
            self.take(received.expect("a block"));
        }
    }

    /// Asks, and takes everything up to the answer, in its order.
    async fn ask(&mut self, asked: Asked, request: Request) {
        let id = self.client.submit(&[request]).await.expect("sent").remove(0);
        assert!(self.client.waiting_event().is_none(), "what came while a small command was written is out of order");
        self.asked.insert(id.clone(), asked);
        while self.asked.contains_key(&id) {
            let received = self.client.receive().await.expect("a block");
            self.take(received);
        }
    }

    fn take(&mut self, received: Vec<smp_server::protocol::transmission::ServerTransmission>) {
        for transmission in received {
            let response = transmission.response.expect("a response");
            match self.asked.remove(&transmission.correlation_id) {
                Some(asked) => self.answered(asked, response),
                None => {
                    assert_eq!(transmission.correlation_id, CorrelationId::NONE);
                    self.told(&transmission.entity_id, response);
                }
            }
        }
    }

    fn answered(&mut self, asked: Asked, response: Response) {
        match (asked, response) {
            (Asked::New(new), response) => {
                let queue = new.created(response).expect("IDS");
                assert_eq!(queue.ids.service_id.is_some(), self.who != Who::Client);
                let queue = self.queues.add(queue);
                self.subscribed_to(queue);
            }
            (Asked::Sub(queue), Response::Sok(service)) => {
                assert_eq!(service.is_some(), self.who != Who::Client);
                self.subscribed_to(queue);
            }
            (Asked::Del(queue), Response::Ok) => {
                self.queues.deleted(queue);
                self.lost(queue);
            }
            (Asked::Ack(queue, number), Response::Ok) => self.queues.acknowledged(queue, number),
            (Asked::Ack(queue, number), Response::Msg { id, body }) => {
                self.queues.acknowledged(queue, number);
                self.received(queue, &id, &body);
            }
            // Another has it now; there it comes again.
            (Asked::Ack(..), Response::Err(ErrorType::NoMsg)) => {}
            (Asked::Subs, Response::Soks(queues)) => {
                self.subscribed = Some(queues);
                self.becomes_current();
            }
            (Asked::Ping, Response::Pong) => {}
            (Asked::Sub(queue) | Asked::Del(queue) | Asked::Ack(queue, _), Response::Err(ErrorType::Auth)) => {
                assert!(self.queues.is_being_deleted(queue), "queue {queue} is gone");
                self.asking_since = None;
            }
            (_, response) => panic!("{self}: {response:?}"),
        }
    }

    fn told(&mut self, entity: &EntityId, response: Response) {
        let queue = self.queues.position(entity);
        match (queue, response) {
            (Some(queue), Response::Msg { id, body }) => self.received(queue, &id, &body),
            (Some(queue), Response::End) => self.lost(queue),
            (Some(queue), Response::Deld) => {
                assert!(self.queues.is_being_deleted(queue));
                self.lost(queue);
            }
            (None, Response::Ends(queues)) => {
                assert!(self.current_since.is_some(), "{self} is ended again");
                self.current_since = None;
                self.delivered.clear();
                self.asked_at.clear();
                self.lost.clear();
                self.ended = Some(queues);
            }
            (None, Response::Alls) => {}
            (queue, response) => panic!("{self}: {response:?} about queue {queue:?}"),
        }
    }

    /// `SOK` or `IDS`.
    fn subscribed_to(&mut self, queue: usize) {
        self.asked_at.extend(self.asking_since.map(|since| (queue, since)));
        self.delivered.remove(&queue);
        self.lost.remove(&queue);
        match self.who {
            Who::Client => drop(self.held.insert(queue)),
            Who::Service(_) => self.becomes_current(),
        }
        self.asking_since = None;
    }

    fn becomes_current(&mut self) {
        self.current_since = self.current_since.or(self.asking_since.take());
    }

    /// `END` or `DELD`.
    fn lost(&mut self, queue: usize) {
        self.held.remove(&queue);
        self.lost.insert(queue);
        self.delivered.remove(&queue);
    }

    fn received(&mut self, queue: usize, id: &Bytes, body: &Bytes) {
        let message = self.queues.get(queue).open(id, body).expect("a message");
        let number = u64::from_be_bytes(message.body().expect("a body").try_into().expect("a number"));
        let current_since = self.current_since.or(self.asking_since);
        let subscribed = match self.who {
            Who::Client => self.held.contains(&queue),
            Who::Service(_) => current_since.is_some() && !self.lost.contains(&queue),
        };
        assert!(subscribed, "{self}: message {number} of queue {queue} comes to who is not subscribed");
        let last = self.delivered.insert(queue, number);
        assert!(last.is_none_or(|last| last < number), "{self}: message {number} of queue {queue} after {last:?}");
        let since = match self.who {
            Who::Client => self.asked_at.get(&queue).copied(),
            Who::Service(_) => self.asked_at.get(&queue).copied().max(current_since),
        };
        self.queues.received(queue, number, self.at, since.unwrap_or_default());
        self.unacknowledged.push_back((queue, number, message.id));
    }
}
