//! Handshake messages.
