//! What each command does, through the real binary, on each store.

mod batches;
mod creation;
mod credentials;
mod expiry;
mod lifetime;
mod links;
mod messages;
mod persistence;
mod quota;
mod securing;
mod sessions;
mod subscriptions;
