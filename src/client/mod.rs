//! An SMP client: for `smp-server check`, the tests, the bench, and whatever else talks to a relay.
//!
//! [`Client`] is one connection that its owner drives: nothing is read while nobody asks for anything, so a client that
//! does not read is simply one that is left alone. Requests are matched with answers by correlation ID; what comes
//! unasked waits in a bounded line of [`Event`]s. The client is strict: what a relay may not send is an error, never
//! skipped. [`Queue`], [`Sender`], [`Notifier`] and the link functions are the parts of a queue's life on top of it.
//! A client that connects as a service ([`ConnectOptions::service`]) signs as its service where the protocol demands it.
//!
//! The client never repeats a command by itself.

mod connection;
mod error;
mod link;
mod message;
mod notifier;
mod queue;
mod request;
mod sender;
mod service;

pub use connection::{Client, Event};
pub use error::ClientError;
pub use link::{open_link, read_link};
pub use message::ReceivedMessage;
pub use notifier::{Notifier, NotifierCredentials};
pub use queue::{NewQueue, Queue};
pub use request::Request;
pub use sender::Sender;
pub use service::ServiceSession;

pub use crate::transport::client::{ConnectError, ConnectOptions, ServiceCredentials};

#[cfg(test)]
mod tests;
