//! What each command does, through the real binary, on each store.

mod batches;
mod creation;
mod credentials;
mod expiry;
mod lifetime;
mod links;
mod messages;
mod notifications;
mod persistence;
mod quota;
mod securing;
mod services;
mod sessions;
mod subscriptions;
