//! Stores under test: each in a schema of its own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Client;

use super::super::cluster::{Cluster, Schema};
use super::super::connect::{Connector, DatabaseOptions, SchemaName};
use super::super::schema::{Create, Preparation, UnfinishedImport};
use super::super::{OpenError, PostgresOptions, PostgresStore};
use crate::store::Store;
use crate::store::conformance::{Limits, Subject};

/// A schema in the shared cluster.
pub struct PostgresSubject {
    schema: Schema,
}

impl PostgresSubject {
    pub fn new() -> Self {
        PostgresSubject { schema: Cluster::shared().schema() }
    }

    /// Where the store is.
    pub fn database(&self) -> DatabaseOptions {
        database(&self.schema.cluster().connection(), self.schema.name())
    }

    /// Options for tests that need no limits.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions { deleted_ttl: 0, pool_size: 4, ..PostgresOptions::new(self.database()) }
    }

    /// Runs SQL in the schema.
    pub fn sql(&self, sql: &str) -> String {
        self.schema.sql(sql)
    }

    /// Locks the table of queues until the returned connection is dropped: reads go on, writes wait.
    pub async fn lock(&self) -> Client {
        lock(&self.database()).await
    }
}

/// The database and schema as options.
pub fn database(connection: &str, schema: &str) -> DatabaseOptions {
    DatabaseOptions { connection: connection.into(), schema: schema.parse::<SchemaName>().unwrap() }
}

/// Opens a store, making its schema if need be.
pub fn open(options: &PostgresOptions) -> Result<PostgresStore, OpenError> {
    let confirm = &mut |_: super::super::schema::Change<'_>| false;
    let how = Preparation { create: Create::IfMissing, unfinished_import: UnfinishedImport::Refuse, confirm };
    PostgresStore::open(options, how)
}

/// Locks the table of queues against writers.
pub async fn lock(database: &DatabaseOptions) -> Client {
    let client = Connector::new(database).unwrap().connect().await.unwrap();
    client.batch_execute("BEGIN; LOCK TABLE msg_queues IN EXCLUSIVE MODE").await.unwrap();
    client
}

#[async_trait]
impl Subject for PostgresSubject {
    async fn open(&self, limits: Limits) -> Arc<dyn Store> {
        let options = PostgresOptions {
            message_queue_quota: limits.quota,
            max_waiting_batches: limits.max_waiting_batches,
            max_waiting_bytes: limits.max_waiting_bytes,
            wait_timeout: limits.wait_timeout,
            connect_timeout: Duration::from_secs(30),
            ..self.options()
        };
        Arc::new(open(&options).unwrap())
    }

    async fn stall_writes(&self) -> Box<dyn Send> {
        Box::new(self.lock().await)
    }
}
