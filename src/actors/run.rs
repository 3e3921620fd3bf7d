//! From validated settings to a running server.

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use actix_rt::System;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::clock::Clock;
use super::connection::CommandSettings;
use super::connection::core::Patience;
use super::housekeeping::expire_all;
use super::notifications::restore::Saved;
use super::system::{ServerConfig, serve};
use crate::cli::start::ServerSetup;
use crate::cli::store::open_store;
use crate::settings::{MessageExpiration, Settings, StoreLocation};
use crate::store::Store;
use crate::transport::accept::{AcceptOptions, Acceptor};
use crate::transport::file_limit::raise_file_limit;
use crate::transport::listener::any_address;
use crate::transport::tls::TlsServerOptions;

/// What may go wrong has many kinds here; all end in a line on the terminal.
type RunError = Box<dyn Error + Send + Sync>;

/// Exit code of a process that was told twice to stop, as shells count SIGINT.
const INTERRUPTED: i32 = 130;

/// Descriptors that are not connections: listeners, the embedded store, the runtime.
const OTHER_FILES: u64 = 64;

/// Opens the store and serves until SIGINT or SIGTERM. Blocks.
///
/// # Errors
/// The store can not be opened, a port not be listened on, a key not be used.
pub fn run(setup: ServerSetup) -> Result<(), RunError> {
    warn_of_few_files(raise_file_limit(), &setup.settings);
    let store = open_store(&setup.settings.store)?;
    let system = System::new();
    if setup.maintenance {
        return system.block_on(maintain(store, setup.settings.store.expiration));
    }
    let config = server_config(setup, store)?;
    system.block_on(async {
        let shutdown = shutdown_signal()?;
        serve(config, announce, shutdown).await.map_err(RunError::from)
    })?;
    info!("stopped");
    Ok(())
}

/// What is done on start and stop, without serving.
async fn maintain(store: Arc<dyn Store>, expiration: MessageExpiration) -> Result<(), RunError> {
    if expiration.on_start {
        let ttl = i64::try_from(expiration.ttl.as_secs()).unwrap_or(i64::MAX);
        let mut before = Clock::System.now();
        before.seconds = before.seconds.saturating_sub(ttl);
        expire_all(store.as_ref(), before).await?;
    }
    let counts = store.counts().await?;
    info!(queues = counts.queues, messages = counts.messages, "maintenance finished");
    store.close().await?;
    Ok(())
}

/// How many connections of clients there are descriptors for. `files`: how many this process may have open; `None` without
/// limit.
fn connections_for(files: Option<u64>, settings: &Settings) -> usize {
    // One more connection to the database holds the lock of the schema.
    let database = match &settings.store.location {
        StoreLocation::Postgres(database) => database.pool_size as u64 + 1,
        StoreLocation::Memory | StoreLocation::File(_) => 0,
    };
    let connections = files.map_or(u64::MAX, |files| files.saturating_sub(OTHER_FILES + database).max(1));
    usize::try_from(connections).unwrap_or(usize::MAX)
}

fn warn_of_few_files(files: Option<u64>, settings: &Settings) {
    let (possible, max_connections) = (connections_for(files, settings), settings.transport.max_connections);
    if possible < max_connections {
        warn!(
            max_connections,
            possible, "too few files may be open for max_connections: raise the limit (LimitNOFILE, ulimit -n)"
        );
    }
}

/// One line an address, for operators and for whoever let the system choose the port.
fn announce(addresses: &[SocketAddr]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    for address in addresses {
        // Standard output may be closed: the server serves all the same.
        let _ = writeln!(out, "Listening on {address}");
    }
    let _ = out.flush();
}

/// Resolves at the first SIGINT or SIGTERM; the second ends the process at once.
fn shutdown_signal() -> Result<impl Future<Output = ()>, RunError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        actix_rt::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(INTERRUPTED);
        });
    })
}

fn server_config(setup: ServerSetup, store: Arc<dyn Store>) -> Result<ServerConfig, RunError> {
    let transport = &setup.settings.transport;
    let accept = AcceptOptions {
        versions: transport.versions,
        timeout: transport.handshake_timeout,
        tls: TlsServerOptions { x448: transport.x448, ..TlsServerOptions::default() },
    };
    let acceptor = Acceptor::new(Arc::new(setup.identity.credentials()?), accept)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Ok(ServerConfig {
        listen: transport.ports.iter().map(|port| any_address(*port)).collect(),
        acceptor,
        store,
        commands: command_settings(&setup.settings),
        patience: patience(&setup.settings),
        expiry_interval: setup.settings.store.expiration.check_interval,
        expire_on_start: setup.settings.store.expiration.on_start,
        max_connections: transport.max_connections,
        max_handshakes: transport.max_handshakes,
        log_tls_errors: transport.log_tls_errors,
        workers: transport.workers.map_or(cores, NonZeroUsize::get),
        notifications: setup.settings.notifications,
        saved: saved(&setup)?,
    })
}

/// What waited for notifiers when the server ended. A server that keeps nothing on disk keeps no notifications either.
fn saved(setup: &ServerSetup) -> Result<Option<Saved>, RunError> {
    match setup.settings.store.location {
        StoreLocation::Memory => Ok(None),
        StoreLocation::File(_) | StoreLocation::Postgres(_) => Ok(Some(Saved::read(&setup.paths.log)?)),
    }
}

fn command_settings(settings: &Settings) -> CommandSettings {
    let expiration = &settings.store.expiration;
    CommandSettings {
        new_queues: settings.auth.new_queues,
        create_password: settings.auth.create_password.clone(),
        message_ttl: Some(i64::try_from(expiration.ttl.as_secs()).unwrap_or(i64::MAX)),
        expire_on_send: expiration.on_send,
        client_blocks: settings.transport.client_blocks,
        notification_ttl: i64::try_from(settings.notifications.ttl.as_secs()).unwrap_or(i64::MAX),
        end_interval: settings.subscriptions.end_interval,
    }
}

fn patience(settings: &Settings) -> Patience {
    Patience {
        inactive: settings.inactive_clients.map(|inactive| inactive.ttl),
        stalled: settings.transport.send_timeout,
        check_interval: settings.inactive_clients.map(|inactive| inactive.check_interval),
    }
}
