//! One process on one schema.
//!
//! A session's advisory lock, which PostgreSQL gives back when the session ends in whatever way. Its key is the first 8
//! bytes, as a big-endian number, of the SHA-256 of `smp-server schema ` and the schema's name; locks of other databases
//! are others. The Haskell server takes no such lock: that it does not run on the schema, its operator has to know.

use std::time::Duration;

use openssl::sha::sha256;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connect::{ConnectError, Connector, SchemaName, reason};

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "the schema \"{schema}\" is in use by another smp-server process ({place}): stop the server before you run a \
        command on its database"
    )]
    Held {
        /// The schema.
        schema: SchemaName,
        /// The database.
        place: String,
    },
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The database failed.
    #[error("the schema \"{schema}\" cannot be locked: {reason}")]
    Failed {
        /// The schema.
        schema: SchemaName,
        /// What the database says.
        reason: String,
    },
}

/// What becomes of a lock that is kept, for the log.
#[derive(Debug)]
pub enum LockEvent {
    /// Its connection broke.
    Lost,
    /// It could not be taken again; this is tried further.
    NotTaken(LockError),
    /// It was taken again.
    TakenAgain,
}

/// How long another process may still have the lock: PostgreSQL ends the session of a process that was killed once it has
/// noticed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lock of a schema, held until it is dropped or its connection breaks ([`Self::keep`] takes it again).
#[derive(Debug)]
pub struct SchemaLock {
    connector: Connector,
    client: Client,
    connection: JoinHandle<()>,
}

impl SchemaLock {
    /// Takes the lock, on a connection of its own.
    ///
    /// # Errors
    /// Another process has it; the database cannot be reached.
    pub async fn take(connector: &Connector) -> Result<SchemaLock, LockError> {
        let (client, connection) = connector.connect_with_task().await?;
        let schema = connector.schema();
        let (patience, key) = (PATIENCE.as_millis(), key(schema));
        let statement = format!("SET lock_timeout = {patience}; SELECT pg_advisory_lock({key}); RESET lock_timeout");
        match client.batch_execute(&statement).await {
            Ok(()) => Ok(SchemaLock { connector: connector.clone(), client, connection }),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                Err(LockError::Held { schema: schema.clone(), place: connector.to_string() })
            }
            Err(error) => Err(LockError::Failed { schema: schema.clone(), reason: reason(&error) }),
        }
    }

    /// Whether it is held still, as far as is known.
    pub fn is_held(&self) -> bool {
        !self.client.is_closed()
    }

    /// Holds the lock for as long as this is polled: when its connection breaks, it is taken again every `interval` until
    /// that succeeds. What happens is told to `happened`.
    pub async fn keep(mut self, interval: Duration, mut happened: impl FnMut(LockEvent)) {
        loop {
            // A task that panicked has ended its connection too.
            let _ = (&mut self.connection).await;
            happened(LockEvent::Lost);
            self = Self::take_again(self.connector, interval, &mut happened).await;
            happened(LockEvent::TakenAgain);
        }
    }

    async fn take_again(connector: Connector, interval: Duration, happened: &mut impl FnMut(LockEvent)) -> SchemaLock {
        loop {
            tokio::time::sleep(interval).await;
            match Self::take(&connector).await {
                Ok(lock) => return lock,
                Err(error) => happened(LockEvent::NotTaken(error)),
            }
        }
    }
}

fn key(schema: &SchemaName) -> i64 {
    let hash = sha256(format!("smp-server schema {schema}").as_bytes());
    hash.iter().take(8).fold(0, |key, byte| key << 8 | i64::from(*byte))
}
