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

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::super::cluster::{Cluster, Schema};
    use super::super::connect::DatabaseOptions;
    use super::*;

    fn connector(schema: &Schema) -> Connector {
        let connection = schema.cluster().connection().as_str().into();
        let schema = schema.name().parse().expect("a good name");
        Connector::new(&DatabaseOptions { connection, schema }).expect("a good connection string")
    }

    #[tokio::test]
    async fn one_at_a_time_has_the_lock_of_a_schema() {
        let schema = Cluster::shared().schema();
        let connector = connector(&schema);
        let lock = SchemaLock::take(&connector).await.expect("the lock");
        assert!(lock.is_held());
        let text = SchemaLock::take(&connector).await.expect_err("a refusal").to_string();
        assert!(text.contains(schema.name()) && text.contains("stop the server"), "{text}");
        let other = Cluster::shared().schema();
        SchemaLock::take(&self::connector(&other)).await.expect("the lock of another schema");
        drop(lock);
        SchemaLock::take(&connector).await.expect("the lock that was given back");
    }

    #[tokio::test]
    async fn a_kept_lock_is_taken_again_when_its_connection_breaks() {
        let schema = Cluster::shared().schema();
        let connector = connector(&schema);
        let lock = SchemaLock::take(&connector).await.expect("the lock");
        let client = connector.connect().await.expect("a connection");
        let (sender, mut events) = mpsc::channel(8);
        let kept = tokio::spawn(lock.keep(Duration::from_millis(1), move |event| drop(sender.try_send(event))));
        let bits = key(connector.schema()) as u64;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' \
            AND classid = ($1::int8)::oid AND objid = ($2::int8)::oid";
        let halves = (i64::from((bits >> 32) as u32), i64::from(bits as u32));
        let ended = client.query(end, &[&halves.0, &halves.1]).await.expect("an answer");
        assert_eq!(ended.len(), 1, "the key is as documented");
        assert!(matches!(events.recv().await, Some(LockEvent::Lost)));
        assert!(matches!(events.recv().await, Some(LockEvent::TakenAgain)));
        assert!(matches!(SchemaLock::take(&connector).await, Err(LockError::Held { .. })));
        kept.abort();
    }
}
