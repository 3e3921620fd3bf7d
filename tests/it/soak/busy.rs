//! Busy clients, in pairs: each sends to the queues of the other, and receives and acknowledges what comes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use smp_server::client::{Client, ConnectOptions, Event, NewQueue, Queue, Request, Sender};
use smp_server::protocol::address::ServerAddress;
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::crypto::{PrivateAuthKey, SigningKey};
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

/// Messages of a queue that are sent and not received, at most.
const WINDOW: u64 = 4;

/// Bytes of a body besides its number.
const FILLER: usize = 200;

/// How long a client that has nothing to do waits for something to come before it looks again.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long what was sent may take to arrive when no more is sent.
const PATIENCE: Duration = Duration::from_secs(60);

/// The queues of a client, as it and its peer see them.
struct Inbox {
    lanes: Vec<Lane>,
    /// The peer sends no more.
    closed: Cell<bool>,
}

/// One queue.
struct Lane {
    queue: Queue,
    sender: Sender,
    sent: Cell<u64>,
    received: Cell<u64>,
}

impl Inbox {
    /// Creates secured queues in one block of each command.
    async fn create(client: &mut Client, queues: usize) -> Self {
        let new: Vec<_> = (0..queues).map(|_| NewQueue::messaging()).collect();
        let requests: Vec<_> = new.iter().map(|new| new.request().expect("NEW")).collect();
        let answers = client.request_all(&requests).await.expect("answers");
        let lanes: Vec<_> = new.into_iter().zip(answers).map(|(new, answer)| Lane::new(new, answer)).collect();
        let requests: Vec<_> = lanes.iter().map(Lane::secure).collect();
        for answer in client.request_all(&requests).await.expect("answers") {
            assert_eq!(answer, Response::Ok, "SKEY");
        }
        Inbox { lanes, closed: Cell::new(false) }
    }

    fn position(&self, recipient_id: &EntityId) -> usize {
        self.lanes.iter().position(|lane| lane.queue.id() == recipient_id).expect("a queue of this client")
    }

    fn is_done(&self) -> bool {
        self.closed.get() && self.lanes.iter().all(|lane| lane.received == lane.sent)
    }

    fn received(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.received.get()).sum()
    }
}

impl Lane {
    fn new(new: NewQueue, answer: Response) -> Self {
        let queue = new.created(answer).expect("IDS");
        let key = PrivateAuthKey::Signing(SigningKey::generate_ed25519());
        let sender = Sender::with_key(queue.ids.sender_id.clone(), key);
        Lane { queue, sender, sent: Cell::new(0), received: Cell::new(0) }
    }

    fn secure(&self) -> Request {
        let key = self.sender.key.as_ref().expect("a key").public_key().expect("a public key");
        self.sender.request(Command::Skey(key))
    }

    fn has_room(&self) -> bool {
        self.sent.get() - self.received.get() < WINDOW
    }

    /// `SEND` of the next message.
    fn send(&self) -> Request {
        let number = self.sent.replace(self.sent.get() + 1);
        let body = [&number.to_be_bytes()[..], &[b'.'; FILLER]].concat();
        self.sender.message(MessageFlags::default(), &body)
    }

    /// The message has to be the next one, and whole. Answers its `ACK`.
    fn receive(&self, response: &Response) -> Request {
        let Response::Msg { id, body } = response else { panic!("{response:?} instead of MSG") };
        let message = self.queue.open(id, body).expect("a message");
        let (number, filler) = message.body().expect("a body").split_at(size_of::<u64>());
        let expected = self.received.replace(self.received.get() + 1);
        assert_eq!(number, expected.to_be_bytes(), "every message comes once and in order");
        assert_eq!(filler, [b'.'; FILLER]);
        self.queue.request(Command::Ack(id.clone()))
    }
}

/// A client at work.
struct Busy {
    client: Client,
    inbox: Rc<Inbox>,
    peer: Rc<Inbox>,
    /// `ACK`s to be sent, with their queues.
    acknowledgements: Vec<(usize, Request)>,
    /// The queue of the peer to which the next message goes.
    next: usize,
}

impl Busy {
    /// Sends until `end`, and receives until everything has arrived.
    async fn work(mut self, end: Instant) {
        loop {
            while let Some(event) = self.client.waiting_event() {
                self.receive(&event);
            }
            let send = (Instant::now() < end).then(|| self.next_message());
            self.peer.closed.set(send.is_none());
            let acknowledgements = std::mem::take(&mut self.acknowledgements);
            let (lanes, mut requests): (Vec<_>, Vec<_>) = acknowledgements.into_iter().unzip();
            requests.extend(send.flatten());
            if !requests.is_empty() {
                self.ask(&lanes, &requests).await;
            } else if self.inbox.is_done() {
                return;
            } else {
                assert!(Instant::now() < end + PATIENCE, "messages are lost or late");
                self.client.is_silent_for(LOOK_INTERVAL).await.expect("connected");
            }
        }
    }

    /// The first answers are those to `ACK`s of these queues, and may be the queues' next messages.
    async fn ask(&mut self, lanes: &[usize], requests: &[Request]) {
        let answers = self.client.request_all(requests).await.expect("answers");
        for (at, answer) in answers.into_iter().enumerate() {
            match lanes.get(at) {
                Some(lane) if answer != Response::Ok => self.receive_in(*lane, &answer),
                _ => assert_eq!(answer, Response::Ok),
            }
        }
    }

    /// To the next queue that has room.
    fn next_message(&mut self) -> Option<Request> {
        let lanes = &self.peer.lanes;
        let position =
            (0..lanes.len()).map(|step| (self.next + step) % lanes.len()).find(|at| lanes[*at].has_room())?;
        self.next = (position + 1) % lanes.len();
        Some(lanes[position].send())
    }

    fn receive(&mut self, event: &Event) {
        self.receive_in(self.inbox.position(&event.entity_id), &event.response);
    }

    fn receive_in(&mut self, lane: usize, response: &Response) {
        self.acknowledgements.push((lane, self.inbox.lanes[lane].receive(response)));
    }
}

/// Connected clients with their queues.
pub struct BusyClients(Vec<(Client, Rc<Inbox>)>);

impl BusyClients {
    /// An even number of clients, or one that sends to itself, with so many queues each.
    pub async fn connect(address: &ServerAddress, clients: usize, queues: usize) -> Self {
        let mut connected = Vec::with_capacity(clients);
        for _ in 0..clients {
            let mut client = Client::connect(address, &ConnectOptions::default()).await.expect("connected");
            let inbox = Inbox::create(&mut client, queues).await;
            connected.push((client, Rc::new(inbox)));
        }
        BusyClients(connected)
    }

    /// All send for `time`. Answers how many messages were received; each has come once and in order.
    pub async fn work(self, time: Duration) -> u64 {
        let inboxes: Vec<_> = self.0.iter().map(|(_, inbox)| Rc::clone(inbox)).collect();
        let end = Instant::now() + time;
        let clients = self.0.into_iter().enumerate().map(|(at, (client, inbox))| {
            let peer = inboxes.get(at ^ 1).unwrap_or(&inbox).clone();
            Busy { client, inbox, peer, acknowledgements: Vec::new(), next: 0 }.work(end)
        });
        join_all(clients).await;
        inboxes.iter().map(|inbox| inbox.received()).sum()
    }
}
