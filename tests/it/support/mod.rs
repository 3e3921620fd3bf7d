//! What the tests share: a server process of their own, clients for it and clients that load it, the stores that it may
//! run on.

pub mod cluster;
mod cpu;
pub mod ledger;
pub mod load;
mod load_queue;
pub mod many_queues;
mod memory;
mod narrow;
mod queue;
pub mod random;
mod relay;
mod server;
mod service;
pub mod slow_database;
mod store;

pub use cpu::processor_time;
pub use memory::resident_kib;
pub use narrow::connect_narrow;
pub use queue::{
    authenticator_key, body_of, contact_id, drain, is_refused, is_told_nothing, link_data, next_message, notified,
    refused, secured, signing_key, why,
};
pub use relay::{Relay, until};
pub use server::{Installation, Server, Stopped};
pub use service::{Service, queues_with, service_id};
pub use store::Store;
pub(crate) use store::{for_each_lasting_store, for_each_store};
