//! Starting and stopping the server.
//!
//! Start: store, registry shards, workers, housekeeping, then the listener. Stop, on the shutdown signal: no more
//! connections are accepted, every connection finishes what it is answering, then the store commits and closes. A second
//! signal ends the process at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use actix_rt::Arbiter;
use futures_util::future::join_all;
use tokio::time::timeout;
use tracing::{info, warn};

use super::clock::Clock;
use super::connection::core::Patience;
use super::connection::{CommandSettings, Counters, Mailboxes, Services};
use super::housekeeping::{Housekeeping, expire_all};
use super::mailbox::{Gate, MailboxMetrics, Sender};
use super::metrics;
use super::registry::{RegistryHandle, Shard};
use super::worker::{self, Drain, Serve, Worker, WorkerShared};
use crate::store::{Store, StoreError};
use crate::transport::accept::Acceptor;
use crate::transport::listener::{AcceptedSocket, ConnectionLimits, Listener};

/// Room in a registry shard's mailbox. Each asker has one batch outstanding, so what waits beyond this waits with its
/// asker.
const REGISTRY_MAILBOX: usize = 256;

/// How long connections may take to finish when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that a server is made of, validated.
pub struct ServerConfig {
    /// Where to listen. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// Makes handshakes.
    pub acceptor: Acceptor,
    /// Queues and messages; opened.
    pub store: Arc<dyn Store>,
    /// Settings of commands.
    pub commands: CommandSettings,
    /// When connections are closed by the sweep.
    pub patience: Patience,
    /// How often messages are expired.
    pub expiry_interval: Duration,
    /// Whether messages are expired before the first connection is served.
    pub expire_on_start: bool,
    /// Most connections, handshakes included.
    pub max_connections: usize,
    /// Most handshakes in progress.
    pub max_handshakes: usize,
    /// Threads for connections.
    pub workers: usize,
}

/// Why the server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port could not be listened on.
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    /// The store could not be closed: what was answered is committed all the same.
    #[error("the store could not be closed: {0}")]
    Close(StoreError),
}

/// Serves until `shutdown` resolves. `ready` is told the addresses that are listened on.
pub async fn serve(
    config: ServerConfig,
    ready: impl FnOnce(&[SocketAddr]),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let limits = ConnectionLimits::new(config.max_connections, config.max_handshakes);
    let listener = Listener::bind(&config.listen, limits).map_err(ServeError::Listen)?;
    let addresses = listener.addresses().map_err(ServeError::Listen)?;
    let store = Arc::clone(&config.store);
    if config.expire_on_start {
        expire_on_start(&config).await;
    }
    let running = Running::start(config);
    ready(&addresses);
    tokio::select! {
        () = running.accept(listener) => {}
        () = shutdown => info!("stopping: no new connections"),
    }
    running.drain().await;
    metrics::log(&running.services);
    let closed = store.close().await.map_err(ServeError::Close);
    running.stop();
    closed
}

/// Connections wait with the kernel meanwhile. A failure does not keep the server from starting: housekeeping tries again.
async fn expire_on_start(config: &ServerConfig) {
    let Some(before) = config.commands.expire_before(Clock::System.now()) else { return };
    match expire_all(config.store.as_ref(), before).await {
        Ok(0) => {}
        Ok(messages) => info!(messages, "expired old messages"),
        Err(failure) => warn!(%failure, "old messages could not be expired"),
    }
}

/// The actors of a running server.
struct Running {
    arbiters: Vec<Arbiter>,
    workers: Vec<WorkerHandle>,
    services: Arc<Services>,
}

struct WorkerHandle {
    serve: Sender<Serve>,
    drain: Sender<Drain>,
}

impl Running {
    fn start(config: ServerConfig) -> Self {
        let arbiters: Vec<Arbiter> = (0..config.workers.max(1)).map(|_| Arbiter::new()).collect();
        let services = services(&config, &arbiters);
        let shared = WorkerShared {
            acceptor: config.acceptor,
            services: Arc::clone(&services),
            patience: config.patience,
            last_id: Arc::default(),
        };
        let metrics = &services.mailboxes.workers;
        let workers =
            arbiters.iter().map(|arbiter| WorkerHandle::start(arbiter, shared.clone(), Arc::clone(metrics))).collect();
        if let Some(arbiter) = arbiters.first() {
            let interval = config.expiry_interval;
            let services = Arc::clone(&services);
            Housekeeping::start_in_arbiter(&arbiter.handle(), move |_| Housekeeping::new(services, interval));
        }
        Running { arbiters, workers, services }
    }

    /// Hands accepted sockets to the workers in turn, for ever. A worker whose mailbox is full holds up accepting.
    async fn accept(&self, mut listener: Listener) {
        for worker in self.workers.iter().cycle() {
            let AcceptedSocket { socket, connection, handshake, .. } = listener.accept().await;
            match socket.into_std() {
                Ok(socket) => {
                    let _ = worker.serve.post(Serve { socket, connection, handshake }).await;
                }
                Err(error) => warn!(%error, "an accepted socket was lost"),
            }
        }
    }

    async fn drain(&self) {
        let all = join_all(self.workers.iter().map(|worker| worker.drain.send(Drain)));
        if timeout(DRAIN_TIMEOUT, all).await.is_err() {
            warn!("some connections did not finish in time and are cut off");
        }
    }

    fn stop(self) {
        for arbiter in self.arbiters {
            arbiter.stop();
            if arbiter.join().is_err() {
                warn!("a worker thread had panicked");
            }
        }
    }
}

impl WorkerHandle {
    fn start(arbiter: &Arbiter, shared: WorkerShared, metrics: Arc<MailboxMetrics>) -> Self {
        let actor = Worker::start_in_arbiter(&arbiter.handle(), move |_| Worker::new(shared));
        let gate = Gate::new(worker::MAILBOX, metrics);
        WorkerHandle { serve: Sender::new(&actor, Arc::clone(&gate)), drain: Sender::new(&actor, gate) }
    }
}

/// One registry shard a worker, on the workers' threads.
fn services(config: &ServerConfig, arbiters: &[Arbiter]) -> Arc<Services> {
    let mailboxes = Mailboxes::default();
    let shards = arbiters
        .iter()
        .map(|arbiter| Shard::start(&arbiter.handle(), REGISTRY_MAILBOX, Arc::clone(&mailboxes.registry)))
        .collect();
    Arc::new(Services {
        store: Arc::clone(&config.store),
        registry: RegistryHandle::new(shards),
        clock: Clock::System,
        settings: config.commands.clone(),
        counters: Counters::default(),
        mailboxes,
    })
}
