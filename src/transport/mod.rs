//! From sockets to blocks: TLS 1.3, 16 KiB blocks, the SMP handshake, listeners and outgoing connections.
//!
//! Knows sockets and `protocol`; never actors, never the store.

pub mod block_io;
