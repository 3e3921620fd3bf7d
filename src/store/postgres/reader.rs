//! The tasks that read: each takes what waits, up to a limit, and sends it as one pipeline.
//!
//! Each read is one statement, so all of it is of the same moment. What its rows mean is found out by who asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::pipeline::{self, Param, Step};
use super::pool::Pool;
use super::runtime::{SharedLine, take};
use super::writer::Counters;
use crate::store::StoreError;
use crate::store::line::Queued;

/// Reads that share a pipeline: they wait for each other's answers, so not many.
const PIPELINE_READS: usize = 16;

/// A statement that reads, and where its rows go.
pub(super) struct Read {
    pub(super) sql: &'static str,
    pub(super) params: Vec<Param<'static>>,
    pub(super) answer: oneshot::Sender<Result<Vec<Row>, StoreError>>,
}

/// Serves the line until it is closed and empty.
pub(super) async fn run(pool: Arc<Pool>, line: SharedLine<Read>, counters: Arc<Counters>) {
    while let Some(reads) = take(&line, |reads: &[Queued<Read>]| reads.len() < PIPELINE_READS).await {
        serve(&pool, reads, &counters).await;
    }
}

async fn serve(pool: &Pool, mut reads: Vec<Queued<Read>>, counters: &Counters) {
    // Nobody waits for these any more.
    reads.retain(|read| !read.work().answer.is_closed());
    if reads.is_empty() {
        return;
    }
    counters.round_trips.fetch_add(1, Ordering::Relaxed);
    let steps = reads.iter_mut().map(|read| {
        let read = read.work_mut();
        Step { sql: read.sql, params: std::mem::take(&mut read.params) }
    });
    let steps: Vec<Step<'_>> = steps.collect();
    let results = match pool.get().await {
        Ok(connection) => connection.within(async |client| pipeline::statements(client, steps).await).await,
        Err(error) => Err(error),
    };
    match results {
        Ok(results) => reads.into_iter().zip(results).for_each(|(read, result)| answer(read, result, counters)),
        Err(error) => reads.into_iter().for_each(|read| answer(read, Err(error.clone()), counters)),
    }
}

fn answer(read: Queued<Read>, result: Result<Vec<Row>, StoreError>, counters: &Counters) {
    if result.is_err() {
        counters.failures.fetch_add(1, Ordering::Relaxed);
    }
    // An error here means that the asker has gone.
    let _gone = read.leave().answer.send(result);
}
