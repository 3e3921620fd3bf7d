//! Many statements, one round trip.
//!
//! The driver sends a statement when its future is polled for the first time, so all are polled once in their order, and
//! only then is the first answer waited for.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::ClientWrapper;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use futures_util::{FutureExt, TryStreamExt};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::connect::reason;
use crate::store::StoreError;

/// A parameter of a statement.
pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A statement with its parameters.
pub(super) struct Step<'a> {
    pub(super) sql: &'static str,
    pub(super) params: Vec<Param<'a>>,
}

/// Why a transaction was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// A statement failed by its own fault, and nothing was done: each part may be tried alone.
    Statement(StoreError),
    /// The database could not do it, and nothing was done: to be answered.
    Database(StoreError),
    /// It is not known whether it was done, or will be: to be answered, never to be tried again.
    Doubt(StoreError),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let (Failure::Statement(error) | Failure::Database(error) | Failure::Doubt(error)) = failure;
        error
    }
}

/// Does all steps in one transaction, in their order and one round trip; answers the rows of each.
///
/// Once it was polled it must be driven to its end, or the connection be dropped.
pub(super) async fn transaction(client: &ClientWrapper, steps: Vec<Step<'_>>) -> Result<Vec<Vec<Row>>, Failure> {
    let mut statements = Vec::with_capacity(steps.len());
    for step in &steps {
        statements.push(prepared(client, step.sql).await.map_err(|error| Failure::Database(failed(&error)))?);
    }
    let mut answers = vec![maybe_done(command(client, "BEGIN"))];
    answers.extend(steps.into_iter().zip(statements).map(|(step, statement)| {
        let params = step.params;
        maybe_done(query(client, statement, params))
    }));
    send(&mut answers).await;
    // A statement that was never sent leaves the others valid: they must not be committed without it.
    let sound = answers.iter_mut().all(|answer| !matches!(Pin::new(answer).output_mut(), Some(Err(_))));
    let mut last = [maybe_done(command(client, if sound { "COMMIT" } else { "ROLLBACK" }))];
    send(&mut last).await;
    let mut results = Vec::with_capacity(answers.len() + 1);
    for answer in answers.into_iter().chain(last) {
        results.push(answered(answer).await);
    }
    judge(results, sound)
}

/// Does all steps, each on its own, in their order and one round trip.
pub(super) async fn statements(client: &ClientWrapper, steps: Vec<Step<'_>>) -> Vec<Result<Vec<Row>, StoreError>> {
    let mut answers = Vec::with_capacity(steps.len());
    for step in steps {
        answers.push(match prepared(client, step.sql).await {
            Ok(statement) => maybe_done(query(client, statement, step.params)),
            Err(error) => MaybeDone::Done(Err(error)),
        });
    }
    send(&mut answers).await;
    let mut results = Vec::with_capacity(answers.len());
    for answer in answers {
        results.push(answered(answer).await.map_err(|error| failed(&error)));
    }
    results
}

type Answer<'a> = MaybeDone<BoxFuture<'a, Result<Vec<Row>, Error>>>;

/// The statement, which the connection has prepared when it was made: no round trip.
async fn prepared(client: &ClientWrapper, sql: &str) -> Result<Statement, Error> {
    client.prepare_cached(sql).await
}

fn query<'a>(
    client: &'a ClientWrapper,
    statement: Statement,
    params: Vec<Param<'a>>,
) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
    async move { client.query_raw(&statement, params).await?.try_collect().await }.boxed()
}

fn command<'a>(client: &'a ClientWrapper, sql: &'static str) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
    async move { client.batch_execute(sql).await.map(|()| Vec::new()) }.boxed()
}

/// Polls each future once, in their order.
async fn send(answers: &mut [Answer<'_>]) {
    poll_fn(|context| {
        for answer in answers.iter_mut() {
            let _not_yet = answer.poll_unpin(context);
        }
        Poll::Ready(())
    })
    .await;
}

async fn answered(mut answer: Answer<'_>) -> Result<Vec<Row>, Error> {
    (&mut answer).await;
    Pin::new(&mut answer).take_output().unwrap_or_else(|| Ok(Vec::new()))
}

/// What the answers to `BEGIN`, the statements, and `COMMIT` (if it was `committed`) or `ROLLBACK` say together.
fn judge(mut results: Vec<Result<Vec<Row>, Error>>, committed: bool) -> Result<Vec<Vec<Row>>, Failure> {
    let (last, first) = (results.pop(), results.first());
    // Without a transaction, each statement was one of its own.
    let begun = matches!(first, Some(Ok(_)));
    // A failed transaction answers COMMIT like a good one, and is rolled back. A COMMIT that is answered by a mere error
    // is rolled back too; without an answer, it may have been done.
    let known = match &last {
        Some(Ok(_)) => true,
        Some(Err(error)) => is_mere_error(error),
        None => false,
    };
    let rows: Result<Vec<_>, Error> = results.into_iter().skip(usize::from(begun)).collect();
    let error = match (rows, last) {
        (Ok(rows), Some(Ok(_))) if begun => return Ok(rows),
        (Err(error), _) | (Ok(_), Some(Err(error))) => error,
        (Ok(_), _) => return Err(Failure::Database(StoreError::Failed("nothing was done".into()))),
    };
    // What the database calls an error has undone all; an answer that was not understood tells nothing.
    let undone = !committed || error.as_db_error().is_some();
    Err(match begun && known && undone {
        true if concerns_one(&error) => Failure::Statement(failed(&error)),
        true => Failure::Database(failed(&error)),
        false => Failure::Doubt(failed(&error)),
    })
}

/// Whether the session goes on after it.
fn is_mere_error(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| matches!(error.parsed_severity(), Some(Severity::Error)))
}

/// Whether others may succeed where one failed so: not when the database lacks something, or is stopped or too slow.
fn concerns_one(error: &Error) -> bool {
    let of_class = |code: &SqlState, class: &str| code.code().starts_with(class);
    match error.as_db_error() {
        Some(db) => {
            is_mere_error(error) && !["08", "53", "57", "58", "F0", "XX"].iter().any(|class| of_class(db.code(), class))
        }
        // It was not sent, as a parameter does not fit its type.
        None => !error.is_closed(),
    }
}

/// The store's error for one of the driver's: without the details, in which PostgreSQL repeats values.
pub(super) fn failed(error: &Error) -> StoreError {
    StoreError::Failed(reason(error))
}
