//! A connection for a thread that may block, with the schema's lock.

use std::future::Future;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;

use crate::store::postgres::connect::{Connector, SchemaName, reason};
use crate::store::postgres::lock::SchemaLock;
use crate::store::postgres::schema::{self, Create, Preparation, UnfinishedImport};
use crate::store::transfer::TransferError;

/// A session on a schema on which no server of ours works, with a runtime of its own that runs while it is used.
pub struct Session {
    // In this order: what is dropped last runs the rest.
    client: Client,
    _lock: SchemaLock,
    runtime: Runtime,
    place: String,
    schema: SchemaName,
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
        Ok(Session { client, _lock: lock, runtime, place, schema: connector.schema().clone() })
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
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

    /// Opens the schema, which has to be whole and at the newest level.
    ///
    /// # Errors
    /// It is not; the text says what to do.
    pub fn require_schema(&mut self) -> Result<(), TransferError> {
        let how =
            Preparation { create: Create::Never, unfinished_import: UnfinishedImport::Refuse, confirm: &mut |_| false };
        self.runtime.block_on(schema::prepare(&mut self.client, &self.schema, how)).map(|_| ()).map_err(failed)
    }

    /// Begins a transaction with the creation of the schema.
    ///
    /// # Errors
    /// It exists, or cannot be made; the text says what to do.
    pub fn begin_new_schema(&self) -> Result<(), TransferError> {
        self.runtime.block_on(schema::begin_new(&self.client, &self.schema)).map_err(failed)
    }

    /// The note of [`Self::mark_unfinished`], if the schema is marked.
    ///
    /// # Errors
    /// The database failed.
    pub fn unfinished(&self) -> Result<Option<String>, TransferError> {
        let mark = self.wait(schema::import_mark(&self.client, &self.schema))?;
        // What stands before the note is one text without `: `.
        Ok(mark.map(|mark| mark.split_once(": ").map(|(_, note)| note.to_owned()).unwrap_or_default()))
    }

    /// Marks the schema as one that no server may start on, and notes by what it is filled.
    ///
    /// # Errors
    /// The database failed.
    pub fn mark_unfinished(&self, note: &str) -> Result<(), TransferError> {
        self.wait(schema::mark_import(&self.client, &self.schema, note))
    }

    /// Removes the mark.
    ///
    /// # Errors
    /// The database failed.
    pub fn mark_finished(&self) -> Result<(), TransferError> {
        self.wait(schema::clear_import_mark(&self.client, &self.schema))
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaName {
        &self.schema
    }
}

/// What a schema is found to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Whether it has tables of this server.
    pub exists: bool,
    /// Whether an interrupted transfer has left it.
    pub unfinished: bool,
    /// Whether there are messages in it.
    pub messages: bool,
}

/// Looks at a schema on which no server runs, and changes nothing.
///
/// # Errors
/// The database cannot be reached, or a server runs on the schema. Each says what to do.
pub fn look(connector: &Connector) -> Result<Found, TransferError> {
    let session = Session::open(connector)?;
    let has = |table: &str| {
        let sql = format!("SELECT to_regclass('{}.{table}') IS NOT NULL", session.schema().quoted());
        session.wait(session.client().query_one(&sql, &[]))?.try_get(0).map_err(failed)
    };
    let exists = has("msg_queues")?;
    let any = "SELECT EXISTS (SELECT FROM messages)";
    let messages = has("messages")? && session.wait(session.client().query_one(any, &[]))?.get(0);
    Ok(Found { exists, unfinished: session.unfinished()?.is_some(), messages })
}

/// An error that says all by itself.
pub fn failed(error: impl std::fmt::Display) -> TransferError {
    TransferError::Store(error.to_string())
}
