//! The migrations, by the names that the Haskell server gives them.
//!
//! Their texts are ours, their results are the Haskell server's: it calls the functions by name, and it runs our `down` texts,
//! which the database keeps, when an operator goes back to a version of it that does not know a migration.

/// A step from one level of the schema to the next.
pub(super) struct Migration {
    /// The day on which it came up, and what it is about; they are done in the order of their names.
    pub name: &'static str,
    /// Does it: statements for one transaction, `search_path` being the schema.
    pub up: &'static str,
    /// Undoes it; the first cannot be undone.
    pub down: Option<&'static str>,
}

macro_rules! migration {
    ($name:literal, up) => {
        Migration { name: $name, up: include_str!(concat!("sql/", $name, ".up.sql")), down: None }
    };
    ($name:literal, up, down) => {
        Migration { down: Some(include_str!(concat!("sql/", $name, ".down.sql"))), ..migration!($name, up) }
    };
}

/// All that make the newest level.
pub(super) const MIGRATIONS: &[Migration] = &[
    migration!("20250207_initial", up),
    migration!("20250319_updated_index", up, down),
    migration!("20250320_short_links", up, down),
    migration!("20250514_service_certs", up, down),
    migration!("20250903_store_messages", up, down),
    migration!("20250915_queue_ids_hash", up, down),
];

/// The table that has the names of those that were done.
pub(super) const TABLE: &str = "CREATE TABLE migrations (name TEXT PRIMARY KEY, ts TIMESTAMP NOT NULL, down TEXT)";
