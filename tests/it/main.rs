//! Tests through the real binary and real sockets. One crate, because each integration test crate is linked anew.
//!
//! A test gets a server of its own from [`support::Server`], on a free port and in a temporary directory, so all of them
//! run at the same time.

// Test code says what went wrong by panicking; the exceptions of clippy.toml reach only functions marked as tests.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod behaviour;
mod check;
mod configuration;
mod crash;
mod hostile;
mod house;
mod independent_client;
mod init;
mod life;
mod logs;
mod migration;
mod notification_load;
mod service_load;
mod soak;
mod support;
