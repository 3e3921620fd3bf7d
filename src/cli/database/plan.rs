//! What is moved from where to where. Pure but for looking which files there are.

use std::path::{Path, PathBuf};

use super::arguments::{Action, DatabaseArguments, Kind, Table};
use crate::cli::error::CommandError;
use crate::cli::import::Files;
use crate::settings::Paths;
use crate::store::files::is_store_log_present;
use crate::store::postgres::connect::Connector;
use crate::store::transfer::file;

/// How it is moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Files into a new store, all at once.
    Files,
    /// Messages of files into a database that has the queues.
    MessagesInto,
    /// A store of ours into another one or into files.
    Store,
}

/// What is moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// From where.
    pub from: Kind,
    /// To where.
    pub to: Kind,
    /// What.
    pub table: Table,
    /// How.
    pub step: Step,
    /// The files that are imported.
    pub files: Files,
    store: PathBuf,
    targets: [PathBuf; 2],
}

impl Plan {
    /// What `arguments` mean, where `on_database` is whether the server's settings say that it runs on PostgreSQL.
    ///
    /// # Errors
    /// It is not known what is meant, or there is nothing to be moved. Each says what to do.
    pub fn make(paths: &Paths, arguments: &DatabaseArguments, on_database: bool) -> Result<Self, CommandError> {
        let table = arguments.tables();
        let (from, to) = match arguments.action {
            Action::Export => {
                let usual = if on_database { Kind::Postgres } else { Kind::Sqlite };
                (arguments.from.unwrap_or(usual), arguments.to.unwrap_or(Kind::Log))
            }
            _ => (arguments.from.map_or_else(|| found(paths), Ok)?, arguments.to.unwrap_or(Kind::Postgres)),
        };
        let step = match (from, to, table) {
            _ if from == to => return Err(refused("--from and --to are the same store: name different ones")),
            (Kind::Log, Kind::Postgres, Table::Messages) => Step::MessagesInto,
            (Kind::Log, Kind::Sqlite, Table::Messages) => {
                return Err(refused(
                    "messages cannot be imported into the embedded store without their queues: use `all`",
                ));
            }
            (Kind::Log, ..) => Step::Files,
            (_, Kind::Log, _) | (_, _, Table::All) => Step::Store,
            _ => return Err(refused("queues and messages are moved together between these stores: use `all`")),
        };
        let files = if from == Kind::Log { required(paths, table)? } else { Files::default() };
        let store = paths.store();
        if from == Kind::Sqlite && !file::is_present(&store) {
            return Err(refused(&format!(
                "{} does not exist: there is nothing to be moved.\n{ELSEWHERE}",
                store.display()
            )));
        }
        let [queues, messages, _] = paths.foreign_stores();
        Ok(Plan { from, to, table, step, files, store, targets: [queues, messages] })
    }

    /// What is about to happen.
    pub fn describe(&self, connector: &Connector) -> String {
        let what = match self.table {
            Table::Queues => "the queues",
            Table::Messages => "the messages",
            Table::All => "all queues and messages",
        };
        let database = format!("the schema {} of {connector}", connector.schema());
        let from = match self.from {
            Kind::Log => self.files.names(),
            Kind::Sqlite => self.store.display().to_string(),
            Kind::Postgres => database.clone(),
        };
        let to = match self.to {
            Kind::Log => self.target_names(),
            Kind::Sqlite => self.store.display().to_string(),
            Kind::Postgres => database,
        };
        let replaced = match self.step {
            Step::MessagesInto => "\nWARNING: messages that the database has already are deleted.",
            _ => "",
        };
        format!("This moves {what} of {from}\ninto {to}.{replaced}")
    }

    fn target_names(&self) -> String {
        let [queues, messages] = &self.targets;
        let written = [(queues, self.table.queues()), (messages, self.table.messages())];
        let written = written.iter().filter(|(_, written)| *written);
        written.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// What an import has made superfluous.
    pub fn originals(&self) -> impl Iterator<Item = &Path> {
        let store = (self.from == Kind::Sqlite).then_some(&*self.store);
        self.files.paths().chain(store)
    }

    /// What to do next.
    pub fn advice(&self, on_database: bool) -> String {
        let set = |value: &str| {
            format!(
                "Set `store_queues = {value}` and `store_messages = {value}` in [STORE_LOG] of smp-server.ini, then start the server."
            )
        };
        match (self.to, self.table) {
            (Kind::Postgres, Table::Queues) => {
                "Import the messages too: `smp-server database import messages`.".to_owned()
            }
            (Kind::Postgres, _) if on_database => "store_queues is `database` already: start the server.".to_owned(),
            (Kind::Postgres, _) => set("database"),
            (Kind::Log, Table::Queues) => "Export the messages too: `smp-server database export messages`.".to_owned(),
            (Kind::Log, Table::Messages) => "Export the queues too: `smp-server database export queues`.".to_owned(),
            (Kind::Log, Table::All) if on_database => set("memory"),
            (Kind::Sqlite, _) if on_database => set("memory"),
            (Kind::Log, Table::All) => self.advice_on_logs(),
            (Kind::Sqlite, _) => "store_queues is not `database`: start the server.".to_owned(),
        }
    }

    fn advice_on_logs(&self) -> String {
        let haskell = "The Haskell server can be started on these files, with `store_messages = memory`.";
        match file::is_present(&self.store) {
            true => format!("{haskell} Move {} away: this server does not start beside them.", self.store.display()),
            false => format!("{haskell} This server imports them when it is started."),
        }
    }
}

/// Where else it may be.
const ELSEWHERE: &str = "If it is in another directory, name that in SMP_SERVER_LOG_PATH.";

/// What there is to import.
fn found(paths: &Paths) -> Result<Kind, CommandError> {
    let [queues, messages, journal] = paths.foreign_stores();
    let files = is_store_log_present(&queues) || file::is_present(&messages) || file::is_present(&journal);
    match (files, file::is_present(&paths.store())) {
        (true, true) => Err(refused(&format!(
            "both files of the Haskell server and {} are there.\nSay which is to be imported: --from log or --from sqlite.",
            paths.store().display()
        ))),
        (true, false) => Ok(Kind::Log),
        (false, true) => Ok(Kind::Sqlite),
        (false, false) => Err(refused(&nothing_to_import(paths))),
    }
}

/// What was moved wholly is renamed: who asks again, after the command was cut off at its end, is told so.
fn nothing_to_import(paths: &Paths) -> String {
    let log = crate::store::files::STORE_LOG;
    let moved = [log, "smp-server.db"].map(|name| paths.log.join(format!("{name}.bak")));
    let before: String = moved
        .iter()
        .filter(|path| file::is_present(path))
        .map(|path| format!("\n{} is there: what it holds was imported already.", path.display()))
        .collect();
    format!(
        "there is nothing to import in {}: neither {log} nor smp-server.db.{before}\n{ELSEWHERE}",
        paths.log.display()
    )
}

/// The files that have to be there for this.
fn required(paths: &Paths, table: Table) -> Result<Files, CommandError> {
    let mut files = Files::find(paths)?;
    let [queues, messages, journal] = paths.foreign_stores();
    if table.queues() && files.queues.is_none() {
        return Err(refused(&format!(
            "{} does not exist: there are no queues to import.\n{ELSEWHERE}",
            queues.display()
        )));
    }
    if table.messages() && files.messages.is_none() {
        let advice = if table == Table::All {
            "\nIf there are none, import the queues alone: `database import queues`."
        } else {
            ""
        };
        return Err(refused(&format!(
            "neither {} nor {} exists: there are no messages to import.\n{ELSEWHERE}{advice}",
            messages.display(),
            journal.display()
        )));
    }
    files.queues = files.queues.filter(|_| table.queues());
    files.messages = files.messages.filter(|_| table.messages());
    Ok(files)
}

fn refused(text: &str) -> CommandError {
    CommandError::refused(text)
}
