//! The running server as actors.
//!
//! | actor | file | owns |
//! |---|---|---|
//! | [`connection::Connection`] | `connection/` | one client: its session, subscriptions and outbound queue |
//! | [`registry::SubscriptionRegistry`] | `registry/` | which connection is subscribed to which queue |
//! | [`worker::Worker`] | `worker.rs` | the connections of one thread: handshakes, the sweep, orderly close |
//! | [`housekeeping::Housekeeping`] | `housekeeping.rs` | expiry of messages |
//!
//! They reach each other only through the typed, bounded handles of [`mailbox`]. [`system`] starts and stops them.

pub mod clock;
pub mod connection;
pub mod enrolment;
pub mod housekeeping;
pub mod mailbox;
pub mod metrics;
pub mod notifications;
pub mod registry;
pub mod run;
pub mod supervision;
pub mod system;
pub mod worker;
