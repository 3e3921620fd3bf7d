//! Message bodies as delivered.
