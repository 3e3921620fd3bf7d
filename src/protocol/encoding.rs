//! Encodings of basic types.
