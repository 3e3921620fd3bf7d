//! A connection for a thread that may block, with the schema's lock.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;

use crate::store::postgres::connect::{Connector, reason};
use crate::store::postgres::lock::SchemaLock;
use crate::store::transfer::TransferError;

/// A session on a schema on which no server of ours works, with a runtime of its own that runs while it is used.
pub struct Session {
    // In this order: what is dropped last runs the rest.
    client: Client,
    _lock: SchemaLock,
    runtime: Runtime,
    place: String,
}

impl Session {
    /// Connects and takes the schema's lock.
    ///
    /// # Errors
    /// The database cannot be reached, or a server runs on the schema. Each says what to do.
    pub fn open(connector: &Connector) -> Result<Self, TransferError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| TransferError::Store(format!("cannot start a runtime: {error}")))?;
        let lock = runtime.block_on(SchemaLock::take(connector)).map_err(failed)?;
        let client = runtime.block_on(connector.connect()).map_err(failed)?;
        let place = format!("schema \"{}\" of {connector}", connector.schema());
        Ok(Session { client, _lock: lock, runtime, place })
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The connection, for what changes its state.
    pub fn client_mut(&mut self) -> (&mut Client, &Runtime) {
        (&mut self.client, &self.runtime)
    }

    /// Waits for what the database answers.
    ///
    /// # Errors
    /// It failed; the text names it.
    pub fn wait<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, TransferError> {
        let answer = self.runtime.block_on(answer);
        answer.map_err(|error| TransferError::Store(format!("{}: {}", self.place, reason(&error))))
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn run(&self, statements: &str) -> Result<(), TransferError> {
        self.wait(self.client.batch_execute(statements))
    }

    /// What it is a session on, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// An error that says all by itself.
pub fn failed(error: impl std::fmt::Display) -> TransferError {
    TransferError::Store(error.to_string())
}
