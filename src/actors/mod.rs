//! The running server as actors.
