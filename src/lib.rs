//! A relay of the SimpleX Messaging Protocol (SMP), versions 6 to 20.
//!
//! The map of the house. Arrows go one way: `actors` use `store`, `transport` and `protocol`; `transport` uses
//! `protocol`; `store` uses only the types of `protocol`; nothing points back at `actors`. `actors` is handed the checked
//! `settings` by `cli`, to which `main` gives the function that runs the server.
//!
//! - [`protocol`]: bytes in, values out. Every command, response and error, blocks, handshake and cryptography. Pure: no
//!   I/O, no clock, no async.
//! - [`store`]: what is kept: the [`store::Store`] trait, its records, the stores that implement it (SQLite and PostgreSQL),
//!   and the ways from one to the other.
//! - [`transport`]: TLS, 16 KiB blocks and the SMP handshake over a socket; listeners; outgoing connections.
//! - [`actors`]: the running server: connections, the subscription registry, housekeeping, and the bounded mailboxes
//!   through which they talk.
//! - [`settings`]: the INI file, environment and their validation: typed settings, read once.
//! - [`cli`]: one function per command of the `smp-server` binary.
//! - [`client`]: an SMP client for `smp-server check`, tests and benches.

pub mod actors;
pub mod cli;
pub mod client;
pub mod protocol;
pub mod settings;
pub mod store;
pub mod transport;
