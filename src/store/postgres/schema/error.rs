//! Why a schema cannot be used, in words for the operator.

use tokio_postgres::Error;

use super::super::connect::{SchemaName, reason};

/// Why a schema was not opened, created or migrated. Nothing was changed, except that of several migrations those before
/// the one that failed were done.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It does not exist, and was not to be created.
    #[error("there is no schema \"{schema}\" in the database \"{database}\"")]
    Missing {
        /// The schema.
        schema: SchemaName,
        /// The database.
        database: String,
    },
    /// It exists, and was to be created.
    #[error(
        "the schema \"{schema}\" exists already in the database \"{database}\". If what it holds is not needed: \
        `smp-server database delete` says how to delete it; or set another name in db_schema"
    )]
    Exists {
        /// The schema.
        schema: SchemaName,
        /// The database.
        database: String,
    },
    /// It has tables of something else.
    #[error("the schema \"{0}\" has tables that are not this server's: set another name in db_schema")]
    Foreign(SchemaName),
    /// An import into it did not end.
    #[error(
        "the schema \"{schema}\" is incomplete: an import into it was interrupted ({mark}). Run the import again, or delete \
        the schema"
    )]
    ImportInProgress {
        /// The schema.
        schema: SchemaName,
        /// The mark.
        mark: String,
    },
    /// Migrations were needed and not confirmed.
    #[error(
        "the schema \"{schema}\" is older than this server. Back up the database, then start with --confirm-migrations up \
        to upgrade it by: {}",
        names.join(", ")
    )]
    Older {
        /// The schema.
        schema: SchemaName,
        /// Those that are to be done.
        names: Vec<String>,
    },
    /// There are migrations that this version does not know, and to undo them was not confirmed.
    #[error(
        "the schema \"{schema}\" was upgraded by a newer server. Use that, or back up the database and start with \
        --confirm-migrations down to undo: {}",
        names.join(", ")
    )]
    Newer {
        /// The schema.
        schema: SchemaName,
        /// Those that are not known.
        names: Vec<String>,
    },
    /// There are migrations that this version does not know and that cannot be undone.
    #[error(
        "the schema \"{schema}\" was upgraded by a newer server, and these migrations cannot be undone: {}. Use that server",
        names.join(", ")
    )]
    NoWayBack {
        /// The schema.
        schema: SchemaName,
        /// Those without a way back.
        names: Vec<String>,
    },
    /// Its migrations are not this server's.
    #[error("the schema \"{schema}\" has another history: its migration {found} stands where {expected} should")]
    Different {
        /// The schema.
        schema: SchemaName,
        /// This server's migration.
        expected: String,
        /// The database's.
        found: String,
    },
    /// `public.digest` of the extension pgcrypto is not there.
    #[error(
        "the database \"{database}\" lacks the extension pgcrypto in its schema public. A superuser or the database's owner \
        has to create it:\n  sudo -u postgres psql -d {database} -c 'CREATE EXTENSION IF NOT EXISTS pgcrypto;'\n\
        (if it is there in another schema: ALTER EXTENSION pgcrypto SET SCHEMA public;)"
    )]
    NoPgcrypto {
        /// The database.
        database: String,
    },
    /// PostgreSQL is too old.
    #[error("PostgreSQL {found} is too old: 14 or newer is needed")]
    OldPostgres {
        /// Its version.
        found: String,
    },
    /// Our role must not create schemas.
    #[error(
        "the schema \"{schema}\" cannot be created: {reason}. Create it as a superuser or the database's owner:\n  \
        sudo -u postgres psql -d {database} -c 'CREATE SCHEMA {schema} AUTHORIZATION {user};'"
    )]
    NotAllowed {
        /// The schema.
        schema: SchemaName,
        /// The database.
        database: String,
        /// Our role.
        user: String,
        /// What the database says.
        reason: String,
    },
    /// A migration failed, and was rolled back.
    #[error("the migration {name} of the schema \"{schema}\" failed and was rolled back: {reason}")]
    Migration {
        /// The schema.
        schema: SchemaName,
        /// The migration.
        name: String,
        /// What the database says.
        reason: String,
    },
    /// The database failed.
    #[error("the database failed: {0}")]
    Failed(String),
}

impl From<Error> for SchemaError {
    fn from(error: Error) -> Self {
        SchemaError::Failed(reason(&error))
    }
}
