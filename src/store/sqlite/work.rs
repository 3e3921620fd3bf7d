//! A piece of work for one of the store's threads, and the way its result goes back.
//!
//! Work may be run more than once: when a group of batches fails, it is rolled back and each batch is run again alone.

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::StoreError;
use crate::store::line::{Answer, Line};

/// Work on a connection, whatever its result.
pub(super) trait Work: Send {
    /// Does it inside the transaction that is open on the connection, and keeps the result.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Answers the result of the last run, or why there is none. Nobody may be there to hear it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);

    /// How many operations it counts as.
    fn operations(&self) -> usize;
}

/// Work of one of the store's threads in its line.
pub(super) type Queued = crate::store::line::Queued<Box<dyn Work>>;

struct Task<F, T> {
    run: F,
    operations: usize,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl Line<Box<dyn Work>> {
    /// Has `run` done by the thread, counting as `operations` and `weight` bytes, and waits for its result.
    ///
    /// Dropped before there was a place, nothing is done; dropped later, all is done.
    pub(super) async fn submit<T, F>(&self, operations: usize, weight: usize, run: F) -> Result<T, StoreError>
    where
        F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (work, answer) = work(operations, run);
        self.hand_over(weight, work, answer).await
    }
}

/// Makes work of a function.
fn work<F, T>(operations: usize, run: F) -> (Box<dyn Work>, Answer<T>)
where
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    T: Send + 'static,
{
    let (answer, receiver) = oneshot::channel();
    (Box::new(Task { run, operations, result: None, answer }), receiver)
}

impl<F, T> Work for Task<F, T>
where
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = None;
        self.result = Some((self.run)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Task { result, answer, .. } = *self;
        let result = outcome.and_then(|()| result.ok_or_else(|| StoreError::Failed("nothing was done".into())));
        // An error here means that the asker has gone, which changes nothing about what was done.
        let _gone = answer.send(result);
    }

    fn operations(&self) -> usize {
        self.operations
    }
}

/// The store's error for one of SQLite's. Its texts name tables and columns, never what is in them.
pub(super) fn failed(error: &rusqlite::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}
