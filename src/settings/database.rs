//! `[STORE_LOG]` `db_*`: the PostgreSQL database that keeps queues and messages.

use std::fmt;
use std::time::Duration;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::keys;
use super::reader::Reader;

const DAY_SECONDS: u64 = 86_400;

/// How to reach a database, as libpq reads it: `postgresql://user:password@host/database?key=value` or `key=value ...`. It
/// may hold a password, so it is wiped when dropped and never shown.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct ConnectionString(String);

impl ConnectionString {
    /// This one, whatever it says.
    pub fn new(text: impl Into<String>) -> Self {
        ConnectionString(text.into())
    }

    /// With its password: only for whoever connects.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionString(..)")
    }
}

/// A store in PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Where it is.
    pub connection: ConnectionString,
    /// The schema of the tables.
    pub schema: String,
    /// Connections to it at a time.
    pub pool_size: usize,
    /// How long the rows of deleted queues are kept; zero: they go at once.
    pub deleted_ttl: Duration,
}

impl Database {
    /// Reads and checks the keys, which nobody else does: they may say anything while another store is used.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        reader.switch(&keys::DB_STORE_LOG);
        let days: u64 = reader.number(&keys::DB_DELETED_TTL, 0..=36_500, "days");
        Database {
            connection: reader
                .parse(&keys::DB_CONNECTION, ALLOWED_CONNECTION, parse_connection)
                .unwrap_or_else(|| ConnectionString::new("")),
            schema: reader.parse(&keys::DB_SCHEMA, ALLOWED_SCHEMA, parse_schema).unwrap_or_default(),
            pool_size: reader.number(&keys::DB_POOL_SIZE, 1..=1000, "connections"),
            deleted_ttl: Duration::from_secs(days * DAY_SECONDS),
        }
    }
}

/// What [`parse_connection`] accepts, for messages.
const ALLOWED_CONNECTION: &str =
    "a connection string of PostgreSQL, `postgresql://user@host/database` or `host=... dbname=...`";

fn parse_connection(text: &str) -> Option<ConnectionString> {
    (!text.is_empty() && !text.contains(char::is_control)).then(|| ConnectionString::new(text))
}

/// What [`parse_schema`] accepts, for messages.
const ALLOWED_SCHEMA: &str = "a name of 1 to 63 letters, digits and `_` that does not begin with a digit";

fn parse_schema(text: &str) -> Option<String> {
    let fits = (1..=63).contains(&text.len()) && !text.starts_with(|c: char| c.is_ascii_digit());
    (fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then(|| text.to_owned())
}
