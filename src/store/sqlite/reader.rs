//! The threads that read, each with its own connection: they see the last commit and never wait for the writer.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::open::{self, SharedConnection};
use super::work::{Queued, failed};

/// The end of the line that all readers share.
pub(super) type SharedLine = Arc<Mutex<mpsc::Receiver<Queued>>>;

/// Serves the line until it is closed and empty.
pub(super) fn run(connection: &SharedConnection, line: &SharedLine) {
    while let Some(mut work) = next(line) {
        let outcome = read(&open::lock(connection), &mut work);
        work.leave().answer(outcome.map_err(|error| failed(&error)));
    }
}

/// Waits for the next work. The readers that have nothing to do wait here for each other.
fn next(line: &SharedLine) -> Option<Queued> {
    line.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

/// One transaction, so that all of a batch is of the same moment. Dropped, it ends.
fn read(connection: &Connection, work: &mut Queued) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    work.work_mut().run(&transaction)
}
