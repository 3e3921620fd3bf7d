//! Nothing that was answered is lost: killed, told to stop, killed while it starts, out of space, or on a database that is
//! killed, slow or silent.
//!
//! Clients create, secure, send, receive, acknowledge and delete, and remember what was answered
//! ([`crate::support::load`]); afterwards the server must have exactly that. `SMP_TEST_KILLS=50` kills the server 50 times
//! instead of a few.

mod database;
mod disk_full;
mod notifications;

use std::env;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use rustix::process::Signal;
use smp_server::protocol::address::ServerAddress;
use smp_server::protocol::block::BatchWriter;
use smp_server::protocol::command::Command;
use smp_server::protocol::ids::{CorrelationId, EntityId};
use smp_server::protocol::transmission::{Authorization, encode_command};
use smp_server::transport::client::{ClientConnection, ConnectOptions, connect};

use crate::support::load::{Account, Load};
use crate::support::random::{Random, seed};
use crate::support::{Server, Stopped, Store, for_each_lasting_store};

for_each_lasting_store!(
    kill_9_under_load_loses_nothing_that_was_answered,
    a_server_told_to_stop_under_load_stops_in_time_and_loses_nothing_that_was_answered,
    kill_9_while_it_starts_loses_nothing_that_was_answered,
);

/// Clients at work at the same time.
const ACCOUNTS: u64 = 4;

/// Rounds of `kill -9`, unless `SMP_TEST_KILLS` says how many.
const KILLS: u64 = 5;

/// Answers after which the server is killed: a random number below this.
const ANSWERS: u64 = 1_500;

/// The longest that connections may take to finish when the server is told to stop, and some time for a busy machine.
const DRAIN: Duration = Duration::from_secs(15);

/// Starts that are interrupted.
const STARTS: u64 = 25;

/// After this time a server has started, mostly.
const START_MICROSECONDS: u64 = 60_000;

/// How long a load may take to reach its goal.
const PATIENCE: Duration = Duration::from_secs(120);

fn accounts(seed: u64) -> Vec<Account> {
    (0..ACCOUNTS).map(|account| Account::new(seed.wrapping_add(account))).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

fn address(server: &Server) -> ServerAddress {
    server.smp_address().parse().expect("the server's address")
}

/// Accounts at work in a thread of their own, once it is verified that the server has what they were answered before.
struct AtWork {
    load: Arc<Load>,
    reached: Receiver<()>,
    thread: JoinHandle<Vec<Account>>,
}

impl AtWork {
    fn begin(mut accounts: Vec<Account>, server: &Server, (load, reached): (Load, Receiver<()>)) -> Self {
        let (address, load) = (address(server), Arc::new(load));
        let shared = Arc::clone(&load);
        let thread = thread::spawn(move || {
            block_on(async {
                let connections = join_all(accounts.iter_mut().map(|account| account.connect(&address))).await;
                let connected = accounts.iter_mut().zip(connections);
                join_all(connected.map(|(account, connections)| account.work(connections, &shared))).await;
            });
            accounts
        });
        AtWork { load, reached, thread }
    }

    /// Waits until the load has reached its goal. Ends with the accounts' panic if they have one.
    fn wait(self) -> Self {
        let (work, reached) = self.wait_at_most(PATIENCE);
        assert!(reached, "the load does not reach its goal");
        work
    }

    /// The same, but for so long. Whether it has reached the goal.
    fn wait_at_most(self, time: Duration) -> (Self, bool) {
        let deadline = Instant::now() + time;
        while self.reached.recv_timeout(Duration::from_millis(100)).is_err() {
            if Instant::now() >= deadline {
                return (self, false);
            }
            if self.thread.is_finished() {
                self.load.end();
                self.end();
                panic!("the clients have stopped");
            }
        }
        (self, true)
    }

    /// The accounts, once they have stopped.
    fn end(self) -> Vec<Account> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Lets the accounts work until `answers` were answered, then ends the server.
fn work_until(
    accounts: Vec<Account>,
    server: Server,
    answers: u64,
    end: impl FnOnce(Server) -> Stopped,
) -> (Vec<Account>, Stopped) {
    let work = AtWork::begin(accounts, &server, Load::new(answers)).wait();
    work.load.end();
    let stopped = end(server);
    (work.end(), stopped)
}

/// Connects all accounts, which verifies what they have.
fn verify(accounts: &mut [Account], server: &Server) {
    let address = address(server);
    block_on(join_all(accounts.iter_mut().map(|account| account.connect(&address))));
}

fn kills() -> u64 {
    env::var("SMP_TEST_KILLS").map_or(KILLS, |kills| kills.parse().expect("SMP_TEST_KILLS is a number"))
}

fn kill_9_under_load_loses_nothing_that_was_answered(store: Store) {
    let seed = seed("kill -9 under load");
    let mut random = Random::new(seed);
    let (mut accounts, mut server) = (accounts(seed), store.server());
    let (mut answers, begin) = (0, Instant::now());
    for _ in 0..kills() {
        let goal = 1 + random.below(ANSWERS);
        let (worked, stopped) = work_until(accounts, server, goal, Server::kill);
        (accounts, server) = (worked, Server::start_in(stopped.installation));
        answers += goal;
    }
    verify(&mut accounts, &server);
    println!("killed {} times in {:?}, after {answers} answers, nothing lost", kills(), begin.elapsed());
}

fn a_server_told_to_stop_under_load_stops_in_time_and_loses_nothing_that_was_answered(store: Store) {
    let seed = seed("SIGTERM under load");
    let (accounts, server) = (accounts(seed), store.server());
    let begin = Instant::now();
    let (mut accounts, stopped) = work_until(accounts, server, ANSWERS, |server| {
        let told = Instant::now();
        let stopped = server.stop();
        assert!(told.elapsed() < DRAIN, "it took {:?} to stop", told.elapsed());
        println!("stopped under load in {:?}", told.elapsed());
        stopped
    });
    assert!(stopped.status.success(), "{:?}: {}", stopped.status, stopped.output.join("\n"));
    verify(&mut accounts, &Server::start_in(stopped.installation));
    println!("SIGTERM under load and verification took {:?}", begin.elapsed());
}

#[test]
fn a_second_signal_ends_a_server_that_still_finishes() {
    let server = Server::start();
    let address = address(&server);
    // The first signal waits for answers that nobody reads.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connection = runtime.block_on(ask_without_reading(&address));
    server.signal(Signal::TERM);
    let deadline = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(server.address()).is_ok() {
        assert!(Instant::now() < deadline, "it still accepts");
        thread::sleep(Duration::from_millis(5));
    }
    let told_again = Instant::now();
    server.signal(Signal::TERM);
    let stopped = server.wait();
    assert!(told_again.elapsed() < Duration::from_secs(5), "it went on for {:?}", told_again.elapsed());
    assert_eq!(stopped.status.code(), Some(130), "{:?}: {}", stopped.status, stopped.output.join("\n"));
    drop((connection, runtime));
}

/// Asks and reads no answer, until the server reads no more because its answers do not get through.
async fn ask_without_reading(address: &ServerAddress) -> ClientConnection {
    let mut connection = connect(address, &ConnectOptions::default()).await.expect("connected");
    let params = connection.session.transmission_params();
    let id = CorrelationId(Bytes::from_static(&[1; 24]));
    let mut batch = BatchWriter::new();
    let unauthorized = &mut |_: &[u8]| (Authorization::None, None);
    let pushed = batch.push(|out| encode_command(&params, &id, &EntityId::NONE, &Command::Ping, unauthorized, out));
    pushed.expect("a command fits a block");
    let payload = batch.finish().remove(0);
    while let Ok(written) = tokio::time::timeout(Duration::from_secs(1), connection.stream.write(&payload)).await {
        written.expect("written");
    }
    connection
}

fn kill_9_while_it_starts_loses_nothing_that_was_answered(store: Store) {
    let seed = seed("kill -9 while starting");
    let mut random = Random::new(seed);
    // The first kill leaves something to recover.
    let (mut accounts, stopped) = work_until(accounts(seed), store.server(), ANSWERS, Server::kill);
    let installation = stopped.installation;
    for _ in 0..STARTS {
        let mut child = installation.command(&["start"]).spawn().expect("smp-server starts");
        // At a random moment of its start, which takes some tens of milliseconds.
        thread::sleep(Duration::from_micros(random.below(START_MICROSECONDS)));
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
    }
    verify(&mut accounts, &Server::start_in(installation));
}
