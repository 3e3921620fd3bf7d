//! The database as a [`Source`](crate::store::transfer::Source) and a [`Sink`](crate::store::transfer::Sink) of transfers.
//!
//! Both hold the schema's lock: they never work beside a server of ours. They block their thread.

mod page;
mod postponed;
mod session;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use session::{Found, look};
pub use sink::PostgresSink;
pub use source::PostgresSource;
