//! Stands between a server and its database's socket, counts what goes by, and makes the database slow, or silent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::cluster::{Cluster, USER};

/// How fast bytes go between server and database, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At once.
    Free,
    /// Whatever arrives together, after this time.
    Delayed(Duration),
    /// Not at all. Connections stay open, and new ones are taken.
    Stopped,
}

/// See the module. Ends when it is dropped, and cuts all connections off.
pub struct SlowDatabase {
    directory: TempDir,
    pace: watch::Sender<Pace>,
    carried: Arc<AtomicU64>,
}

impl SlowDatabase {
    /// Before this cluster. Free at first.
    pub fn before(cluster: &Cluster) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = cluster.socket();
        let path = directory.path().join(socket.file_name().expect("a socket's name"));
        let (pace, paces) = watch::channel(Pace::Free);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(async { UnixListener::bind(path) }).expect("a socket");
        let carried = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&carried);
        thread::spawn(move || runtime.block_on(accept(listener, socket, paces, counter)));
        SlowDatabase { directory, pace, carried }
    }

    /// Sets the pace.
    pub fn set(&self, pace: Pace) {
        self.pace.send_replace(pace);
    }

    /// Bytes that have come from either side by now.
    pub fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// What to connect to.
    pub fn connection(&self) -> String {
        format!("postgresql://{USER}@/{USER}?host={}", self.directory.path().display())
    }
}

async fn accept(listener: UnixListener, socket: PathBuf, mut paces: watch::Receiver<Pace>, carried: Arc<AtomicU64>) {
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted.expect("a connection").0,
            gone = gone(&mut paces) => return gone,
        };
        let (socket, paces, carried) = (socket.clone(), paces.clone(), Arc::clone(&carried));
        tokio::spawn(async move {
            // A database that is not there: the client is cut off.
            let Ok(database) = UnixStream::connect(socket).await else { return };
            let ((from_client, to_client), (from_database, to_database)) = (client.into_split(), database.into_split());
            tokio::select! {
                () = copy(from_client, to_database, paces.clone(), &carried) => {}
                () = copy(from_database, to_client, paces, &carried) => {}
            }
        });
    }
}

/// Resolves when the pace is set by nobody any more.
async fn gone(paces: &mut watch::Receiver<Pace>) {
    while paces.changed().await.is_ok() {}
}

/// Copies until either end is gone.
async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut paces: watch::Receiver<Pace>,
    carried: &AtomicU64,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        carried.fetch_add(read as u64, Ordering::Relaxed);
        let Ok(pace) = paces.wait_for(|pace| *pace != Pace::Stopped).await.map(|pace| *pace) else { return };
        if let Pace::Delayed(time) = pace {
            tokio::time::sleep(time).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
