//! Clients that are services.

mod association;
mod delivery;
mod ends;
mod pages;
mod roles;
mod subscription;
