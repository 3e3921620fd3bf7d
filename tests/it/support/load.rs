//! Clients that keep a server busy and remember everything that it answered.
//!
//! An [`Account`] outlives connections and servers: [`Account::connect`] verifies that a server has all that was answered
//! before, then [`Account::work`] goes on until the connection ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use smp_server::client::{Client, ClientError, ConnectOptions};
use smp_server::protocol::address::ServerAddress;
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::response::Response;

use super::load_queue::{Life, LoadQueue};
use super::random::Random;

/// Queues of one account, at most.
const QUEUES: usize = 10;

/// Messages in one queue, at most: well below the quota.
const MESSAGES: usize = 60;

/// What all clients of a test share: how much was answered, and whether the connection may break.
pub struct Load {
    answered: AtomicU64,
    refused: AtomicU64,
    /// `reached` is told when so much was answered, or so much refused by the store.
    goal: AtomicU64,
    refusal_goal: AtomicU64,
    reached: SyncSender<()>,
    in_doubt: AtomicBool,
    ending: AtomicBool,
}

impl Load {
    /// With the receiver that is told once `goal` commands are answered.
    pub fn new(goal: u64) -> (Self, Receiver<()>) {
        let (reached, receiver) = sync_channel(1);
        let load = Load {
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            goal: AtomicU64::new(goal),
            refusal_goal: AtomicU64::new(u64::MAX),
            reached,
            in_doubt: AtomicBool::new(false),
            ending: AtomicBool::new(false),
        };
        (load, receiver)
    }

    /// From now on the store may refuse. Tells the receiver again after it has refused `more` commands.
    pub fn go_on_until_refused(&self, more: u64) {
        self.refusal_goal.store(self.refused.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    /// From now on the store may refuse what it has done, or may yet do. Tells the receiver again after it has refused `more`
    /// commands.
    pub fn go_on_in_doubt(&self, more: u64) {
        self.in_doubt.store(true, Ordering::SeqCst);
        self.go_on_until_refused(more);
    }

    /// Whether what the store has refused may have been done.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::SeqCst)
    }

    /// From now on connections may break, and clients stop.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Tells the receiver again after `more` commands were answered with success.
    pub fn go_on_for(&self, more: u64) {
        self.goal.store(self.answered.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    /// Commands that were answered with success, and that the store refused.
    pub fn counts(&self) -> (u64, u64) {
        (self.answered.load(Ordering::SeqCst), self.refused.load(Ordering::SeqCst))
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Counts an answer; whether it is a success. The store may refuse only where the test has said so.
    pub fn count(&self, answer: &Response) -> bool {
        let (counter, goal, success) = match answer {
            Response::Err(ErrorType::Store(_)) if self.refusal_goal.load(Ordering::SeqCst) < u64::MAX => {
                (&self.refused, &self.refusal_goal, false)
            }
            Response::Err(error) => panic!("refused: {error:?}"),
            _ => (&self.answered, &self.goal, true),
        };
        if counter.fetch_add(1, Ordering::SeqCst) + 1 == goal.load(Ordering::SeqCst) {
            // Told before and not heard yet: it will be heard.
            let _ = self.reached.try_send(());
        }
        success
    }
}

/// What a user of the server has, and was told.
pub struct Account {
    pub(super) random: Random,
    pub(super) queues: Vec<LoadQueue>,
}

impl Account {
    /// Without queues.
    pub fn new(seed: u64) -> Self {
        Account { random: Random::new(seed), queues: Vec::new() }
    }

    /// Connects, verifies that the server has everything that was answered, and receives all messages.
    pub async fn connect(&mut self, address: &ServerAddress) -> Connections {
        let mut connections = Connections::new(address).await;
        let mut kept = Vec::new();
        for mut queue in std::mem::take(&mut self.queues) {
            if queue.verify(&mut connections).await {
                kept.push(queue);
            }
        }
        connections.recipient.ping().await.expect("PONG");
        assert_eq!(connections.recipient.waiting_event(), None, "nothing is left to come");
        self.queues = kept;
        connections
    }

    /// Creates, sends, receives and deletes until the load ends.
    pub async fn work(&mut self, mut connections: Connections, load: &Load) {
        while !load.is_ending() {
            if let Err(error) = self.step(&mut connections, load).await {
                assert!(load.is_ending() && is_end(&error), "{error}");
                return;
            }
        }
    }

    async fn step(&mut self, connections: &mut Connections, load: &Load) -> Result<(), ClientError> {
        self.file_events(&mut connections.recipient);
        match self.random.below(100) {
            0..10 => self.create(connections, load).await,
            10..14 => self.delete(connections, load).await,
            14..60 => self.send(connections, load).await,
            _ => self.receive(connections, load).await,
        }
    }

    /// Creates up to three queues in a block and lets their sender secure them.
    async fn create(&mut self, connections: &mut Connections, load: &Load) -> Result<(), ClientError> {
        let alive = self.queues.iter().filter(|queue| queue.life == Life::Alive).count();
        let room = QUEUES.saturating_sub(alive).min(3);
        let new: Vec<_> = (0..room).map(|_| LoadQueue::to_be_created()).collect();
        let requests: Vec<_> = new.iter().map(|new| new.request().expect("NEW")).collect();
        let mut answers = Vec::new();
        let asked = ask(&mut connections.recipient, &requests, |_, answer| answers.push(answer)).await;
        let first = self.queues.len();
        for (new, answer) in new.into_iter().zip(answers) {
            if load.count(&answer) {
                self.queues.push(LoadQueue::new(new.created(answer).expect("IDS")));
            }
        }
        asked?;
        for queue in self.queues.iter_mut().skip(first) {
            queue.secure(&mut connections.sender, load).await?;
        }
        Ok(())
    }

    /// Sends some messages in a block, to one queue or to several.
    async fn send(&mut self, connections: &mut Connections, load: &Load) -> Result<(), ClientError> {
        let mut sent = Vec::new();
        let mut requests = Vec::new();
        for _ in 0..=self.random.below(8) {
            let Some(index) = self.choose(|queue| queue.is_secured() && queue.ledger.len() < MESSAGES) else { break };
            let largest = if self.random.below(10) == 0 { 16_000 } else { 200 };
            let size = self.random.index(largest);
            let queue = &mut self.queues[index];
            let number = queue.ledger.send();
            requests.push(queue.message(number, size));
            sent.push((index, number));
        }
        let queues = &mut self.queues;
        ask(&mut connections.sender, &requests, |at, answer| {
            let (index, number) = sent[at];
            match load.count(&answer) {
                true => queues[index].ledger.sent(number),
                false if load.is_in_doubt() => queues[index].ledger.doubted(number),
                false => queues[index].ledger.refused(number),
            }
        })
        .await
    }

    /// Acknowledges the message that one to four queues have delivered, waiting for it where it has to come.
    async fn receive(&mut self, connections: &mut Connections, load: &Load) -> Result<(), ClientError> {
        let mut chosen = Vec::new();
        for _ in 0..=self.random.below(4) {
            let Some(index) = self.choose(|queue| queue.ledger.has_answered()) else { break };
            if !chosen.contains(&index) {
                chosen.push(index);
            }
        }
        for index in &chosen {
            while self.queues[*index].delivered.is_none() {
                let event = connections.recipient.event_about(self.queues[*index].queue.id()).await?;
                self.queues[*index].deliver(event.response);
            }
        }
        let requests: Vec<_> = chosen.iter().map(|index| self.queues[*index].acknowledgement()).collect();
        let queues = &mut self.queues;
        ask(&mut connections.recipient, &requests, |at, answer| {
            let queue = &mut queues[chosen[at]];
            match load.count(&answer) {
                true => queue.acknowledged(answer),
                // It may be gone; it counts as delivered still, and is acknowledged again.
                false if load.is_in_doubt() => {}
                false => queue.ledger.not_acknowledged(),
            }
        })
        .await
    }

    async fn delete(&mut self, connections: &mut Connections, load: &Load) -> Result<(), ClientError> {
        let Some(index) = self.choose(|_| true) else { return Ok(()) };
        self.queues[index].delete(&mut connections.recipient, load).await
    }

    /// Any of the queues that are alive and fulfil the condition.
    fn choose(&mut self, condition: impl Fn(&LoadQueue) -> bool) -> Option<usize> {
        let alive = |queue: &LoadQueue| queue.life == Life::Alive && condition(queue);
        let fit: Vec<_> = (0..self.queues.len()).filter(|index| alive(&self.queues[*index])).collect();
        (!fit.is_empty()).then(|| fit[self.random.index(fit.len())])
    }

    /// Gives the messages that have arrived to their queues.
    fn file_events(&mut self, recipient: &mut Client) {
        while let Some(event) = recipient.waiting_event() {
            let queue = self.queues.iter_mut().find(|queue| *queue.queue.id() == event.entity_id);
            queue.expect("a message of one of the account's queues").deliver(event.response);
        }
    }
}

/// The connections of an account: one receives, the other sends.
pub struct Connections {
    pub recipient: Client,
    pub sender: Client,
}

impl Connections {
    async fn new(address: &ServerAddress) -> Self {
        let recipient = Client::connect(address, &ConnectOptions::default()).await.expect("connected");
        let sender = Client::connect(address, &ConnectOptions::default()).await.expect("connected");
        Connections { recipient, sender }
    }
}

/// Sends commands in as few blocks as they fit in, and notes each answer that comes, also when others do not.
pub async fn ask(
    client: &mut Client,
    requests: &[smp_server::client::Request],
    mut note: impl FnMut(usize, Response),
) -> Result<(), ClientError> {
    let mut broken = Ok(());
    for (at, id) in client.submit(requests).await?.iter().enumerate() {
        match client.answer(id).await {
            Ok(answer) => note(at, answer),
            Err(error) => broken = broken.and(Err(error)),
        }
    }
    broken
}

/// Whether the server has gone, as opposed to: it does something wrong, or nothing at all.
fn is_end(error: &ClientError) -> bool {
    matches!(error, ClientError::Closed | ClientError::Io(_))
}
