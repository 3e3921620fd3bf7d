//! A database that is killed, slow, silent or not there: clients get `ERR STORE`, nothing answered is lost, doubled or
//! reordered, nothing grows, and the server goes on by itself when the database does.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use smp_server::client::{Client, ConnectOptions, NewQueue, Queue};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::response::Response;

use super::{AtWork, accounts, address, block_on, kills, verify};
use crate::support::cluster::Cluster;
use crate::support::load::Load;
use crate::support::random::{Random, seed};
use crate::support::slow_database::{Pace, SlowDatabase};
use crate::support::{Installation, Server, resident_kib, until};

/// Answers before the database is killed: a random number below this.
const ANSWERS: u64 = 600;

/// Refusals after which the killed database is started again, unless [`OUTAGE`] is over before: clients that wait for a
/// message ask for nothing.
const REFUSALS: u64 = 20;
const OUTAGE: Duration = Duration::from_secs(2);

/// Answers that show that the server works again.
const AFTERWARDS: u64 = 100;

/// Clients that send as fast as they can while the database is silent, and messages of each.
const CROWD: usize = 40;
const MESSAGES: usize = 60;

/// By how much the server may grow meanwhile: the store's line (16 MiB), and what each client is reading and writing, all in
/// encrypted, decoded and encoded form.
const MARGIN_KIB: u64 = 48 * 1024;

/// How long a client may wait for its answers: longer than the server waits for its database.
const PATIENCE: Duration = Duration::from_secs(90);

fn server_on(connection: &str) -> Server {
    let installation = Installation::new();
    installation.use_database(connection, "smp_server");
    installation.set("STORE_LOG", "message_queue_quota", "1000000");
    Server::start_in(installation)
}

#[test]
fn kill_9_of_the_database_under_load_loses_and_doubles_nothing_that_was_answered() {
    let seed = seed("kill -9 of the database");
    let (mut random, mut accounts, cluster) = (Random::new(seed), accounts(seed), Cluster::start(&[]));
    let server = server_on(&cluster.connection());
    let (mut answered, mut refused, begin) = (0, 0, Instant::now());
    for _ in 0..kills() {
        let work = AtWork::begin(accounts, &server, Load::new(1 + random.below(ANSWERS))).wait();
        work.load.go_on_in_doubt(REFUSALS);
        cluster.kill();
        let (work, _) = work.wait_at_most(OUTAGE);
        cluster.run();
        work.load.go_on_for(AFTERWARDS);
        let work = work.wait();
        work.load.end();
        let counts = work.load.counts();
        (answered, refused) = (answered + counts.0, refused + counts.1);
        accounts = work.end();
    }
    verify(&mut accounts, &server);
    assert!(refused >= kills(), "the clients have hardly noticed: {refused} refusals");
    println!(
        "the database was killed {} times in {:?}: {answered} commands answered, {refused} refused, nothing lost",
        kills(),
        begin.elapsed()
    );
}

#[test]
fn a_slow_database_slows_its_clients_down_and_refuses_nobody() {
    let (cluster, seed) = (Cluster::start(&[]), seed("a slow database"));
    let database = SlowDatabase::before(&cluster);
    let server = server_on(&database.connection());
    let work = AtWork::begin(accounts(seed), &server, Load::new(ANSWERS)).wait();
    let delay = Duration::from_millis(20);
    database.set(Pace::Delayed(delay));
    work.load.go_on_for(AFTERWARDS);
    let begin = Instant::now();
    let work = work.wait();
    assert!(begin.elapsed() > 2 * delay, "the database is not slow");
    database.set(Pace::Free);
    work.load.go_on_for(AFTERWARDS);
    let work = work.wait();
    work.load.end();
    assert_eq!(work.load.counts().1, 0, "refused");
    verify(&mut work.end(), &server);
}

/// A client that sends whatever may come.
struct Sending {
    client: Client,
    queue: Queue,
}

impl Sending {
    async fn begin(server: &Server) -> Self {
        let mut client = Client::connect(&address(server), &ConnectOptions::default()).await.expect("connected");
        client.set_timeout(PATIENCE);
        let queue = NewQueue::messaging().only_created().create(&mut client).await.expect("IDS");
        Sending { client, queue }
    }

    /// Sends all its messages without waiting for answers: how many were stored. Counts refusals as they come.
    async fn send(&mut self, refused: &Cell<usize>) -> usize {
        let body = vec![b'm'; 16_000];
        let requests = vec![self.queue.sender().message(Default::default(), &body); MESSAGES];
        let mut stored = 0;
        for id in self.client.submit(&requests).await.expect("submitted") {
            match self.client.answer(&id).await.expect("an answer") {
                Response::Ok => stored += 1,
                Response::Err(ErrorType::Store(_)) => refused.set(refused.get() + 1),
                other => panic!("{other:?}"),
            }
        }
        stored
    }
}

#[test]
fn a_silent_database_makes_nothing_grow_and_is_used_again_when_it_answers() {
    let cluster = Cluster::start(&[]);
    let database = SlowDatabase::before(&cluster);
    let server = server_on(&database.connection());
    block_on(async {
        let mut clients = join_all((0..CROWD).map(|_| Sending::begin(&server))).await;
        let before = resident_kib(server.process_id());
        database.set(Pace::Stopped);
        let begin = Instant::now();
        let refused = Cell::new(0);
        let silent = join_all(clients.iter_mut().map(|client| client.send(&refused)));
        let watch = async {
            let most = most_resident(&server, &refused).await;
            println!("after {:?} of silence: {most} KiB, {before} before", begin.elapsed());
            database.set(Pace::Free);
            most
        };
        let (stored, most) = tokio::join!(silent, watch);
        assert!(most <= before + MARGIN_KIB, "the server grew from {before} to {most} KiB");
        let stored: usize = stored.into_iter().sum();
        println!("{stored} messages stored, {} refused, {:?} in all", refused.get(), begin.elapsed());
        assert_eq!(stored + refused.get(), CROWD * MESSAGES);
        let again = Cell::new(0);
        let stored = join_all(clients.iter_mut().map(|client| client.send(&again))).await;
        assert_eq!((stored, again.get()), (vec![MESSAGES; CROWD], 0), "all are served again");
    });
}

/// The most memory that the server has until as many are refused as there are clients: what waits for the database is not
/// kept for ever.
async fn most_resident(server: &Server, refused: &Cell<usize>) -> u64 {
    let mut most = 0;
    until("refusals", async || {
        most = most.max(resident_kib(server.process_id()));
        refused.get() >= CROWD
    })
    .await;
    most
}
