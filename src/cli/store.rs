//! Opening the store that the settings name, as it is: whatever has to be asked about before is asked by `start`.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use crate::settings::{self, StoreLocation};
use crate::store::Store;
use crate::store::postgres::schema::{Change, Create, Preparation, UnfinishedImport};
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::sqlite::{SqliteOptions, SqliteStore};

/// Opens the store. Blocks.
///
/// # Errors
/// It can not be opened, another process uses it, or its schema is not that of this version. Each says what to do.
pub fn open_store(store: &settings::Store) -> Result<Arc<dyn Store>, Box<dyn Error + Send + Sync>> {
    match &store.location {
        StoreLocation::Memory => Ok(Arc::new(SqliteStore::open(&sqlite_options(store, None))?)),
        StoreLocation::File(path) => Ok(Arc::new(SqliteStore::open(&sqlite_options(store, Some(path.clone())))?)),
        StoreLocation::Postgres(database) => {
            let options = postgres_options(store, database);
            Ok(Arc::new(PostgresStore::open(&options, as_it_is(&mut |_| false))?))
        }
    }
}

/// `start` has prepared the schema: whatever it would have had to ask about in between is a reason not to run.
fn as_it_is(confirm: &mut (dyn FnMut(Change<'_>) -> bool + Send)) -> Preparation<'_> {
    Preparation { create: Create::Never, unfinished_import: UnfinishedImport::Refuse, confirm }
}

fn postgres_options(store: &settings::Store, database: &settings::Database) -> PostgresOptions {
    PostgresOptions {
        pool_size: database.pool_size,
        deleted_ttl: database.deleted_ttl,
        message_queue_quota: store.message_queue_quota,
        ..PostgresOptions::new(database.options.clone())
    }
}

fn sqlite_options(store: &settings::Store, path: Option<PathBuf>) -> SqliteOptions {
    SqliteOptions {
        path,
        sync: match store.sync {
            settings::Sync::Full => crate::store::sqlite::Sync::Full,
            settings::Sync::Normal => crate::store::sqlite::Sync::Normal,
        },
        message_queue_quota: store.message_queue_quota,
        ..SqliteOptions::default()
    }
}
