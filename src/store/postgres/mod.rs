//! The store in PostgreSQL, in the Haskell server's own schema.
//!
//! ```text
//!   apply, expire, purge ──> Line ──> writers: a group of batches, one pipeline, one commit, then the answers
//!   queues, ...          ──> Line ──> readers: what waits, one pipeline
//! ```
//!
//! - `connect`, `schema`, `lock`: how the database is reached, made and migrated, and kept for one process;
//! - `columns`, `statements`: how values stand in the tables, and all SQL;
//! - `operation`: the statement of an operation, and what its rows mean; `pipeline`: many statements, one round trip;
//! - `writer`, `reader`, `sweep`: the tasks, and what housekeeping asks for;
//! - `pool`, `runtime`: connections, and the thread on which they and the tasks live;
//! - `store`: the trait.
//!
//! A database that is gone, slow or silent fails what was asked of it, after a time; it never makes a line grow, and what
//! was sent to it is never sent again unless it is certain that nothing was done. No text of an error carries an ID or key.

pub mod columns;
pub mod connect;
pub mod lock;
mod operation;
mod pipeline;
mod pool;
mod reader;
mod runtime;
pub mod schema;
mod statements;
mod store;
mod sweep;
pub mod transfer;
mod writer;

#[cfg(test)]
#[path = "../../../tests/it/support/cluster.rs"]
pub(crate) mod cluster;
#[cfg(test)]
mod tests;

pub use store::{OpenError, PostgresOptions, PostgresStore};
