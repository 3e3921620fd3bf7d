//! Cryptography of the protocol, by libraries.
