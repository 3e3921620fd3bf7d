//! Stores under test: each in a schema of its own.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_postgres::Client;

use super::super::cluster::{Cluster, Schema};
use super::super::connect::{Connector, DatabaseOptions, SchemaName};
use super::super::schema::{Create, Preparation, UnfinishedImport};
use super::super::{OpenError, PostgresOptions, PostgresStore};
use crate::store::Store;
use crate::store::conformance::{Limits, Subject};

/// A schema in the shared cluster, empty at first. To make one takes a while, so another test goes on with it.
pub struct PostgresSubject {
    schema: Option<Schema>,
}

/// Schemas that no test uses now.
static IDLE: Mutex<Vec<Schema>> = Mutex::new(Vec::new());

impl PostgresSubject {
    pub fn new() -> Self {
        let idle = IDLE.lock().unwrap().pop();
        if let Some(schema) = &idle {
            schema.sql("TRUNCATE messages, msg_queues, services");
        }
        PostgresSubject { schema: Some(idle.unwrap_or_else(|| Cluster::shared().schema())) }
    }

    fn schema(&self) -> &Schema {
        self.schema.as_ref().unwrap()
    }

    /// The schema's name.
    pub fn name(&self) -> &str {
        self.schema().name()
    }

    /// Waits until a statement of a store waits for [`Self::lock`].
    pub async fn until_waiting(&self) {
        let waiting = format!(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{}.msg_queues'::regclass",
            self.name()
        );
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.sql(&waiting) == "0" {
            assert!(Instant::now() < deadline, "nothing waits");
            tokio::task::yield_now().await;
        }
    }

    /// Where the store is.
    pub fn database(&self) -> DatabaseOptions {
        database(&self.schema().cluster().connection(), self.name())
    }

    /// Options for tests that need no limits.
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions { deleted_ttl: 0, pool_size: 4, ..PostgresOptions::new(self.database()) }
    }

    /// Runs SQL in the schema.
    pub fn sql(&self, sql: &str) -> String {
        self.schema().sql(sql)
    }

    /// Locks the table of queues until the returned connection is dropped: reads go on, writes wait. New connections of a
    /// store cannot prepare their statements meanwhile.
    pub async fn lock(&self) -> Client {
        self.begin("LOCK TABLE msg_queues IN EXCLUSIVE MODE").await
    }

    /// Locks all queues there are until the returned connection is dropped.
    pub async fn lock_queues(&self) -> Client {
        self.begin("SELECT FROM msg_queues FOR UPDATE").await
    }

    /// A connection in a transaction that has done this.
    async fn begin(&self, sql: &str) -> Client {
        let client = Connector::new(&self.database()).unwrap().connect().await.unwrap();
        client.batch_execute(&format!("BEGIN; {sql}")).await.unwrap();
        client
    }
}

impl Drop for PostgresSubject {
    fn drop(&mut self) {
        let schema = self.schema.take();
        match std::thread::panicking() {
            false => IDLE.lock().unwrap().extend(schema),
            // A test that failed may have left anything in it, and hold locks: it goes with the cluster.
            true => std::mem::forget(schema),
        }
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
