//! A running server as its clients see it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use smp_server::client::{Client, ClientError, ConnectOptions};
use smp_server::protocol::Version;
use smp_server::protocol::address::ServerAddress;

use super::server::{Installation, Server, Stopped};

/// How long anything may take. Generous: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a condition.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A server with its address.
pub struct Relay {
    server: Server,
    address: ServerAddress,
}

impl Relay {
    /// Starts a server in `installation`.
    pub fn start(installation: Installation) -> Self {
        Relay::of(Server::start_in(installation))
    }

    /// A server that runs already.
    pub fn of(server: Server) -> Self {
        let address = server.smp_address().parse().expect("the server's address");
        Relay { server, address }
    }

    /// The process.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The address for clients.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// A client of the newest version.
    pub async fn connect(&self) -> Client {
        self.connect_with(&ConnectOptions::default()).await.expect("connected")
    }

    /// A client of this version.
    pub async fn connect_in(&self, version: u16) -> Client {
        let options = ConnectOptions::default().with_version(Version(version));
        let client = self.connect_with(&options).await.expect("connected");
        assert_eq!(client.version(), Version(version));
        client
    }

    /// A client that connects as `options` say.
    pub async fn connect_with(&self, options: &ConnectOptions) -> Result<Client, ClientError> {
        let options = ConnectOptions { timeout: PATIENCE, ..options.clone() };
        let mut client = Client::connect(&self.address, &options).await?;
        client.set_timeout(PATIENCE);
        Ok(client)
    }

    /// Asks the server to stop, or kills it, and waits for its end, without holding up the test's other tasks.
    pub async fn end(self, signal: Signal) -> Stopped {
        let end = move || if signal == Signal::KILL { self.server.kill() } else { self.server.stop() };
        let stopped = tokio::task::spawn_blocking(end).await.expect("the server ended");
        let orderly = stopped.status.success();
        assert!(orderly || signal == Signal::KILL, "{:?}: {}", stopped.status, stopped.output.join("\n"));
        stopped
    }

    /// Ends the server by this signal and starts another in its place.
    pub async fn restart_by(self, signal: Signal) -> Relay {
        Relay::start(self.end(signal).await.installation)
    }

    /// Stops the server and starts another in its place.
    pub async fn restart(self) -> Relay {
        self.restart_by(Signal::TERM).await
    }
}

/// Looks again and again until `condition` holds, which it has to do in time.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
