//! From sockets to blocks: TLS 1.3, 16 KiB blocks, the SMP handshake, listeners and outgoing connections.
//!
//! Knows sockets and `protocol`; never actors, never the store.

pub mod accept;
pub mod admission;
pub mod block_io;
pub mod block_stream;
pub mod client;
mod dial;
pub mod file_limit;
pub mod listener;
pub mod tls;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
