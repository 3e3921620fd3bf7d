//! The SimpleX Messaging Protocol as values: bytes in, values out.
//!
//! Pure by rule: no tokio, no actix, no I/O, no clock, nothing of ours outside this module. Every type is encoded and
//! decoded in both directions, because the proxy, `smp-server check`, the bench and the tests are clients.

pub mod address;
pub mod block;
pub mod certificate;
pub mod command;
pub mod crypto;
pub mod encoding;
pub mod error;
pub mod forward;
pub mod handshake;
pub mod ids;
pub mod keys;
pub mod message;
pub mod response;
pub mod transmission;
pub mod version;

#[cfg(test)]
mod tests;

pub use ids::{CorrelationId, EntityId, MessageId, QueueId, ServiceId, SessionId};
pub use version::{Version, VersionRange};
