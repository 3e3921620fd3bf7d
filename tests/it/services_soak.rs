//! Services and ordinary clients that take queues from each other at random, while messages are sent: each message comes,
//! in order, to whoever is subscribed, and never again once its `ACK` was answered; counts and hashes are those of the
//! queues that a service really has.
//!
//! Each round is a race of all parties; then everything comes to rest and is compared: a message to each queue shows whose
//! it is. `SMP_TEST_SOAK=full` goes on for a minute instead of a few rounds.

mod party;
mod queues;

use std::collections::BTreeSet;
use std::env;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use smp_server::client::Client;
use smp_server::protocol::response::Response;

use self::party::{Party, Who};
use self::queues::Queues;
use crate::support::random::{Random, seed};
use crate::support::{Relay, Service, Store, for_each_store, queues_with};

for_each_store!(lasting: queues_move_between_services_and_clients_and_no_message_is_lost_doubled_or_astray);

/// What each party does in a round.
const STEPS: usize = 20;

/// Messages sent in a round, some in a block.
const MESSAGES: usize = 150;

/// Rounds, unless it is for a minute.
const ROUNDS: usize = 4;

const FULL: Duration = Duration::from_secs(60);

/// How long it may take until all is at rest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Services, sessions of each, and ordinary clients.
const SERVICES: usize = 2;
const SESSIONS: usize = 2;
const CLIENTS: usize = 2;

fn goes_on(rounds: usize, begin: Instant) -> bool {
    match env::var("SMP_TEST_SOAK").as_deref() {
        Ok(_) => begin.elapsed() < FULL,
        Err(_) => rounds < ROUNDS,
    }
}

async fn queues_move_between_services_and_clients_and_no_message_is_lost_doubled_or_astray(store: Store) {
    let seed = seed("services");
    let relay = store.relay_with(&[]);
    let mut soak = Soak::begin(&relay, seed).await;
    let (begin, mut rounds) = (Instant::now(), 0);
    while goes_on(rounds, begin) {
        soak.race().await;
        soak.rest().await;
        soak.compare().await;
        rounds += 1;
    }
    println!("{store:?}: {rounds} rounds in {:?}, {}", begin.elapsed(), soak.queues.summary());
    drop(soak);
    let installation = relay.end(rustix::process::Signal::TERM).await.installation;
    // Recomputes what was kept; fails where they differ.
    installation.run(&["database", "check"]);
}

/// All parties, and who sends to them.
struct Soak {
    queues: Rc<Queues>,
    parties: Vec<Party>,
    sender: Client,
    random: Random,
}

impl Soak {
    async fn begin(relay: &Relay, seed: u64) -> Self {
        let queues = Rc::new(Queues::default());
        let mut parties = Vec::new();
        for service in 0..SERVICES {
            let identity = Service::messaging();
            for _ in 0..SESSIONS {
                parties.push((Who::Service(service), identity.connect(relay).await));
            }
        }
        for _ in 0..CLIENTS {
            parties.push((Who::Client, relay.connect().await));
        }
        let parties = parties.into_iter().enumerate().map(|(at, (who, client))| {
            Party::new(at, who, client, Rc::clone(&queues), Random::new(seed.wrapping_add(at as u64)))
        });
        let parties = parties.collect();
        Soak { queues, parties, sender: relay.connect().await, random: Random::new(!seed) }
    }

    /// All do their steps at the same time, and messages come meanwhile.
    async fn race(&mut self) {
        let Soak { queues, parties, sender, random } = self;
        let steps = parties.iter_mut().map(async |party| {
            for _ in 0..STEPS {
                party.step().await;
            }
        });
        let sending = async {
            let mut sent = 0;
            while sent < MESSAGES {
                sent += send_some(queues, sender, random).await;
            }
        };
        tokio::join!(join_all(steps), sending);
    }

    /// Everything has come: every party knows what it has lost, and no message is left.
    async fn rest(&mut self) {
        for service in 0..SERVICES {
            // One of its sessions, so that what waits is delivered.
            let session = service * SESSIONS + self.random.index(SESSIONS);
            self.parties[session].subscribe_service().await;
        }
        self.settle().await;
    }

    /// Lets everybody read and acknowledge until there is nothing more, and all agree on whose queue it is.
    async fn settle(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            join_all(self.parties.iter_mut().map(Party::take_all)).await;
            let disagreement = self.queues.left_to_come().or_else(|| self.disagreement());
            let Some(disagreement) = disagreement else { return };
            assert!(Instant::now() < deadline, "{disagreement}");
        }
    }

    /// Whether two believe to be subscribed to one queue, or somebody to one that is no more.
    fn disagreement(&self) -> Option<String> {
        let mut held = BTreeSet::new();
        for (party, queue) in self.parties.iter().flat_map(|party| party.held().map(move |queue| (party, queue))) {
            if !self.queues.is_alive(queue) {
                return Some(format!("{party} was not told that queue {queue} is deleted"));
            }
            if !held.insert(queue) {
                return Some(format!("{party} and another believe to be subscribed to queue {queue}"));
            }
        }
        let current = |service| self.parties.iter().filter(move |party| party.is_current_session_of(service)).count();
        let doubled = (0..SERVICES).find(|service| current(*service) != 1);
        doubled.map(|service| format!("{} sessions of service {service} believe to be subscribed", current(service)))
    }

    /// A message to each queue shows whose it is: that is what everybody believes, and what the server has counted.
    async fn compare(&mut self) {
        let alive = self.queues.alive();
        for batch in alive.chunks(50) {
            send(&self.queues, &mut self.sender, batch).await;
        }
        self.settle().await;
        for (at, party) in self.parties.iter().enumerate() {
            let received = self.received_by(at);
            match party.who {
                Who::Client => assert_eq!(received, party.held().collect(), "{party}"),
                Who::Service(service) if party.is_current_session_of(service) => {}
                Who::Service(_) => assert!(received.is_empty(), "{party} was told that another has taken over"),
            }
        }
        for service in 0..SERVICES {
            self.compare_service(service).await;
        }
    }

    /// What the subscribed session has had and lost, and what is kept in the store, is what messages come of.
    async fn compare_service(&mut self, service: usize) {
        let current = (0..self.parties.len()).find(|at| self.parties[*at].is_current_session_of(service));
        let current = current.expect("a session is subscribed");
        let received = self.received_by(current);
        let expected = queues_with(&self.queues.recipient_ids(&received));
        assert_eq!(self.parties[current].subscribe_service().await, expected, "{}", self.parties[current]);
        let next = service * SESSIONS + (current + 1) % SESSIONS;
        assert_eq!(self.parties[next].subscribe_service().await, expected, "the store, of service {service}");
        self.parties[current].ended_with(expected).await;
    }

    fn received_by(&self, party: usize) -> BTreeSet<usize> {
        self.queues.last_received_by(party).into_iter().collect()
    }
}

/// Sends some messages to queues that have room, in one block. Answers how many.
async fn send_some(queues: &Rc<Queues>, sender: &mut Client, random: &mut Random) -> usize {
    let with_room = queues.with_room();
    let count = 1 + random.index(8);
    let chosen: Vec<usize> =
        (0..count).filter_map(|_| with_room.get(random.index(with_room.len().max(1)))).copied().collect();
    if chosen.is_empty() {
        // The parties have to go on first.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    send(queues, sender, &chosen).await;
    count
}

async fn send(queues: &Rc<Queues>, sender: &mut Client, to: &[usize]) {
    let requests: Vec<_> = to.iter().map(|queue| queues.message(*queue)).collect();
    let answers = sender.request_all(&requests).await.expect("answers");
    for (queue, answer) in to.iter().zip(answers) {
        match answer {
            Response::Ok => queues.sent(*queue),
            refused => assert!(queues.is_being_deleted(*queue), "{refused:?} to SEND"),
        }
    }
}
