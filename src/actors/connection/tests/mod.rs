//! The connection actor alone: a scripted peer instead of a socket, a store in memory, a registry of its own.

mod authorization;
mod backpressure;
mod commands;
mod looking;
mod notifications;
mod peer;
mod service;
mod services;
pub(crate) mod store;
mod subscriptions;
mod unreadable;

use self::peer::Peer;
pub(crate) use self::peer::World;
pub(crate) use self::service::Service;
