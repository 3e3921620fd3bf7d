//! The embedded store as source and sink.
