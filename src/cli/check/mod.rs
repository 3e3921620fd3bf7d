//! `smp-server check`: the whole life of a queue against any SMP server, step by step.
//!
//! Acts as two clients, a recipient and a sender. Each step is timed and printed; the first that fails ends the check.
//! Leaves nothing behind on a server that passes.

mod life;
mod report;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;

pub use report::CheckError;

use super::console::Console;
use super::error::CommandError;
use super::options::CheckArguments;
use crate::client::{Client, ConnectOptions};
use crate::protocol::address::{ServerAddress, ServerAddressWithPassword};
use crate::protocol::{Version, VersionRange};
use report::{Failure, Report};

/// Which server to check, and how.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The server, with the password for new queues if it wants one.
    pub address: ServerAddressWithPassword,
    /// The newest version to speak, if not the newest that both sides know.
    pub max_version: Option<Version>,
    /// How long a step may take.
    pub timeout: Duration,
}

/// The command: checks the server on a runtime of its own.
///
/// # Errors
/// As [`run`].
pub fn check(arguments: CheckArguments, console: &mut Console<'_>) -> Result<(), CommandError> {
    let options = CheckOptions {
        address: arguments.address,
        max_version: arguments.max_version.map(Version),
        timeout: Duration::from_secs(arguments.timeout.into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&options, console.output())).map_err(|error| match error {
        CheckError::Step { .. } => CommandError::refused(format!("the check failed: {error}")),
        CheckError::Output(error) => CommandError::Console(error),
    })
}

/// Checks the server and prints each step to `out`.
///
/// # Errors
/// The first step that fails, with what was expected and what came; or that `out` cannot be written.
pub async fn run(options: &CheckOptions, out: &mut dyn Write) -> Result<(), CheckError> {
    let mut report = Report::new(out);
    let server = Server::new(options);
    let recipient = report.step("connect as recipient", server.connect()).await?;
    let sender = report.step("connect as sender", server.connect()).await?;
    report.note(format_args!("version {}", recipient.version().0))?;
    life::Life { report, recipient, sender, password: server.password }.check().await
}

/// The server under test.
struct Server {
    address: ServerAddress,
    options: ConnectOptions,
    timeout: Duration,
    password: Option<Bytes>,
}

impl Server {
    fn new(options: &CheckOptions) -> Self {
        let ServerAddressWithPassword { address, password } = options.address.clone();
        let password = password.map(|password| Bytes::copy_from_slice(password.as_bytes()));
        let supported = VersionRange::SUPPORTED;
        let newest = options.max_version.unwrap_or(supported.max());
        let versions = VersionRange::new(supported.min(), newest).unwrap_or(supported);
        let connect = ConnectOptions { versions, timeout: options.timeout, ..ConnectOptions::default() };
        Server { address, options: connect, timeout: options.timeout, password }
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let mut client = Client::connect(&self.address, &self.options).await?;
        client.set_timeout(self.timeout);
        Ok(client)
    }
}
