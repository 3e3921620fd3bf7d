//! `smp-server journal`: messages of the Haskell server between its messages log and its journal directory.
//!
//! This server keeps messages in its own store and needs neither; the command is for who prepares files for the Haskell
//! server, or has them from it. Nothing appears under its name, and nothing is renamed, before everything is written.

use std::fs;
use std::path::PathBuf;

use super::console::Console;
use super::error::CommandError;
use super::options::{JournalAction, JournalArguments};
use super::replay::replay;
use super::transfer::{Tally, move_all};
use crate::protocol::QueueId;
use crate::settings::{self, Environment, Paths, StoreLocation};
use crate::store::files::{
    JOURNAL_DIRECTORY, JournalDirectory, JournalWriter, LogFiles, MESSAGE_LOG, MessageLog, QueueLog, STORE_LOG,
    is_store_log_present,
};
use crate::store::transfer::{Item, Put, Rejected, Sink, TransferError, file};

/// The command.
///
/// # Errors
/// What is missing or in the way, that the operator did not confirm, or what would be lost.
pub fn journal(
    paths: &Paths,
    environment: &Environment,
    arguments: &JournalArguments,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    super::require_installation(paths)?;
    let location = settings::load(paths, environment)?.settings.store.location;
    let journal = Journal {
        store_log: paths.log.join(STORE_LOG),
        messages: paths.log.join(MESSAGE_LOG),
        directory: paths.log.join(JOURNAL_DIRECTORY),
        location,
        skip_warnings: arguments.skip_warnings,
    };
    match arguments.action {
        JournalAction::Import => journal.import(console),
        JournalAction::Export => journal.export(console),
        JournalAction::Delete => journal.delete(console),
    }
}

/// The files that the command is about, and what the settings say.
struct Journal {
    store_log: PathBuf,
    messages: PathBuf,
    directory: PathBuf,
    location: StoreLocation,
    skip_warnings: bool,
}

impl Journal {
    fn import(&self, console: &mut Console<'_>) -> Result<(), CommandError> {
        let (messages, directory) = (self.messages.display(), self.directory.display());
        self.refuse_both()?;
        if file::is_present(&self.directory) {
            return Err(refused(format!("{directory} already exists: there is nothing to import.")));
        }
        if !file::is_present(&self.messages) {
            return Err(refused(format!("{messages} does not exist: there is nothing to import.")));
        }
        self.require_store_log()?;
        let warning =
            format!("WARNING: the messages of {messages} will be imported to the journal directory {directory}.");
        confirm(console, &warning, "the messages were NOT imported")?;

        let mut tally = Tally::default();
        let queues = replay(&self.store_log, &mut tally, console)?;
        let writer = Box::new(JournalWriter::create(&self.directory)?);
        let mut sink = Box::new(OfKnownQueues { queues: Some(queues), known: None, sink: writer });
        let mut source = MessageLog::open(&self.messages)?;
        move_all(&mut source, &mut *sink, "Importing messages", &mut tally, console)?;
        tally.check(self.skip_warnings)?;
        sink.finish()?;
        let kept = file::back_up(&self.messages)?;
        console.say(format_args!("Imported {} messages to {directory}", tally.messages))?;
        console.say(format_args!("The messages log was kept as {}", kept.display()))?;
        console.say("The Haskell server reads it with `store_messages = journal` in [STORE_LOG] of smp-server.ini.")?;
        Ok(())
    }

    fn export(&self, console: &mut Console<'_>) -> Result<(), CommandError> {
        let (messages, directory) = (self.messages.display(), self.directory.display());
        self.refuse_both()?;
        if file::is_present(&self.messages) {
            return Err(refused(format!("{messages} already exists: move it away to export the journal again.")));
        }
        if !self.directory.is_dir() {
            return Err(refused(format!("{directory} does not exist: there is no journal to export.")));
        }
        let in_database = self.queues_in_database()?;
        if !in_database {
            self.require_store_log()?;
        }
        let warning =
            format!("WARNING: the journal directory {directory} will be exported to the messages log {messages}.");
        confirm(console, &warning, "the journal was NOT exported")?;

        let mut tally = Tally::default();
        let queues = if in_database { None } else { Some(replay(&self.store_log, &mut tally, console)?) };
        let writer = Box::new(LogFiles::create(None, Some(&self.messages))?);
        let mut sink = Box::new(OfKnownQueues { queues, known: None, sink: writer });
        let mut source = JournalDirectory::open(&self.directory)?;
        move_all(&mut source, &mut *sink, "Exporting messages", &mut tally, console)?;
        tally.check(self.skip_warnings)?;
        sink.finish()?;
        console.say(format_args!("Exported {} messages to {messages}", tally.messages))?;
        console.say(match in_database {
            true => "The queues are in the database: export them with `smp-server database export queues`.",
            false => "The Haskell server reads it with `store_messages = memory` in [STORE_LOG] of smp-server.ini.",
        })?;
        Ok(())
    }

    fn delete(&self, console: &mut Console<'_>) -> Result<(), CommandError> {
        let directory = self.directory.display();
        if !self.directory.is_dir() {
            return Err(refused(format!("{directory} does not exist: there is no journal to delete.")));
        }
        let warning = format!("WARNING: all messages in {directory} will be deleted.\nTHIS CANNOT BE UNDONE!");
        confirm(console, &warning, "the messages were NOT deleted")?;
        fs::remove_dir_all(&self.directory).map_err(CommandError::file("delete", &self.directory))?;
        console.say(format_args!("Deleted the messages in {directory}"))?;
        Ok(())
    }

    /// Whichever of the two is newer, the operator has to say.
    fn refuse_both(&self) -> Result<(), CommandError> {
        if file::is_present(&self.messages) && file::is_present(&self.directory) {
            return Err(refused(format!(
                "both {} and {} are there.\nMove away the one with the older messages.",
                self.messages.display(),
                self.directory.display()
            )));
        }
        Ok(())
    }

    fn require_store_log(&self) -> Result<(), CommandError> {
        if matches!(self.location, StoreLocation::Memory) {
            return Err(refused("the store log is disabled: set `enable = on` in [STORE_LOG] of smp-server.ini."));
        }
        if !is_store_log_present(&self.store_log) {
            return Err(refused(format!(
                "{} does not exist: without it, it is not known which queues there are.",
                self.store_log.display()
            )));
        }
        Ok(())
    }

    /// Whether queues are in the database and messages in the journal: its directories say which queues there are.
    fn queues_in_database(&self) -> Result<bool, CommandError> {
        match &self.location {
            StoreLocation::Postgres(database) if database.import_journal => Ok(true),
            StoreLocation::Postgres(_) => Err(refused(
                "the settings say that messages are in the database: export them with `smp-server database export \
                 messages`.",
            )),
            StoreLocation::File(_) | StoreLocation::Memory => Ok(false),
        }
    }
}

fn refused(text: impl Into<String>) -> CommandError {
    CommandError::refused(text)
}

fn confirm(console: &mut Console<'_>, warning: &str, otherwise: &str) -> Result<(), CommandError> {
    if console.confirm(warning)? { Ok(()) } else { Err(refused(format!("{otherwise}: only a capital Y is a yes."))) }
}

/// Passes on the messages of queues that exist.
struct OfKnownQueues<S> {
    /// Without it, all are passed on.
    queues: Option<QueueLog>,
    /// The queue of the message before, and whether it exists.
    known: Option<(QueueId, bool)>,
    sink: Box<S>,
}

impl<S: Sink> OfKnownQueues<S> {
    fn exists(&mut self, queue: QueueId) -> Result<bool, TransferError> {
        match (self.known, &self.queues) {
            (_, None) => Ok(true),
            (Some((known, exists)), _) if known == queue => Ok(exists),
            (_, Some(queues)) => {
                let exists = queues.contains(&queue)?;
                self.known = Some((queue, exists));
                Ok(exists)
            }
        }
    }
}

impl<S: Sink> Sink for OfKnownQueues<S> {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        match &item {
            Item::Message(queue, _) if !self.exists(*queue)? => Ok(Put::NoQueue),
            _ => self.sink.put(item),
        }
    }

    fn settle(&mut self) -> Result<Rejected, TransferError> {
        self.sink.settle()
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        self.sink.finish()
    }
}
