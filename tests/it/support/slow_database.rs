//! Stands between a server and its database's socket, and makes the database slow, or silent.

use std::path::PathBuf;
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
        thread::spawn(move || runtime.block_on(accept(listener, socket, paces)));
        SlowDatabase { directory, pace }
    }

    /// Sets the pace.
    pub fn set(&self, pace: Pace) {
        self.pace.send_replace(pace);
    }

    /// What to connect to.
    pub fn connection(&self) -> String {
        format!("postgresql://{USER}@/{USER}?host={}", self.directory.path().display())
    }
}

async fn accept(listener: UnixListener, socket: PathBuf, mut paces: watch::Receiver<Pace>) {
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted.expect("a connection").0,
            gone = gone(&mut paces) => return gone,
        };
        let (socket, paces) = (socket.clone(), paces.clone());
        tokio::spawn(async move {
            // A database that is not there: the client is cut off.
            let Ok(database) = UnixStream::connect(socket).await else { return };
            let ((from_client, to_client), (from_database, to_database)) = (client.into_split(), database.into_split());
            tokio::select! {
                () = copy(from_client, to_database, paces.clone()) => {}
                () = copy(from_database, to_client, paces) => {}
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
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let Ok(pace) = paces.wait_for(|pace| *pace != Pace::Stopped).await.map(|pace| *pace) else { return };
        if let Pace::Delayed(time) = pace {
            tokio::time::sleep(time).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
