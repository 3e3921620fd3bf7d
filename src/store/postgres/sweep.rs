//! Housekeeping: expired messages and the rows of deleted queues, step by step.

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::columns::{ColumnError, Columns};
use super::pipeline::{self, Param, Step};
use super::pool::Pool;
use super::statements as sql;
use crate::store::StoreError;

/// Queues that a step of expiry looks at, for each message that it may delete.
const LOOKED_AT: i64 = 16;

/// Rows that a step of purging deletes.
pub(super) const PURGED: i64 = 1000;

/// A step.
pub(super) enum Sweep {
    /// Of expiry.
    Expire {
        /// Seconds since 1970 before which messages are expired.
        before: i64,
        /// About how many messages to delete.
        limit: u32,
        /// The recipient ID after which to look.
        after: Vec<u8>,
    },
    /// Of purging.
    Purge {
        /// Seconds since 1970 before which queues were deleted.
        before: i64,
    },
}

/// What a step did.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Messages or queues that were deleted.
    pub(super) deleted: u64,
    /// The recipient ID after which the next step of expiry is to look; `None` at the end.
    pub(super) next: Option<Vec<u8>>,
}

/// Where the result goes.
pub(super) type Answer = oneshot::Sender<Result<Swept, StoreError>>;

/// Does a step; answers also how many round trips it took.
pub(super) async fn run(pool: &Pool, sweep: Sweep) -> Result<(Swept, u64), StoreError> {
    match sweep {
        Sweep::Purge { before } => {
            let rows = read(pool, Step { sql: sql::PURGE, params: vec![Box::new(before), Box::new(PURGED)] }).await?;
            Ok((Swept { deleted: count(&rows).map_err(unreadable)?, next: None }, 1))
        }
        Sweep::Expire { before, limit, after } => expire(pool, before, i64::from(limit.max(1)), after).await,
    }
}

async fn expire(pool: &Pool, before: i64, limit: i64, after: Vec<u8>) -> Result<(Swept, u64), StoreError> {
    let params: Vec<Param<'_>> = vec![Box::new(after), Box::new(limit * LOOKED_AT), Box::new(before), Box::new(limit)];
    let rows = read(pool, Step { sql: sql::DUE, params }).await?;
    let (queues, next) = due(&rows).map_err(unreadable)?;
    let Some(queues) = queues else { return Ok((Swept { deleted: 0, next }, 1)) };
    let steps = vec![
        Step { sql: sql::LOCK, params: vec![Box::new(queues.clone())] },
        Step { sql: sql::EXPIRE, params: vec![Box::new(queues), Box::new(before)] },
    ];
    let done = pool.get().await?.within(async |client| pipeline::transaction(client, steps).await).await?;
    let rows = done.map_err(StoreError::from)?;
    let deleted = rows.get(1).map_or(Ok(0), |rows| count(rows)).map_err(unreadable)?;
    Ok((Swept { deleted, next }, 2))
}

/// One statement of its own.
async fn read(pool: &Pool, step: Step<'_>) -> Result<Vec<Row>, StoreError> {
    let mut results = pool.get().await?.within(async |client| pipeline::statements(client, vec![step]).await).await?;
    results.pop().unwrap_or_else(|| Ok(Vec::new()))
}

fn count(rows: &[Row]) -> Result<u64, ColumnError> {
    rows.first().map_or(Ok(0), |row| Ok(Columns::from(row, 0).take::<i64>()?.unsigned_abs()))
}

/// Recipient IDs as they are, whatever their length: another server may have made them.
type Ids = Option<Vec<Vec<u8>>>;

fn due(rows: &[Row]) -> Result<(Ids, Option<Vec<u8>>), ColumnError> {
    let Some(row) = rows.first() else { return Ok((None, None)) };
    let mut columns = Columns::from(row, 0);
    Ok((columns.take()?, columns.take()?))
}

fn unreadable(error: ColumnError) -> StoreError {
    StoreError::Failed(error.to_string())
}
