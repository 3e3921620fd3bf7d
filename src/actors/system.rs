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
use tracing::{error, info, warn};

use super::clock::Clock;
use super::connection::core::Patience;
use super::connection::failures::StoreFailures;
use super::connection::{CommandSettings, Counters, Mailboxes, Services};
use super::enrolment::Enrolment;
use super::housekeeping::{Housekeeping, expire_all};
use super::mailbox::{Gate, Sender};
use super::metrics;
use super::notifications::NotificationsHandle;
use super::notifications::core::Core;
use super::notifications::journal::Journal;
use super::notifications::pending::Limits;
use super::notifications::restore::{RestoreError, Saved};
use super::registry::{RegistryHandle, Shard};
use super::supervision::Alarm;
use super::worker::{self, Drain, Serve, Worker, WorkerShared};
use crate::settings::Notifications;
use crate::store::{Store, StoreError};
use crate::transport::accept::Acceptor;
use crate::transport::admission::Admission;
use crate::transport::listener::{AcceptedSocket, ConnectionLimits, Listener};

/// Room in a registry shard's mailbox. Each asker has one batch outstanding, so what waits beyond this waits with its
/// asker.
const REGISTRY_MAILBOX: usize = 256;

/// How long the store may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// Whether failed handshakes are logged above debug level.
    pub log_tls_errors: bool,
    /// Threads for connections.
    pub workers: usize,
    /// How notifications are delivered.
    pub notifications: Notifications,
    /// What waited when the server ended; `None`: nothing is kept on disk.
    pub saved: Option<Saved>,
}

/// Why the server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port could not be listened on.
    #[error("{0}")]
    Listen(std::io::Error),
    /// Something ended that the server can not do without; a defect.
    #[error("{0} has ended unasked: this is a defect, please report it with the log")]
    Ended(&'static str),
    /// What waited for notifiers could not be restored.
    #[error("{0}")]
    Restore(#[from] RestoreError),
    /// The store could not be closed: what was answered is committed all the same.
    #[error("the store could not be closed: {0}")]
    Close(StoreError),
}

/// Serves until `shutdown` resolves. `ready` is told the addresses that are listened on.
pub async fn serve(
    mut config: ServerConfig,
    ready: impl FnOnce(&[SocketAddr]),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let limits = ConnectionLimits::new(config.max_connections);
    let listener = Listener::bind(&config.listen, limits).map_err(ServeError::Listen)?;
    let addresses = listener.addresses().map_err(ServeError::Listen)?;
    let store = Arc::clone(&config.store);
    let mut shutdown = std::pin::pin!(shutdown);
    let tidy = tokio::select! {
        done = expire_on_start(&config) => !done,
        () = &mut shutdown => return close(store.as_ref()).await,
    };
    let notifications = notifications(&mut config).await?;
    let running = Running::start(config, notifications, tidy);
    ready(&addresses);
    let ended = tokio::select! {
        () = running.accept(listener) => None,
        () = shutdown => None,
        name = running.alarm.raised() => Some(name),
    };
    match ended {
        None => info!("stopping: no new connections"),
        Some(name) => error!(name, "a part that the server needs has ended: stopping"),
    }
    running.drain().await;
    metrics::log(&running.services);
    let closed = close(store.as_ref()).await;
    running.stop();
    ended.map_or(closed, |name| Err(ServeError::Ended(name)))
}

/// Commits what was handed over and closes the store, if it can.
async fn close(store: &dyn Store) -> Result<(), ServeError> {
    let closed = timeout(CLOSE_TIMEOUT, store.close()).await;
    closed.unwrap_or(Err(StoreError::Overloaded)).map_err(ServeError::Close)
}

/// How long clients wait for it: however much there is to be looked at, the server starts.
const EXPIRY_ON_START: Duration = Duration::from_secs(1);

/// Whether all is done; housekeeping has to go on otherwise. Connections wait with the kernel meanwhile. A failure does not
/// keep the server from starting: housekeeping tries again.
async fn expire_on_start(config: &ServerConfig) -> bool {
    if !config.expire_on_start {
        return true;
    }
    let Some(before) = config.commands.expire_before(Clock::System.now()) else { return true };
    match tokio::time::timeout(EXPIRY_ON_START, expire_all(config.store.as_ref(), before)).await {
        Ok(Ok(0)) => {}
        Ok(Ok(messages)) => info!(messages, "expired old messages"),
        Ok(Err(failure)) => warn!(%failure, "old messages could not be expired"),
        Err(_) => {
            info!("old messages are looked for while the server runs: there are many queues or messages");
            return false;
        }
    }
    true
}

/// Room in the mailbox of the actor of notifications.
const NOTIFICATIONS_MAILBOX: usize = 1024;

/// Who is to be notified, and what waits for that.
async fn notifications(config: &mut ServerConfig) -> Result<(Core, Option<Journal>), ServeError> {
    let Notifications { pending_per_notifier, pending_total, delivery_interval, .. } = config.notifications;
    let mut core = Core::new(Limits { notifier: pending_per_notifier, total: pending_total }, delivery_interval);
    let journal = match config.saved.take() {
        Some(saved) => Some(saved.restore(&mut core, config.store.as_ref()).await?),
        None => None,
    };
    Ok((core, journal))
}

/// The actors of a running server.
struct Running {
    /// Of the actor of notifications.
    notifications: Arbiter,
    arbiters: Vec<Arbiter>,
    workers: Vec<WorkerHandle>,
    services: Arc<Services>,
    alarm: Arc<Alarm>,
}

struct WorkerHandle {
    serve: Sender<Serve>,
    drain: Sender<Drain>,
}

impl Running {
    /// `tidy`: whether housekeeping has something to do at once.
    fn start(config: ServerConfig, notifications: (Core, Option<Journal>), tidy: bool) -> Self {
        let arbiter = Arbiter::new();
        let arbiters: Vec<Arbiter> = (0..config.workers.max(1)).map(|_| Arbiter::new()).collect();
        let alarm = Arc::new(Alarm::default());
        let services = services(&config, &arbiters, (&arbiter, notifications), &alarm);
        let shared = WorkerShared {
            acceptor: config.acceptor.with_services(Enrolment::new(&services)),
            admission: Admission::new(config.max_handshakes),
            log_tls_errors: config.log_tls_errors,
            services: Arc::clone(&services),
            patience: config.patience,
            last_id: Arc::default(),
        };
        let start = |arbiter| WorkerHandle::start(arbiter, shared.clone(), &alarm);
        let workers = arbiters.iter().map(start).collect();
        if let Some(arbiter) = arbiters.first() {
            let interval = config.expiry_interval;
            let (services, vital) = (Arc::clone(&services), alarm.vital("housekeeping"));
            Housekeeping::start_in_arbiter(&arbiter.handle(), move |_| {
                Housekeeping::new(services, interval, vital).at_once(tidy)
            });
        }
        Running { notifications: arbiter, arbiters, workers, services, alarm }
    }

    /// Hands accepted sockets to the workers in turn, for ever. A worker whose mailbox is full holds up accepting.
    async fn accept(&self, mut listener: Listener) {
        for worker in self.workers.iter().cycle() {
            let AcceptedSocket { socket, connection, .. } = listener.accept().await;
            match socket.into_std() {
                Ok(socket) => {
                    // A worker that is gone has raised the alarm.
                    let _ = worker.serve.post(Serve { socket, connection }).await;
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
        let closed = timeout(CLOSE_TIMEOUT, self.services.notifications.close()).await;
        if closed.is_err() {
            warn!("notifications that wait could not be written in time");
        }
    }

    fn stop(self) {
        for arbiter in self.arbiters.into_iter().chain([self.notifications]) {
            arbiter.stop();
            if arbiter.join().is_err() {
                warn!("a worker thread had panicked");
            }
        }
    }
}

impl WorkerHandle {
    fn start(arbiter: &Arbiter, shared: WorkerShared, alarm: &Arc<Alarm>) -> Self {
        let (metrics, vital) = (Arc::clone(&shared.services.mailboxes.workers), alarm.vital("worker"));
        let actor = Worker::start_in_arbiter(&arbiter.handle(), move |_| Worker::new(shared, vital));
        let gate = Gate::new(worker::MAILBOX, metrics);
        WorkerHandle { serve: Sender::new(&actor, Arc::clone(&gate)), drain: Sender::new(&actor, gate) }
    }
}

/// One registry shard a worker, on the workers' threads.
fn services(
    config: &ServerConfig,
    arbiters: &[Arbiter],
    (arbiter, (core, journal)): (&Arbiter, (Core, Option<Journal>)),
    alarm: &Arc<Alarm>,
) -> Arc<Services> {
    let notification_metrics = Arc::default();
    let mailboxes = Mailboxes::default();
    let shards = arbiters
        .iter()
        .map(|arbiter| Shard::start(&arbiter.handle(), REGISTRY_MAILBOX, Arc::clone(&mailboxes.registry), alarm))
        .collect();
    let metrics = (Arc::clone(&mailboxes.notifications), Arc::clone(&notification_metrics));
    let notifications =
        NotificationsHandle::start(&arbiter.handle(), NOTIFICATIONS_MAILBOX, core, journal, metrics, alarm);
    Arc::new(Services {
        store: Arc::clone(&config.store),
        registry: RegistryHandle::new(shards),
        notifications,
        notification_metrics,
        clock: Clock::System,
        settings: config.commands.clone(),
        counters: Counters::default(),
        store_failures: StoreFailures::new(Clock::System, Arc::clone(alarm)),
        mailboxes,
    })
}
