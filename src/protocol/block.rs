//! Blocks: 16384 bytes, padding, batches.
