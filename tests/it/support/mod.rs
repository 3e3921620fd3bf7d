//! What the tests share: a server process of their own.

mod server;

pub use server::{Installation, Server};
