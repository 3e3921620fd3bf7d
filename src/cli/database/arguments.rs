//! The command line of `database`: that of the Haskell server, and which stores are meant.

use clap::{Args, ValueEnum};

use crate::cli::options::{Secret, parse_connection};
use crate::store::postgres::connect::{ConnectionString, SchemaName};

/// Arguments of `database`.
#[derive(Args, Debug, Clone)]
pub struct DatabaseArguments {
    /// What to do
    #[arg(value_name = "COMMAND")]
    pub action: Action,
    /// What to move: the same as --table; not for check
    #[arg(value_name = "TABLE")]
    pub what: Option<Table>,
    /// What to move (default: all)
    #[arg(long, value_name = "TABLE", conflicts_with = "what")]
    pub table: Option<Table>,
    /// Where it is taken from (default: for an import, the files if there are any, else the embedded store; for an export,
    /// PostgreSQL if store_queues is `database`, else the embedded store)
    #[arg(long, value_name = "STORE")]
    pub from: Option<Kind>,
    /// Where it is put (default: for an import, PostgreSQL; for an export, the files)
    #[arg(long, value_name = "STORE")]
    pub to: Option<Kind>,
    /// Database connection string (default: db_connection of smp-server.ini)
    #[arg(short = 'd', long = "database", value_name = "DB_CONN", value_parser = Secret(parse_connection))]
    pub connection: Option<ConnectionString>,
    /// Database schema (default: db_schema of smp-server.ini)
    #[arg(long, value_name = "DB_SCHEMA")]
    pub schema: Option<SchemaName>,
    /// Database pool size (accepted for compatibility: one connection is enough)
    #[arg(long, value_name = "POOL_SIZE")]
    pub pool_size: Option<u16>,
    /// Leave out damaged lines and messages of queues that do not exist
    #[arg(long)]
    pub skip_warnings: bool,
    /// Of a check: set right what differs
    #[arg(long)]
    pub repair: bool,
    /// Ask nothing
    #[arg(short = 'y', long)]
    pub yes: bool,
}

impl DatabaseArguments {
    /// What to move.
    pub fn tables(&self) -> Table {
        self.table.or(self.what).unwrap_or(Table::All)
    }
}

/// What to do.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Import into the database.
    Import,
    /// Export to files.
    Export,
    /// Say how to delete the schema.
    Delete,
    /// Count the queues of each service again, and compare with what is kept.
    Check,
}

/// What to move.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Services and queues.
    Queues,
    /// Messages.
    Messages,
    /// Both.
    All,
}

impl Table {
    /// Whether queues are meant.
    pub fn queues(self) -> bool {
        self != Table::Messages
    }

    /// Whether messages are meant.
    pub fn messages(self) -> bool {
        self != Table::Queues
    }
}

/// A kind of store.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The store log and messages log of the Haskell server; also its journal directory, to import from.
    Log,
    /// The embedded store.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}
