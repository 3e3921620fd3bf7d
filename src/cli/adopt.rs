//! The first start on an installation of the Haskell server: what its files hold is imported into the embedded store, or
//! its journal into the database, before anything listens.
//!
//! Each step can be cut off, by `kill -9` or a power cut, and the next start goes on from what it finds:
//!
//! ```text
//! files are checked            nothing was written but scratch files
//! the store is filled          as smp-server.db.import: begun anew
//! the marker is written        smp-server.imported names the files, and there is no store: as if it were not there
//! the store gets its name      from here on the files are imported: those that the marker names are renamed
//! the files get the name .bak
//! the marker is removed        done
//! ```
//!
//! So files beside a store without a marker were not imported into it, and nobody knows which is the right one: the start is
//! refused. Nothing is ever imported twice, or ignored in silence.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::console::Console;
use super::error::CommandError;
use super::import::{self, Files, MessageFiles};
use crate::settings::Paths;
use crate::store::files::is_store_log_present;
use crate::store::postgres::connect::Connector;
use crate::store::postgres::transfer::{PostgresSink, look};
use crate::store::sqlite::StoreLock;
use crate::store::sqlite::transfer::SqliteSink;
use crate::store::transfer::{Sink, file};

/// The marker's name in the log directory.
const MARKER: &str = "smp-server.imported";

/// What the operator has decided beforehand.
#[derive(Clone, Copy, Debug)]
pub struct Decisions {
    /// Damaged lines, messages without queues, and files beside a store are left out.
    pub skip_warnings: bool,
    /// The messages log is imported. A journal always is: the Haskell server asks this setting about the log only.
    pub restore_messages: bool,
}

/// Refuses a start that would leave queues or messages behind. Changes nothing; answers what would be imported.
///
/// # Errors
/// There are a store and files that were not imported into it; or messages twice.
pub fn look_at_files(paths: &Paths, decisions: Decisions) -> Result<Option<Files>, CommandError> {
    let store = paths.store();
    if !file::is_present(&store) {
        let files = Files::find(paths)?;
        return Ok((!files.is_empty()).then_some(files));
    }
    if file::is_present(&marker(paths)) || decisions.skip_warnings {
        return Ok(None);
    }
    let [queues, messages, journal] = paths.foreign_stores();
    let foreign = [messages, journal].into_iter().find(|path| file::is_present(path));
    match is_store_log_present(&queues).then_some(queues).or(foreign) {
        None => Ok(None),
        Some(foreign) => Err(CommandError::refused(format!(
            "both {} and {} are there: it is not known which of them has the queues and messages of this server.\n\
             Move {} away to go on with the store. Or move the store away: the next start imports the files.\n\
             (--skip-warnings goes on with the store and leaves the files where they are.)",
            store.display(),
            foreign.display(),
            foreign.display()
        ))),
    }
}

/// Imports the files of the Haskell server into the embedded store, if there is none yet and there are files.
///
/// # Errors
/// Nothing is imported then: the files are damaged, or something failed. Each text says what to do.
pub fn adopt_files(paths: &Paths, decisions: Decisions, console: &mut Console<'_>) -> Result<(), CommandError> {
    finish_renaming(paths, console)?;
    let Some(all) = look_at_files(paths, decisions)? else { return Ok(()) };
    let mut files = all.clone();
    if !decisions.restore_messages
        && let Some(MessageFiles::Log(log)) = &all.messages
    {
        console.say(format_args!("note: {} is not imported, because of restore_messages = off", log.display()))?;
        files.messages = None;
    }
    console.say(format_args!("Importing {} into {}", files.names(), paths.store().display()))?;
    let checked = files.check(decisions.skip_warnings, console)?;
    let mut sink = Box::new(SqliteSink::create(&paths.store())?);
    let tally = checked.copy(&mut *sink, decisions.skip_warnings, console)?;
    write_marker(paths, all.paths())?;
    if let Err(failure) = sink.finish() {
        // A store that somebody puts there must not pass for the one that has these files in it.
        remove_marker(paths)?;
        return Err(failure.into());
    }
    console.say(format_args!("Imported {}", import::counts(&tally)))?;
    rename_originals(paths, console)
}

/// Refuses a start that would leave the messages of a journal directory behind. Changes nothing; answers what would be
/// imported.
///
/// # Errors
/// There are messages in the database that are not the journal's.
pub fn look_at_journal(
    paths: &Paths,
    connector: &Connector,
    decisions: Decisions,
) -> Result<Option<Files>, CommandError> {
    let [_, _, journal] = paths.foreign_stores();
    if !file::is_present(&journal) {
        return Ok(None);
    }
    if !look(connector)?.messages {
        return Ok(Some(Files { queues: None, messages: Some(MessageFiles::Journal(journal)) }));
    }
    // The marker was written when there were no messages: they are the journal's.
    match file::is_present(&marker(paths)) || decisions.skip_warnings {
        true => Ok(None),
        false => Err(refuse_messages(&journal)),
    }
}

/// Imports a journal directory, in which the Haskell server has kept the messages of the queues in the database, if there is
/// one.
///
/// # Errors
/// Nothing is imported then: there are messages in the database, the journal is damaged, or something failed.
pub fn adopt_journal(
    paths: &Paths,
    connector: &Connector,
    decisions: Decisions,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    let [_, _, journal] = paths.foreign_stores();
    if !file::is_present(&journal) {
        return remove_marker(paths);
    }
    let Some(files) = look_at_journal(paths, connector, decisions)? else {
        return if file::is_present(&marker(paths)) { rename_originals(paths, console) } else { Ok(()) };
    };
    console.say(format_args!("Importing {} into the database", journal.display()))?;
    let checked = files.check(decisions.skip_warnings, console)?;
    let mut sink = Box::new(PostgresSink::messages(connector)?);
    let tally = checked.copy(&mut *sink, decisions.skip_warnings, console)?;
    write_marker(paths, std::iter::once(&*journal))?;
    sink.finish()?;
    console.say(format_args!("Imported {} messages", tally.messages))?;
    rename_originals(paths, console)
}

fn refuse_messages(journal: &Path) -> CommandError {
    CommandError::refused(format!(
        "{} is there, and the database has messages too: it is not known which of them are the right ones.\n\
         Move the directory away to go on with those of the database.\n\
         Or replace them: `smp-server database import messages` deletes them and imports the directory.",
        journal.display()
    ))
}

fn marker(paths: &Paths) -> PathBuf {
    paths.log.join(MARKER)
}

/// Notes that these files are imported once the store is there.
fn write_marker<'a>(paths: &Paths, files: impl Iterator<Item = &'a Path>) -> Result<(), CommandError> {
    let path = marker(paths);
    let names = files.filter_map(Path::file_name).map(|name| format!("{}\n", name.display())).collect::<String>();
    let written = fs::File::create(&path).and_then(|mut file| file.write_all(names.as_bytes()));
    written.map_err(CommandError::file("write", &path))?;
    file::sync(&path)?;
    Ok(file::sync_directory_of(&path)?)
}

fn remove_marker(paths: &Paths) -> Result<(), CommandError> {
    Ok(file::remove(&marker(paths))?)
}

/// Finishes what an interrupted start has begun.
fn finish_renaming(paths: &Paths, console: &mut Console<'_>) -> Result<(), CommandError> {
    if !file::is_present(&marker(paths)) {
        return Ok(());
    }
    let store = paths.store();
    let _lock = StoreLock::take(&store).map_err(|error| CommandError::refused(error.to_string()))?;
    if file::is_present(&store) { rename_originals(paths, console) } else { remove_marker(paths) }
}

/// Renames the files that the marker names, then removes it.
fn rename_originals(paths: &Paths, console: &mut Console<'_>) -> Result<(), CommandError> {
    let path = marker(paths);
    let names = fs::read_to_string(&path).map_err(CommandError::file("read", &path))?;
    let originals = paths.foreign_stores();
    let named = originals.iter().filter(|original| {
        let name = original.file_name().and_then(|name| name.to_str());
        names.lines().any(|line| Some(line) == name)
    });
    import::back_up(named.map(PathBuf::as_path), console)?;
    remove_marker(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::files::JournalWriter;
    use crate::store::sqlite::transfer::SqliteSource;
    use crate::store::transfer::testing::{self, Contents};

    /// Everything that a cut can leave.
    const CUTS: usize = 6;

    struct Directory {
        directory: tempfile::TempDir,
        paths: Paths,
        contents: Contents,
    }

    impl Directory {
        /// Files of the Haskell server with random contents.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let paths = Paths { config: directory.path().to_owned(), log: directory.path().to_owned() };
            let contents = Contents::random(30, 3);
            let [queues, messages, _] = paths.foreign_stores();
            let mut sink = crate::store::files::LogFiles::create(Some(&queues), Some(&messages)).unwrap();
            testing::fill(&mut sink, &contents);
            Box::new(sink).finish().unwrap();
            Directory { directory, paths, contents }
        }

        fn adopt(&self, decisions: Decisions) -> Result<String, String> {
            let mut output = Vec::new();
            let mut input: &[u8] = b"";
            let adopted = adopt_files(&self.paths, decisions, &mut Console::new(&mut input, &mut output));
            let said = String::from_utf8(output).unwrap();
            adopted.map(|()| said).map_err(|error| error.to_string())
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.directory.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn store(&self) -> Contents {
            testing::contents(&mut SqliteSource::open(&self.paths.store()).unwrap())
        }

        /// Does the first `steps` steps of an import.
        fn cut_after(&self, steps: usize) {
            let [queues, messages, _] = self.paths.foreign_stores();
            let mut sink = Box::new(SqliteSink::create(&self.paths.store()).unwrap());
            testing::fill(&mut *sink, &self.contents);
            if steps >= 1 {
                write_marker(&self.paths, [&*queues, &*messages].into_iter()).unwrap();
            }
            if steps >= 2 {
                sink.finish().unwrap();
            }
            if steps >= 3 {
                file::back_up(&queues).unwrap();
            }
            if steps >= 4 {
                file::back_up(&messages).unwrap();
            }
            if steps >= 5 {
                remove_marker(&self.paths).unwrap();
            }
        }
    }

    const USUAL: Decisions = Decisions { skip_warnings: false, restore_messages: true };

    const DONE: [&str; 4] =
        ["smp-server-messages.log.bak", "smp-server-store.log.bak", "smp-server.db", "smp-server.db.lock"];

    #[test]
    fn files_are_imported_and_kept() {
        let directory = Directory::new();
        let said = directory.adopt(USUAL).unwrap();
        assert!(said.contains("Imported 3 services, 30 queues, ") && said.contains(".bak"), "{said}");
        assert_eq!(directory.names(), DONE);
        assert_eq!(directory.store(), directory.contents);
        assert_eq!(directory.adopt(USUAL).unwrap(), "");
    }

    #[test]
    fn a_start_after_each_cut_ends_with_the_same() {
        for steps in 0..CUTS {
            let directory = Directory::new();
            directory.cut_after(steps);
            directory.adopt(USUAL).unwrap();
            assert_eq!(directory.names(), DONE, "{steps}");
            assert_eq!(directory.store(), directory.contents, "{steps}");
        }
    }

    #[test]
    fn files_beside_a_store_are_refused_unless_the_operator_says_so() {
        let directory = Directory::new();
        directory.adopt(USUAL).unwrap();
        fs::write(directory.directory.path().join("smp-server-store.log"), "").unwrap();
        let refusal = directory.adopt(USUAL).unwrap_err();
        assert!(refusal.contains("smp-server-store.log") && refusal.contains("Move"), "{refusal}");
        directory.adopt(Decisions { skip_warnings: true, ..USUAL }).unwrap();
        assert!(directory.names().contains(&"smp-server-store.log".to_owned()));
    }

    #[test]
    fn a_damaged_line_refuses_everything_or_is_left_out() {
        let directory = Directory::new();
        let log = directory.directory.path().join("smp-server-messages.log");
        let mut text = fs::read_to_string(&log).unwrap();
        text.insert_str(0, "nonsense\n");
        fs::write(&log, text).unwrap();
        let before = directory.names();
        let refusal = directory.adopt(USUAL).unwrap_err();
        assert!(refusal.contains("1 damaged") && refusal.contains("--skip-warnings"), "{refusal}");
        let after: Vec<_> = directory.names().into_iter().filter(|name| !name.ends_with(".lock")).collect();
        assert_eq!(after, before);
        let said = directory.adopt(Decisions { skip_warnings: true, ..USUAL }).unwrap();
        assert!(said.contains("smp-server-messages.log:1: "), "{said}");
        assert_eq!(directory.store(), directory.contents);
    }

    #[test]
    fn messages_are_left_out_where_they_are_not_to_be_restored() {
        let directory = Directory::new();
        let said = directory.adopt(Decisions { restore_messages: false, ..USUAL }).unwrap();
        assert!(said.contains("restore_messages = off"), "{said}");
        assert_eq!((directory.names(), directory.store().messages.len()), (DONE.map(str::to_owned).to_vec(), 0));
        assert_eq!(directory.store().queues, directory.contents.queues);
    }

    #[test]
    fn a_journal_is_imported_also_where_the_log_would_not_be_restored() {
        let directory = Directory::new();
        let [_, log, journal] = directory.paths.foreign_stores();
        let mut sink = JournalWriter::create(&journal).unwrap();
        testing::fill(&mut sink, &directory.contents);
        Box::new(sink).finish().unwrap();
        fs::remove_file(&log).unwrap();
        directory.adopt(Decisions { restore_messages: false, ..USUAL }).unwrap();
        assert_eq!(directory.store(), directory.contents);
    }

    #[test]
    fn messages_in_two_places_are_refused() {
        let directory = Directory::new();
        fs::create_dir(directory.directory.path().join("messages")).unwrap();
        let refusal = directory.adopt(USUAL).unwrap_err();
        assert!(refusal.contains("both") && refusal.contains("messages.log"), "{refusal}");
    }

    #[test]
    fn a_store_log_that_lies_under_the_name_it_has_while_it_is_rewritten_is_imported() {
        let directory = Directory::new();
        let log = directory.directory.path().join("smp-server-store.log");
        fs::rename(&log, file::with_suffix(&log, ".start")).unwrap();
        directory.adopt(USUAL).unwrap();
        assert_eq!(directory.names(), DONE);
        assert_eq!(directory.store(), directory.contents);
        fs::write(file::with_suffix(&log, ".start"), "").unwrap();
        directory.adopt(USUAL).unwrap_err();
    }

    #[test]
    fn links_that_lead_nowhere_are_not_taken_for_absent_files() {
        for name in ["smp-server-store.log", "smp-server-messages.log", "smp-server.db"] {
            let directory = Directory::new();
            let path = directory.directory.path().join(name);
            file::remove(&path).unwrap();
            std::os::unix::fs::symlink("/nonexistent/volume", &path).unwrap();
            let before = directory.names();
            let refusal = directory.adopt(USUAL).unwrap_err();
            assert!(refusal.contains(name), "{refusal}");
            let after: Vec<_> = directory.names().into_iter().filter(|name| !name.ends_with(".lock")).collect();
            assert_eq!(after, before, "{name}");
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_other_attempts_have_left_is_in_nobodys_way_and_no_backup_is_replaced() {
        let directory = Directory::new();
        let path = |name: &str| directory.directory.path().join(name);
        let left = ["smp-server.db.import", "smp-server.db.import-journal", "smp-server-store.log.replay.tmp"];
        left.iter().for_each(|name| fs::write(path(name), "left by a crash").unwrap());
        let backups = ["smp-server-store.log.bak", "smp-server-messages.log.bak"];
        backups.iter().for_each(|name| fs::write(path(name), "an older one").unwrap());
        directory.adopt(USUAL).unwrap();
        assert_eq!(directory.store(), directory.contents);
        backups.iter().for_each(|name| assert_eq!(fs::read_to_string(path(name)).unwrap(), "an older one"));
        assert!(path("smp-server-store.log.bak.1").exists() && path("smp-server-messages.log.bak.1").exists());
        assert!(left.iter().all(|name| !path(name).exists()), "{:?}", directory.names());
    }
}
