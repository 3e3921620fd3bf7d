//! A worker: the connections of one thread.
//!
//! Owns the table of its thread's connections and the sweep over them, which closes inactive and stalled ones: one timer
//! for all of them. Takes accepted sockets, makes the handshake in a task of its own, and starts a
//! [`Connection`] for each that succeeds. Stops with the system, after [`Drain`].
//!
//! Says no by not taking sockets: the acceptor waits for a place in its mailbox and for the permits that each socket
//! carries.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, Message, ResponseFuture};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tracing::{debug, info};

use super::connection::core::{CloseReason, Core, CoreRef, Patience};
use super::connection::encode::Encoder;
use super::connection::{Connection, Counters, Services, Session};
use super::mailbox::Letter;
use super::registry::ConnectionId;
use super::supervision::Vital;
use crate::transport::accept::{Accepted, Acceptor, HandshakeError};
use crate::transport::admission::{Admission, client_hello};

/// A sweep looks at every connection of the thread: not more often than this.
const SHORTEST_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// However long the patience, a dead connection does not live much longer.
const LONGEST_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Sockets that wait for a worker's attention.
pub const MAILBOX: usize = 64;

/// Make a handshake on this socket and serve it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Serve {
    /// The socket, not yet registered with any runtime.
    pub socket: std::net::TcpStream,
    /// Held until the connection has ended and its subscriptions are gone.
    pub connection: OwnedSemaphorePermit,
}

/// Finish what is being answered and close all connections; answered when none is left. Handshakes in progress come to
/// nothing.
#[derive(Message, Debug)]
#[rtype(result = "()")]
pub struct Drain;

/// What all workers share.
#[derive(Clone)]
pub struct WorkerShared {
    /// Makes handshakes.
    pub acceptor: Acceptor,
    /// Bounds them.
    pub admission: Arc<Admission>,
    /// Whether failed handshakes are logged above debug level.
    pub log_tls_errors: bool,
    /// For connections.
    pub services: Arc<Services>,
    /// When connections are closed by the sweep.
    pub patience: Patience,
    /// The last connection ID given.
    pub last_id: Arc<AtomicU64>,
}

/// The connections of a thread.
#[derive(Default)]
struct Table {
    connections: HashMap<ConnectionId, CoreRef>,
    draining: bool,
    empty: Rc<Notify>,
}

impl Table {
    fn remove(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        if self.connections.is_empty() {
            self.connections = HashMap::new();
            self.empty.notify_one();
        }
    }
}

type TableRef = Rc<RefCell<Table>>;

/// A connection's place in the table and among all connections, given up when it is dropped.
struct Listed {
    id: ConnectionId,
    table: TableRef,
    services: Arc<Services>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.table.borrow_mut().remove(self.id);
        self.services.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The actor.
pub struct Worker {
    shared: WorkerShared,
    table: TableRef,
    /// Encoded blocks that waited for this thread's clients at the last sweep.
    waiting: u64,
    _vital: Vital,
}

impl Worker {
    /// A worker for the current thread.
    pub fn new(shared: WorkerShared, vital: Vital) -> Self {
        Worker { shared, table: TableRef::default(), waiting: 0, _vital: vital }
    }

    fn sweep(&mut self, _: &mut Context<Self>) {
        let mut waiting: u64 = 0;
        for core in self.table.borrow().connections.values() {
            let mut core = core.borrow_mut();
            core.sweep(&self.shared.patience);
            waiting += u64::try_from(core.outbound.len()).unwrap_or(u64::MAX);
        }
        let outbound_blocks = &self.shared.services.counters.outbound_blocks;
        outbound_blocks.fetch_add(waiting, Ordering::Relaxed);
        outbound_blocks.fetch_sub(std::mem::replace(&mut self.waiting, waiting), Ordering::Relaxed);
    }

    /// Often enough that patience is kept to within a quarter, and not more than once a second.
    fn sweep_interval(&self) -> Duration {
        let Patience { inactive, stalled, check_interval } = self.shared.patience;
        let shortest = inactive.map_or(stalled, |inactive| inactive.min(stalled));
        let asked = check_interval.unwrap_or(LONGEST_SWEEP_INTERVAL);
        (shortest / 4).min(asked).clamp(SHORTEST_SWEEP_INTERVAL, LONGEST_SWEEP_INTERVAL)
    }
}

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.sweep_interval(), Self::sweep);
    }
}

impl Handler<Letter<Serve>> for Worker {
    type Result = ();

    fn handle(&mut self, letter: Letter<Serve>, _: &mut Self::Context) {
        let (serve, _place) = letter.open();
        if self.table.borrow().draining {
            return;
        }
        let (shared, table) = (self.shared.clone(), Rc::clone(&self.table));
        actix_rt::spawn(async move { begin(&shared, &table, serve).await });
    }
}

/// The handshake; on success the connection lives on by itself.
async fn begin(shared: &WorkerShared, table: &TableRef, serve: Serve) {
    let Serve { socket, connection } = serve;
    let counters = &shared.services.counters;
    match shake_hands(shared, socket).await {
        Ok(accepted) if !table.borrow().draining => start(shared, table, accepted, connection),
        Ok(_) => {}
        Err(error) => {
            Counters::count(&counters.handshakes_failed);
            match shared.log_tls_errors {
                true => info!(%error, "handshake failed"),
                false => debug!(%error, "handshake failed"),
            }
        }
    }
}

/// Takes a place among the handshakes once the client has said something, and gives it up when it is told to.
async fn shake_hands(shared: &WorkerShared, socket: std::net::TcpStream) -> Result<Accepted, HandshakeError> {
    let socket = TcpStream::from_std(socket)?;
    client_hello(&socket).await?;
    let place = shared.admission.admit().await;
    let handshakes = &shared.services.counters.handshakes;
    Counters::count(handshakes);
    let outcome = tokio::select! {
        accepted = shared.acceptor.accept(socket) => accepted,
        () = place.give_way() => Err(HandshakeError::Timeout),
    };
    handshakes.fetch_sub(1, Ordering::Relaxed);
    outcome
}

fn start(shared: &WorkerShared, table: &TableRef, accepted: Accepted, permit: OwnedSemaphorePermit) {
    let Accepted { stream, session, service_id } = accepted;
    let id = ConnectionId(shared.last_id.fetch_add(1, Ordering::Relaxed) + 1);
    let session = Session::new(session, service_id);
    let core = Core::new(Encoder::new(session.params), shared.services.settings.client_blocks);
    table.borrow_mut().connections.insert(id, Rc::clone(&core));
    let held = Listed { id, table: Rc::clone(table), services: Arc::clone(&shared.services), _permit: permit };
    Counters::count(&shared.services.counters.connections);
    Connection::start(id, stream, session, core, Arc::clone(&shared.services), Box::new(held));
}

impl Handler<Letter<Drain>> for Worker {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, letter: Letter<Drain>, _: &mut Self::Context) -> Self::Result {
        let (Drain, place) = letter.open();
        let table = Rc::clone(&self.table);
        table.borrow_mut().draining = true;
        let connections: Vec<CoreRef> = table.borrow().connections.values().cloned().collect();
        for core in connections {
            core.borrow_mut().close(CloseReason::Shutdown);
        }
        let empty = Rc::clone(&table.borrow().empty);
        Box::pin(async move {
            let _place = place;
            loop {
                let emptied = empty.notified();
                if table.borrow().connections.is_empty() {
                    break;
                }
                emptied.await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::actors::connection::tests::World;
    use crate::actors::mailbox::{Gate, SendError, Sender};
    use crate::actors::supervision::Alarm;
    use crate::protocol::address::ServerAddress;
    use crate::transport::accept::AcceptOptions;
    use crate::transport::client::{ClientConnection, ConnectOptions, connect};
    use crate::transport::testing::{KeyKind, credentials};

    struct Fixture {
        serve: Sender<Serve>,
        drain: Sender<Drain>,
        services: Arc<Services>,
        connections: Arc<Semaphore>,
        listener: TcpListener,
        address: ServerAddress,
    }

    async fn fixture(capacity: usize) -> Fixture {
        let credentials = Arc::new(credentials(KeyKind::Ed25519));
        let acceptor = Acceptor::new(credentials, AcceptOptions::default()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let SocketAddr::V4(local) = listener.local_addr().unwrap() else { panic!("IPv4") };
        let fingerprint = base64_of(&acceptor.fingerprint().0);
        let address = format!("smp://{fingerprint}@{local}").parse().unwrap();
        let services = Arc::clone(&World::new().services);
        let shared = WorkerShared {
            acceptor,
            admission: Admission::new(10),
            log_tls_errors: false,
            services: Arc::clone(&services),
            patience: Patience { inactive: None, stalled: Duration::from_secs(60), check_interval: None },
            last_id: Arc::default(),
        };
        let actor = Worker::new(shared, Arc::new(Alarm::default()).vital("worker")).start();
        let gate = Gate::new(capacity, Arc::default());
        Fixture {
            serve: Sender::new(&actor, Arc::clone(&gate)),
            drain: Sender::new(&actor, gate),
            services,
            connections: Arc::new(Semaphore::new(10)),
            listener,
            address,
        }
    }

    fn base64_of(bytes: &[u8]) -> String {
        use base64::Engine;
        base64::engine::general_purpose::URL_SAFE.encode(bytes)
    }

    impl Fixture {
        /// Connections after their handshake.
        fn started(&self) -> u64 {
            self.services.counters.connections.load(Ordering::Relaxed)
        }

        async fn connect(&self) -> ClientConnection {
            let accept = async {
                let (socket, _) = self.listener.accept().await.unwrap();
                self.hand_over(socket.into_std().unwrap()).await;
            };
            let options = ConnectOptions::default();
            let (connection, ()) = tokio::join!(connect(&self.address, &options), accept);
            connection.unwrap()
        }

        async fn hand_over(&self, socket: std::net::TcpStream) {
            let connection = Arc::clone(&self.connections).try_acquire_owned().unwrap();
            self.serve.post(Serve { socket, connection }).await.unwrap();
        }
    }

    async fn until(condition: impl Fn() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(std::time::Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }

    #[actix::test]
    async fn a_connection_holds_its_permit_until_it_ends() {
        let fixture = fixture(4).await;
        let connection = fixture.connect().await;
        assert_eq!(fixture.connections.available_permits(), 9);
        drop(connection);
        until(|| fixture.connections.available_permits() == 10).await;
    }

    #[actix::test]
    async fn a_failed_handshake_gives_its_permit_back() {
        let fixture = fixture(4).await;
        let peer = tokio::net::TcpStream::connect(fixture.listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = fixture.listener.accept().await.unwrap();
        fixture.hand_over(socket.into_std().unwrap()).await;
        peer.into_std().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
        until(|| fixture.connections.available_permits() == 10).await;
    }

    #[actix::test]
    async fn draining_closes_all_connections_and_is_answered_when_none_is_left() {
        let fixture = fixture(4).await;
        let _kept_open_by_the_client = [fixture.connect().await, fixture.connect().await];
        until(|| fixture.started() == 2).await;
        fixture.drain.send(Drain).await.unwrap();
        until(|| fixture.connections.available_permits() == 10).await;
    }

    #[actix::test]
    async fn a_full_mailbox_refuses_through_each_of_a_hundred_handles() {
        let fixture = fixture(4).await;
        let handles: Vec<_> = (0..100).map(|_| fixture.drain.clone()).collect();
        let outcomes: Vec<_> = (0..1000).map(|n| handles[n % 100].try_post(Drain)).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(SendError::Full)).count(), 996);
    }
}
