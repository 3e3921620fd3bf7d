//! The pool: connections that are all prepared alike, replaced when they break, and never waited for without an end.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Hook, HookError, Object, PoolError, Runtime};
use futures_util::future::try_join_all;

use super::connect::{Connector, reason};
use super::statements;
use crate::store::StoreError;

/// Hands out connections.
pub(super) struct Pool {
    pool: deadpool_postgres::Pool,
    limits: Limits,
}

/// How long the database may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For a connection, its preparation included.
    pub(super) connect: Duration,
    /// For a statement, and for a group of them.
    pub(super) statement: Duration,
}

impl Pool {
    /// A pool of at most `size` connections. None is made yet.
    pub(super) fn new(connector: &Connector, size: usize, limits: Limits) -> Result<Self, StoreError> {
        let pool = deadpool_postgres::Pool::builder(connector.manager())
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .post_create(Hook::async_fn(move |client, _| {
                Box::pin(async move { prepare(client, limits.statement).await.map_err(HookError::Backend) })
            }))
            .build()
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Pool { pool, limits })
    }

    /// A connection, for as long as it is held. One that broke meanwhile is replaced.
    pub(super) async fn get(&self) -> Result<Connection, StoreError> {
        let client = tokio::time::timeout(self.limits.connect, self.pool.get());
        let client = client.await.map_err(|_| StoreError::Failed("no connection to the database in time".into()))?;
        let client =
            client.map_err(|error| StoreError::Failed(format!("no connection to the database: {}", why(&error))))?;
        // Longer than the database's own limit: its answer leaves the connection as good as it was.
        Ok(Connection { client, limit: self.limits.statement + self.limits.statement / 4 })
    }

    /// Closes all connections.
    pub(super) fn close(&self) {
        self.pool.close();
    }
}

fn why(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => reason(error),
        error => error.to_string(),
    }
}

/// A connection of the pool: given back when dropped.
pub(super) struct Connection {
    client: Object,
    limit: Duration,
}

impl Connection {
    /// Has `work` done on it, but not for longer than a statement may take. What is not done by then is given up: its
    /// outcome is not known, so the connection, which may still be busy with it, is closed.
    pub(super) async fn within<T>(self, work: impl AsyncFnOnce(&ClientWrapper) -> T) -> Result<T, StoreError> {
        match tokio::time::timeout(self.limit, work(&self.client)).await {
            Ok(done) => Ok(done),
            Err(_) => {
                drop(Object::take(self.client));
                let seconds = self.limit.as_secs_f32();
                Err(StoreError::Failed(format!("the database did not answer within {seconds} s")))
            }
        }
    }
}

/// Sets the connection up and prepares all statements, in two round trips.
///
/// Everything that the store does goes by an index: plans must not depend on statistics that are missing or old, as for a
/// table that was filled a moment ago, nor be made anew each time. A transaction that is left open, as its client hangs,
/// holds locks; so it is ended.
async fn prepare(client: &ClientWrapper, limit: Duration) -> Result<(), tokio_postgres::Error> {
    let limit = limit.as_millis();
    client
        .batch_execute(&format!(
            "SET statement_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}; \
             SET default_transaction_isolation = 'read committed'; SET jit = off; \
             SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
             SET enable_mergejoin = off"
        ))
        .await?;
    try_join_all(statements::ALL.iter().map(|sql| client.prepare_cached(sql))).await?;
    Ok(())
}
