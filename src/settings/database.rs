//! `[STORE_LOG]` `db_*`: the PostgreSQL database that keeps queues and messages.

use super::keys;
use super::reader::Reader;
use crate::store::postgres::connect::{ConnectionString, DatabaseOptions, SchemaName};

/// A store in PostgreSQL.
#[derive(Clone, Debug)]
pub struct Database {
    /// Where it is.
    pub options: DatabaseOptions,
    /// Connections to it at a time.
    pub pool_size: usize,
    /// Days for which the rows of deleted queues are kept; 0: they go at once.
    pub deleted_ttl: u32,
    /// Whether a store log beside the database is expected: the Haskell server has written changes to both.
    pub store_log: bool,
    /// Whether a journal directory of messages, which the Haskell server has had beside the database, is to be imported.
    pub import_journal: bool,
}

impl Database {
    /// Reads and checks the keys; `None` after a mistake. They may say anything while another store is used: nobody reads
    /// them then.
    pub(super) fn read(reader: &mut Reader<'_>, import_journal: bool) -> Option<Self> {
        let store_log = reader.switch(&keys::DB_STORE_LOG);
        let deleted_ttl = reader.number(&keys::DB_DELETED_TTL, 0..=36_500, "days");
        let pool_size = reader.number(&keys::DB_POOL_SIZE, 1..=1000, "connections");
        let connection = reader.explain(&keys::DB_CONNECTION, |text| {
            let connection = ConnectionString::from(text);
            connection.check().map(|()| connection)
        });
        let schema = reader.explain(&keys::DB_SCHEMA, str::parse::<SchemaName>);
        let options = DatabaseOptions { connection: connection?, schema: schema? };
        Some(Database { options, pool_size, deleted_ttl, store_log, import_journal })
    }
}
