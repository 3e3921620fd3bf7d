//! `start` on a database: what must be so before the server may run on it, and what is made so.
//!
//! Nothing here serves. The schema is made or migrated only when no other server has it and nothing is left behind by it.

use std::io::IsTerminal;

use tokio_postgres::Client;
use tracing::{info, warn};

use crate::cli::console::Console;
use crate::cli::error::CommandError;
use crate::cli::options::{Migrations, StartOptions};
use crate::settings::{Database, Paths};
use crate::store::files::is_store_log_present;
use crate::store::postgres::connect::Connector;
use crate::store::postgres::lock::SchemaLock;
use crate::store::postgres::schema::{self, Change, Create, Preparation, Prepared, SchemaError, UnfinishedImport};
use crate::store::transfer::file;

/// The database of the settings, and where other stores would be.
pub struct DatabaseStart<'a> {
    /// Its settings.
    pub database: &'a Database,
    /// How to connect.
    pub connector: &'a Connector,
    /// The directories of the installation.
    pub paths: &'a Paths,
}

/// What is to be done with a schema that is not as it must be.
#[derive(Clone, Copy)]
struct Permission {
    create: Create,
    up: bool,
    down: bool,
}

impl DatabaseStart<'_> {
    /// Tells whether the server could run on it, and what it would do first. Reads only, also beside a running server.
    ///
    /// # Errors
    /// Whatever would keep the server from starting, but for a question that it would ask.
    pub fn check(&self, options: &StartOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
        block_on(async {
            let mut client = self.connector.connect().await.map_err(refused)?;
            self.refuse_other_stores(&client, options).await?;
            let permission = Permission { create: Create::Never, up: false, down: false };
            if let Some(note) = self.unused_store() {
                console.say(format_args!("note: {note}"))?;
            }
            match self.prepare(&mut client, permission).await {
                Ok(_) => Ok(()),
                Err(SchemaError::Missing { schema, .. }) => {
                    Ok(console.say(format_args!("note: the schema {schema} does not exist: `start` creates it"))?)
                }
                Err(error @ (SchemaError::Older { .. } | SchemaError::Newer { .. })) => {
                    Ok(console.say(format_args!("note: {error}"))?)
                }
                Err(error) => Err(refused(error)),
            }
        })
    }

    /// Makes the schema what the server needs: creates it, or migrates it once that is confirmed.
    ///
    /// # Errors
    /// Another server runs on it; queues or messages would be left behind; it cannot be used, or may not be changed.
    pub fn open(&self, options: &StartOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
        block_on(async {
            let _lock = SchemaLock::take(self.connector).await.map_err(refused)?;
            let mut client = self.connector.connect().await.map_err(refused)?;
            self.refuse_other_stores(&client, options).await?;
            if let Some(note) = self.unused_store() {
                warn!("{note}");
            }
            let confirmed = options.confirm_migrations;
            let down = confirmed == Some(Migrations::Down);
            let mut permission = Permission { create: Create::IfMissing, up: confirmed.is_some(), down };
            loop {
                match self.prepare(&mut client, permission).await {
                    Ok(prepared) => {
                        self.tell(prepared);
                        return Ok(());
                    }
                    Err(error) if confirmed.is_none() && ask(&error, &mut permission, console)? => {}
                    Err(error) => return Err(refused(error)),
                }
            }
        })
    }

    async fn prepare(&self, client: &mut Client, permission: Permission) -> Result<Prepared, SchemaError> {
        let mut confirm = |change: Change<'_>| match change {
            Change::Up(_) => permission.up,
            Change::Down(_) => permission.down,
        };
        let how = Preparation {
            create: permission.create,
            unfinished_import: UnfinishedImport::Refuse,
            confirm: &mut confirm,
        };
        schema::prepare(client, self.connector.schema(), how).await
    }

    fn tell(&self, prepared: Prepared) {
        let schema = self.connector.schema();
        match prepared {
            Prepared::Opened => {}
            Prepared::Created => info!(%schema, "created the schema"),
            Prepared::Migrated(migrations) => info!(%schema, migrations, "migrated the schema"),
        }
    }

    /// After a move to the embedded store the settings may still name the database.
    fn unused_store(&self) -> Option<String> {
        let store = self.paths.store();
        file::is_present(&store).then(|| {
            format!(
                "the embedded store {} is there and not used, because store_queues is `database`: move it away, or change \
                 the settings if it has the queues of this server",
                store.display()
            )
        })
    }

    /// The server would start without what lies there, or on two truths.
    async fn refuse_other_stores(&self, client: &Client, options: &StartOptions) -> Result<(), CommandError> {
        let exists = schema_exists(client, self.connector.schema().as_str()).await?;
        let [store_log, messages_log, journal] = self.paths.foreign_stores();
        let schema = self.connector.schema();
        let refusal = if is_store_log_present(&store_log) && exists && !self.database.store_log {
            format!(
                "both {} and the schema {schema} are there. Move the file away if the queues in the database are the right \
                 ones; delete the schema (`smp-server database delete`) if those of the file are.",
                store_log.display()
            )
        } else if is_store_log_present(&store_log) && !exists {
            format!(
                "store_queues is `database`, and {} is there. Import it by `smp-server database import`.",
                store_log.display()
            )
        } else if file::is_present(&messages_log) {
            format!(
                "messages are kept in the database, and {} is there. Import it by `smp-server database import --table \
                 messages`, or move it away.",
                messages_log.display()
            )
        } else if file::is_present(&journal) && !self.database.import_journal {
            format!(
                "store_messages is `database`, and {} is there. Set store_messages to `journal` to have it imported on \
                 start, or move it away.",
                journal.display()
            )
        } else if file::is_present(&journal) && !exists {
            format!(
                "{} is there, but not the schema {schema} with its queues, in the {}. Check db_connection and db_schema, or \
                 move the directory away.",
                journal.display(),
                self.connector
            )
        } else if file::is_present(&self.paths.store()) && !exists && !options.skip_warnings {
            format!(
                "store_queues is `database`, and the embedded store {} is there. Import it by `smp-server database \
                 import`, or pass --skip-warnings to start with an empty database.",
                self.paths.store().display()
            )
        } else {
            return Ok(());
        };
        Err(CommandError::refused(refusal))
    }
}

async fn schema_exists(client: &Client, schema: &str) -> Result<bool, CommandError> {
    let statement = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";
    let row = client.query_one(statement, &[&schema]).await.map_err(refused)?;
    row.try_get(0).map_err(refused)
}

/// Asks whether the schema may be changed as `error` says. Whether it may: not without a terminal, where nobody answers.
fn ask(error: &SchemaError, permission: &mut Permission, console: &mut Console<'_>) -> Result<bool, CommandError> {
    let allowed = match error {
        SchemaError::Older { .. } if !permission.up => &mut permission.up,
        SchemaError::Newer { .. } if !permission.down => &mut permission.down,
        _ => return Ok(false),
    };
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    *allowed = console.confirm_change(error)?;
    Ok(*allowed)
}

fn refused(error: impl std::fmt::Display) -> CommandError {
    CommandError::refused(error.to_string())
}

/// On a runtime of its own: the server's is made when everything is ready for it.
fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::Console)?;
    runtime.block_on(work)
}
