//! The protocol against the vectors in `tests/vectors`, made by the reference implementation, and against itself.

mod addresses;
mod commands;
mod fields;
mod hostile;
mod keys;
mod responses;
mod roundtrip;
mod strategies;
mod transmissions;
mod vectors;
