//! The conformance suite on PostgreSQL, and what only this store has: soft deletion, counters, round trips, a database
//! that fails.

mod conformance;
mod foreign;
mod outages;
mod proxy;
mod round_trips;
mod rules;
mod subject;
