//! What the tests share: a server process of their own, clients that load it.

mod cpu;
pub mod ledger;
pub mod load;
mod load_queue;
mod memory;
pub mod random;
mod server;

pub use cpu::processor_time;
pub use memory::resident_kib;
pub use server::{Installation, Server, Stopped};
