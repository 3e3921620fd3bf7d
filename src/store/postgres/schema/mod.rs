//! The schema: exactly the Haskell server's, so that either server can open what the other has made.
//!
//! Its level is the list of migrations in its table `migrations`. Nothing of ours is ever added to it: a mark of ours, that an
//! import is not finished, is a comment on the schema.

mod error;
mod import_mark;
mod migrations;
mod run;
mod state;

#[cfg(test)]
mod tests;

use tokio_postgres::Client;

pub use error::SchemaError;
pub use import_mark::{clear_import_mark, import_mark, mark_import};

use super::connect::SchemaName;
use migrations::{MIGRATIONS, Migration};
use state::{Done, State};

/// What is to happen when there is no schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Create {
    /// Create it.
    IfMissing,
    /// Refuse.
    Never,
}

/// What is to happen when an import into the schema was interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnfinishedImport {
    /// Refuse: a server must not run on it.
    Refuse,
    /// Go on: for those who import again or delete.
    Accept,
}

/// A change of an existing schema that needs to be confirmed, with the names of its migrations in the order in which they are
/// done. The caller maps `--confirm-migrations up` (only `Up`), `down` (both) and the prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// These will be done.
    Up(&'a [&'a str]),
    /// These, which only a newer server knows, will be undone by the texts that it left in the database.
    Down(&'a [&'a str]),
}

/// How to open a schema.
pub struct Preparation<'a> {
    /// Whether to create it.
    pub create: Create,
    /// Whether an unfinished import is in the way.
    pub unfinished_import: UnfinishedImport,
    /// Asked before an existing schema is changed. It blocks the thread while it asks.
    pub confirm: &'a mut (dyn FnMut(Change<'_>) -> bool + Send),
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prepared {
    /// It was at the newest level: nothing.
    Opened,
    /// It was created.
    Created,
    /// It was brought to the newest level by so many migrations, up or down.
    Migrated(usize),
}

/// Opens, creates or migrates the schema, as `how` says. At the newest level this is one query.
///
/// # Errors
/// Nothing that the server could use is there, or may be made; each text says what to do.
pub async fn prepare(client: &mut Client, schema: &SchemaName, how: Preparation<'_>) -> Result<Prepared, SchemaError> {
    let state = State::read(client, schema).await?;
    refuse_unusable(&state, schema, &how)?;
    match plan(schema, &state.done)? {
        // A schema that was made for us, as our role may not, is as good as none: nobody needs to be asked.
        Plan::Up(all) if state.is_new() && how.create == Create::IfMissing => {
            run::create(client, schema, all, &state).await.map(|()| Prepared::Created)
        }
        Plan::Up([]) => Ok(Prepared::Opened),
        Plan::Up(missing) => {
            let names: Vec<&str> = missing.iter().map(|migration| migration.name).collect();
            if !(how.confirm)(Change::Up(&names)) {
                return Err(SchemaError::Older { schema: schema.clone(), names: owned(&names) });
            }
            run::up(client, schema, missing, &state).await.map(|()| Prepared::Migrated(missing.len()))
        }
        Plan::Down(unknown) => {
            let names: Vec<&str> = unknown.iter().rev().map(|done| done.name.as_str()).collect();
            if !(how.confirm)(Change::Down(&names)) {
                return Err(SchemaError::Newer { schema: schema.clone(), names: owned(&names) });
            }
            run::down(client, schema, &names).await.map(|()| Prepared::Migrated(names.len()))
        }
    }
}

/// Begins a transaction with the creation of the schema, for an import that is to appear all at once; the connection has the
/// schema in its `search_path`. A failure ends no transaction: the connection is to be dropped then.
///
/// # Errors
/// It exists ([`SchemaError::Exists`]), or cannot be made.
pub async fn begin_new(client: &Client, schema: &SchemaName) -> Result<(), SchemaError> {
    let state = State::read(client, schema).await?;
    let how =
        Preparation { create: Create::IfMissing, unfinished_import: UnfinishedImport::Refuse, confirm: &mut |_| false };
    refuse_unusable(&state, schema, &how)?;
    if !state.is_new() {
        return Err(SchemaError::Exists { schema: schema.clone(), database: state.database });
    }
    client.batch_execute("BEGIN").await?;
    run::create_within(client, schema, MIGRATIONS, &state).await
}

impl State {
    /// Whether there is nothing that could be lost.
    fn is_new(&self) -> bool {
        self.done.is_empty() && !self.has_tables
    }
}

fn refuse_unusable(state: &State, schema: &SchemaName, how: &Preparation<'_>) -> Result<(), SchemaError> {
    let (schema, database) = (schema.clone(), state.database.clone());
    if !state.exists && how.create == Create::Never {
        return Err(SchemaError::Missing { schema, database });
    }
    if state.has_tables && state.done.is_empty() {
        return Err(SchemaError::Foreign(schema));
    }
    if let (Some(mark), UnfinishedImport::Refuse) = (&state.import_mark, how.unfinished_import) {
        return Err(SchemaError::ImportInProgress { schema, mark: mark.clone() });
    }
    // Procedures with OUT arguments.
    if state.version.0 < 140_000 {
        return Err(SchemaError::OldPostgres { found: state.version.1.clone() });
    }
    match state.has_digest {
        true => Ok(()),
        false => Err(SchemaError::NoPgcrypto { database }),
    }
}

/// What would bring the schema to the newest level.
enum Plan<'a> {
    Up(&'static [Migration]),
    Down(&'a [Done]),
}

fn plan<'a>(schema: &SchemaName, done: &'a [Done]) -> Result<Plan<'a>, SchemaError> {
    let mut pairs = MIGRATIONS.iter().zip(done);
    if let Some((ours, theirs)) = pairs.find(|(ours, theirs)| ours.name != theirs.name) {
        let (expected, found) = (ours.name.to_owned(), theirs.name.clone());
        return Err(SchemaError::Different { schema: schema.clone(), expected, found });
    }
    let Some(unknown) = done.get(MIGRATIONS.len()..).filter(|unknown| !unknown.is_empty()) else {
        return Ok(Plan::Up(&MIGRATIONS[done.len()..]));
    };
    let without: Vec<&str> = unknown.iter().filter(|done| !done.can_be_undone).map(|done| done.name.as_str()).collect();
    match without.is_empty() {
        true => Ok(Plan::Down(unknown)),
        false => Err(SchemaError::NoWayBack { schema: schema.clone(), names: owned(&without) }),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
