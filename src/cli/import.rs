//! The Haskell server's files as what is imported: which of them there are, whether they are sound, and moving them into a
//! store. They are read twice: a damaged line is found before anything is written.

use std::path::{Path, PathBuf};

use super::console::Console;
use super::error::CommandError;
use super::replay::replay;
use super::transfer::{Tally, move_all};
use crate::settings::Paths;
use crate::store::files::{JournalDirectory, MessageLog, QueueLog, is_store_log_present};
use crate::store::transfer::{Item, Put, Sink, Source, TransferError, file};

/// Where the Haskell server has kept messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageFiles {
    /// In a log.
    Log(PathBuf),
    /// In a journal directory.
    Journal(PathBuf),
}

impl MessageFiles {
    /// The file or directory.
    pub fn path(&self) -> &Path {
        match self {
            MessageFiles::Log(path) | MessageFiles::Journal(path) => path,
        }
    }

    fn open(&self) -> Result<Box<dyn Source>, TransferError> {
        Ok(match self {
            MessageFiles::Log(path) => Box::new(MessageLog::open(path)?),
            MessageFiles::Journal(path) => Box::new(JournalDirectory::open(path)?),
        })
    }

    /// The log or the journal, whichever is there.
    ///
    /// # Errors
    /// Both are.
    pub fn find(paths: &Paths) -> Result<Option<Self>, CommandError> {
        let [_, log, journal] = paths.foreign_stores();
        match (file::is_present(&log), file::is_present(&journal)) {
            (true, true) => Err(CommandError::refused(format!(
                "both {} and {} are there: it is not known which of them has the messages.\n\
                 The one that is newer and larger is likely the right one. Move the other one away.",
                log.display(),
                journal.display()
            ))),
            (true, false) => Ok(Some(MessageFiles::Log(log))),
            (false, true) => Ok(Some(MessageFiles::Journal(journal))),
            (false, false) => Ok(None),
        }
    }
}

/// What is imported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// The store log.
    pub queues: Option<PathBuf>,
    /// Messages.
    pub messages: Option<MessageFiles>,
}

impl Files {
    /// All that are there.
    ///
    /// # Errors
    /// Messages are there twice.
    pub fn find(paths: &Paths) -> Result<Self, CommandError> {
        let [queues, ..] = paths.foreign_stores();
        Ok(Files { queues: is_store_log_present(&queues).then_some(queues), messages: MessageFiles::find(paths)? })
    }

    /// Whether there is nothing to import.
    pub fn is_empty(&self) -> bool {
        self.queues.is_none() && self.messages.is_none()
    }

    /// The files and directories.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.queues.as_deref().into_iter().chain(self.messages.as_ref().map(MessageFiles::path))
    }

    /// Their paths, for a sentence.
    pub fn names(&self) -> String {
        self.paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// Reads everything and refuses what is damaged, and messages whose queues are not in the store log, unless losses are
    /// accepted. Where the queues are not imported with them, the messages' queues are not looked for.
    ///
    /// # Errors
    /// Something would be lost, or cannot be read.
    pub fn check(self, skip_warnings: bool, console: &mut Console<'_>) -> Result<CheckedFiles, CommandError> {
        let mut tally = Tally::default();
        let queues = self.queues.as_deref().map(|log| replay(log, &mut tally, console)).transpose()?;
        if let Some(messages) = &self.messages {
            let mut sink = CheckedMessages { queues: queues.as_ref() };
            move_all(&mut *messages.open()?, &mut sink, "Checking messages", &mut tally, console)?;
        }
        tally.check(skip_warnings)?;
        Ok(CheckedFiles { files: self, queues })
    }
}

/// Looks whether messages have their queues.
struct CheckedMessages<'a> {
    queues: Option<&'a QueueLog>,
}

impl Sink for CheckedMessages<'_> {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        match (item, self.queues) {
            (Item::Message(queue, _), Some(queues)) if !queues.contains(&queue)? => Ok(Put::NoQueue),
            _ => Ok(Put::Stored),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        Ok(())
    }
}

/// Files that were read once.
pub struct CheckedFiles {
    /// Which.
    pub files: Files,
    queues: Option<QueueLog>,
}

impl CheckedFiles {
    /// Moves everything into a sink, which is left to be finished if nothing was lost, or losses are accepted.
    ///
    /// # Errors
    /// Something would be lost, or failed.
    pub fn copy(
        mut self,
        sink: &mut dyn Sink,
        skip_warnings: bool,
        console: &mut Console<'_>,
    ) -> Result<Tally, CommandError> {
        let mut tally = Tally::default();
        if let Some(queues) = &mut self.queues {
            move_all(queues, sink, "Importing queues", &mut tally, console)?;
        }
        // Its scratch file is not needed any more, and may be large.
        self.queues = None;
        if let Some(messages) = &self.files.messages {
            move_all(&mut *messages.open()?, sink, "Importing messages", &mut tally, console)?;
        }
        tally.check(skip_warnings)?;
        Ok(tally)
    }
}

/// Renames what was imported; one that is not there any more was renamed before.
///
/// # Errors
/// It cannot be renamed.
pub fn back_up<'a>(paths: impl Iterator<Item = &'a Path>, console: &mut Console<'_>) -> Result<(), CommandError> {
    for path in paths.filter(|path| path.symlink_metadata().is_ok()) {
        let backup = file::back_up(path)?;
        console.say(format_args!("{} is kept as {}", path.display(), backup.display()))?;
    }
    Ok(())
}

/// `3 services, 5 queues, 8 messages`.
pub fn counts(tally: &Tally) -> String {
    let Tally { services, queues, messages, .. } = tally;
    format!("{services} services, {queues} queues, {messages} messages")
}
