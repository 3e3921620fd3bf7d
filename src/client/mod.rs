//! An SMP client.
