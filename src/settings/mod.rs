//! Typed settings.
