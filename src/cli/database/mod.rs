//! `smp-server database`: moving queues and messages between the Haskell server's files, the embedded store and PostgreSQL;
//! and checking the store that the server runs on.
//!
//! Nothing is begun before it is known that it can be finished: what is there and what is not, that no server runs, and that
//! every line can be read. An import renames what it has imported; an export leaves what it has exported.

mod arguments;
mod check;
mod plan;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use arguments::{Action, DatabaseArguments, Kind, Table};

use super::console::Console;
use super::error::CommandError;
use super::import::{self, counts};
use super::transfer::{Tally, move_all};
use crate::protocol::QueueId;
use crate::settings::{self, Environment, Paths, StoreLocation};
use crate::store::files::LogFiles;
use crate::store::postgres::connect::Connector;
use crate::store::postgres::transfer::{PostgresSink, PostgresSource, look};
use crate::store::sqlite::transfer::{SqliteSink, SqliteSource};
use crate::store::transfer::{Item, Put, Sink, Source, TransferError, file};
use plan::{Plan, Step};

/// Runs the command.
pub fn database(
    paths: &Paths,
    environment: &Environment,
    arguments: &DatabaseArguments,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    super::require_installation(paths)?;
    if arguments.action == Action::Check {
        return check::check(paths, environment, arguments.repair, console);
    }
    if arguments.repair {
        return Err(CommandError::refused("--repair is an option of `smp-server database check` only"));
    }
    let connector = connector(paths, environment, arguments)?;
    if arguments.action == Action::Delete {
        return delete(&connector, console);
    }
    let on_database = settings::load(paths, environment)
        .is_ok_and(|loaded| matches!(loaded.settings.store.location, StoreLocation::Postgres(_)));
    let plan = Plan::make(paths, arguments, on_database)?;
    let mover = Mover { paths, connector: &connector, skip_warnings: arguments.skip_warnings };
    mover.refuse_target(&plan)?;
    confirm(&plan, &connector, arguments.yes, console)?;
    let tally = mover.run(&plan, console)?;
    console.say(format_args!("Done: {}", counts(&tally)))?;
    if arguments.action == Action::Import {
        import::back_up(plan.originals(), console)?;
    }
    Ok(console.say(plan.advice(on_database))?)
}

/// How to connect: the command line overrides the INI.
fn connector(
    paths: &Paths,
    environment: &Environment,
    arguments: &DatabaseArguments,
) -> Result<Connector, CommandError> {
    let mut options = settings::load_database(paths, environment)?.options;
    if let Some(connection) = &arguments.connection {
        options.connection = connection.clone();
    }
    if let Some(schema) = &arguments.schema {
        options.schema = schema.clone();
    }
    Connector::new(&options).map_err(|error| CommandError::refused(format!("database connection: {error}")))
}

/// Says how to delete the schema. That is for the operator to do, who may have more in that database.
fn delete(connector: &Connector, console: &mut Console<'_>) -> Result<(), CommandError> {
    let (found, schema) = (look(connector)?, connector.schema());
    if !found.exists && !found.unfinished {
        return Err(CommandError::refused(format!("there is no schema \"{schema}\" in the {connector}")));
    }
    console.say(format_args!("Open with psql the {connector}"))?;
    Ok(console
        .say(format_args!("Delete the schema with all its queues and messages: DROP SCHEMA {schema} CASCADE;"))?)
}

fn confirm(plan: &Plan, connector: &Connector, yes: bool, console: &mut Console<'_>) -> Result<(), CommandError> {
    console.say(plan.describe(connector))?;
    match if yes { Some(true) } else { console.yes_or_no("Continue", false)? } {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::refused("nothing was moved")),
        None => Err(CommandError::refused("nothing was moved: nobody has answered. Pass --yes to be asked nothing.")),
    }
}

/// Who moves.
struct Mover<'a> {
    paths: &'a Paths,
    connector: &'a Connector,
    skip_warnings: bool,
}

impl Mover<'_> {
    /// Refuses what could not be written at the end.
    fn refuse_target(&self, plan: &Plan) -> Result<(), CommandError> {
        if plan.from == Kind::Postgres || plan.to == Kind::Postgres {
            self.refuse_schema(plan)?;
        }
        let [queues, messages, _] = self.paths.foreign_stores();
        match plan.to {
            Kind::Postgres => Ok(()),
            Kind::Sqlite => refuse_file(&self.paths.store()),
            Kind::Log => {
                let written = [(queues, plan.table.queues()), (messages, plan.table.messages())];
                written.iter().filter(|(_, written)| *written).try_for_each(|(path, _)| refuse_file(path))
            }
        }
    }

    /// The schema has to be there to be read or to get messages; else it is made, or an interrupted transfer goes on in it.
    fn refuse_schema(&self, plan: &Plan) -> Result<(), CommandError> {
        let found = look(self.connector)?;
        let wanted = plan.from == Kind::Postgres || plan.step == Step::MessagesInto;
        let goes_on = found.unfinished && plan.step == Step::Store;
        if found.exists == wanted || (goes_on && !wanted) {
            return Ok(());
        }
        let (refusal, advice) = if wanted { ("does not exist", NO_SCHEMA) } else { ("exists already", SCHEMA) };
        let (schema, connector) = (self.connector.schema(), self.connector);
        let cut_off = if !wanted && plan.step == Step::Store { CUT_OFF } else { "" };
        Err(CommandError::refused(format!("the schema \"{schema}\" {refusal} in the {connector}.\n{advice}{cut_off}")))
    }

    fn run(&self, plan: &Plan, console: &mut Console<'_>) -> Result<Tally, CommandError> {
        match plan.step {
            Step::Files | Step::MessagesInto => {
                let checked = plan.files.clone().check(self.skip_warnings, console)?;
                let mut sink = self.file_sink(plan)?;
                let tally = checked.copy(&mut *sink, self.skip_warnings, console)?;
                console.say("Finishing...")?;
                sink.finish()?;
                Ok(tally)
            }
            Step::Store => self.move_store(plan, console),
        }
    }

    fn file_sink(&self, plan: &Plan) -> Result<Box<dyn Sink>, TransferError> {
        Ok(match (plan.to, plan.step) {
            (Kind::Sqlite, _) => Box::new(SqliteSink::create(&self.paths.store())?),
            (_, Step::MessagesInto) => Box::new(PostgresSink::messages(self.connector)?),
            _ => Box::new(PostgresSink::create(self.connector)?),
        })
    }

    /// Moves a store of ours: reads it once to know that all of it can be read, then moves it from where an interrupted
    /// transfer stopped.
    fn move_store(&self, plan: &Plan, console: &mut Console<'_>) -> Result<Tally, CommandError> {
        let mut tally = Tally::default();
        move_all(&mut *self.source(plan)?, &mut Nowhere, "Checking", &mut tally, console)?;
        tally.check(self.skip_warnings)?;
        let mut source = self.source(plan)?;
        let (mut sink, last) = self.store_sink(plan, &*source)?;
        if let Some(last) = last {
            console.say("Going on where an interrupted transfer stopped.")?;
            source.skip_to(&last)?;
        }
        let mut moved = Tally::default();
        move_all(&mut *source, &mut *sink, "Moving", &mut moved, console)?;
        moved.check(self.skip_warnings)?;
        console.say("Finishing...")?;
        sink.finish()?;
        Ok(tally)
    }

    fn source(&self, plan: &Plan) -> Result<Box<dyn StoreSource>, TransferError> {
        Ok(match plan.from {
            Kind::Sqlite => Box::new(SqliteSource::open(&self.paths.store())?),
            _ => Box::new(PostgresSource::open(self.connector)?),
        })
    }

    fn store_sink(
        &self,
        plan: &Plan,
        source: &dyn StoreSource,
    ) -> Result<(Box<dyn Sink>, Option<QueueId>), TransferError> {
        Ok(match plan.to {
            Kind::Postgres => {
                let (sink, last) = PostgresSink::resume(self.connector, &source.mark()?)?;
                (Box::new(sink), last)
            }
            Kind::Sqlite => {
                let (sink, last) = SqliteSink::resume(&self.paths.store(), &source.mark()?)?;
                (Box::new(sink), last)
            }
            Kind::Log => {
                let [queues, messages, _] = self.paths.foreign_stores();
                let (queues, messages) =
                    (plan.table.queues().then_some(&*queues), plan.table.messages().then_some(&*messages));
                (Box::new(LogFiles::create(queues, messages)?), None)
            }
        })
    }
}

const SCHEMA: &str = "If what it holds is not needed: `smp-server database delete` says how to delete it.\n\
                      Or name another one with --schema.";

/// The last thing that an import does is to rename what it has moved.
const CUT_OFF: &str = "\nIf an import into it said \"Finishing\" and was then cut off, nothing is missing in it: rename \
                       smp-server.db to smp-server.db.bak instead.";

const NO_SCHEMA: &str = "Check db_connection and db_schema of smp-server.ini, or name the right ones with --database and \
                         --schema.\nTo import messages, import the queues before them: `smp-server database import queues`.";

fn refuse_file(path: &Path) -> Result<(), CommandError> {
    match file::is_present(path) {
        true => {
            let path = path.display();
            Err(CommandError::refused(format!("{path} exists already.\nMove it away if it is not needed.")))
        }
        false => Ok(()),
    }
}

/// A store of ours as a source.
trait StoreSource: Source {
    /// Says which content this is.
    fn mark(&self) -> Result<String, TransferError>;

    /// Goes on after this queue.
    fn skip_to(&mut self, queue: &QueueId) -> Result<(), TransferError>;
}

impl StoreSource for SqliteSource {
    fn mark(&self) -> Result<String, TransferError> {
        SqliteSource::mark(self)
    }

    fn skip_to(&mut self, queue: &QueueId) -> Result<(), TransferError> {
        SqliteSource::skip_to(self, queue)
    }
}

impl StoreSource for PostgresSource {
    fn mark(&self) -> Result<String, TransferError> {
        PostgresSource::mark(self)
    }

    fn skip_to(&mut self, queue: &QueueId) -> Result<(), TransferError> {
        PostgresSource::skip_to(self, queue)
    }
}

/// Where nothing is stored: to read a source to its end.
struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: Item) -> Result<Put, TransferError> {
        Ok(Put::Stored)
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}
