//! `smp-server journal`, on files of the Haskell server.

use std::fs;
use std::path::{Path, PathBuf};

use super::Place;
use crate::store::files::{JOURNAL_DIRECTORY, JournalDirectory, MESSAGE_LOG, MessageLog, STORE_LOG};
use crate::store::transfer::testing::contents;

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/store").join(name)
}

/// An installation with these files of the vectors in its log directory.
fn place(names: &[&str]) -> Place {
    let place = Place::initialized();
    names.iter().for_each(|name| copy(&vector(name), &place.log(name)));
    place
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

impl Place {
    fn log(&self, name: &str) -> PathBuf {
        self.paths.log.join(name)
    }

    /// Names in the log directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.paths.log).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn set(&self, from: &str, to: &str) {
        let ini = self.ini();
        assert!(ini.contains(from), "{ini}");
        fs::write(self.paths.ini(), ini.replacen(from, to, 1)).unwrap();
    }

    /// Asserts that the command is refused for this reason and changes nothing.
    fn refuses(&self, line: &str, input: &str, reason: &str) {
        let before = self.names();
        let error = self.run(line, input).unwrap_err();
        assert!(error.contains(reason), "{error}");
        assert_eq!(self.names(), before);
    }
}

#[test]
fn a_messages_log_becomes_a_journal_and_a_messages_log_again() {
    let place = place(&[STORE_LOG, MESSAGE_LOG]);
    let told = place.run("journal import", "Y\n").unwrap();
    assert!(told.contains("Imported 9 messages"), "{told}");
    assert!(told.contains("1 records without effect: the queue was deleted before"), "{told}");
    assert_eq!(place.names(), [JOURNAL_DIRECTORY, "smp-server-messages.log.bak", STORE_LOG]);
    let found = contents(&mut JournalDirectory::open(&place.log(JOURNAL_DIRECTORY)).unwrap()).messages;
    assert_eq!(found, contents(&mut MessageLog::open(&vector(MESSAGE_LOG)).unwrap()).messages);
    let told = place.run("journal export", "Y\n").unwrap();
    assert!(told.contains("Exported 9 messages"), "{told}");
    assert_eq!(contents(&mut MessageLog::open(&place.log(MESSAGE_LOG)).unwrap()).messages, found);
    assert!(place.log(JOURNAL_DIRECTORY).is_dir());
}

#[test]
fn a_journal_of_the_haskell_server_is_exported() {
    let place = place(&[STORE_LOG, JOURNAL_DIRECTORY]);
    let told = place.run("journal export", "Y\n").unwrap();
    assert!(told.contains("Exported 22 messages"), "{told}");
    assert_eq!(place.names(), [JOURNAL_DIRECTORY, MESSAGE_LOG, STORE_LOG]);
}

#[test]
fn with_queues_in_the_database_the_journal_is_exported_without_a_store_log() {
    let place = place(&[JOURNAL_DIRECTORY]);
    place.set("store_queues = memory", "store_queues = database");
    place.set("store_messages = memory", "store_messages = journal");
    let told = place.run("journal export", "Y\n").unwrap();
    assert!(told.contains("Exported 22 messages") && told.contains("database export queues"), "{told}");
}

#[test]
fn with_messages_in_the_database_the_other_command_is_named() {
    let place = place(&[STORE_LOG, JOURNAL_DIRECTORY]);
    place.set("store_queues = memory", "store_queues = database");
    place.set("store_messages = memory", "store_messages = database");
    place.refuses("journal export", "Y\n", "smp-server database export messages");
}

#[test]
fn a_journal_is_deleted_once_confirmed() {
    let place = place(&[STORE_LOG, JOURNAL_DIRECTORY]);
    place.refuses("journal delete", "y\n", "NOT deleted");
    place.run("journal delete", "Y\n").unwrap();
    assert_eq!(place.names(), [STORE_LOG]);
    place.refuses("journal delete", "Y\n", "does not exist");
}

#[test]
fn nothing_is_done_without_confirmation() {
    let place = place(&[STORE_LOG, MESSAGE_LOG]);
    place.refuses("journal import", "n\n", "the messages were NOT imported");
    place.refuses("journal import", "", "the messages were NOT imported");
    fs::rename(place.log(MESSAGE_LOG), place.log("away")).unwrap();
    copy(&vector(JOURNAL_DIRECTORY), &place.log(JOURNAL_DIRECTORY));
    place.refuses("journal export", "\n", "the journal was NOT exported");
}

#[test]
fn what_is_missing_or_in_the_way_is_told() {
    let both = place(&[STORE_LOG, MESSAGE_LOG, JOURNAL_DIRECTORY]);
    both.refuses("journal import", "Y\n", "both");
    both.refuses("journal export", "Y\n", "both");
    place(&[STORE_LOG, JOURNAL_DIRECTORY]).refuses("journal import", "Y\n", "messages already exists");
    place(&[STORE_LOG]).refuses("journal import", "Y\n", "smp-server-messages.log does not exist");
    place(&[STORE_LOG]).refuses("journal export", "Y\n", "there is no journal");
    place(&[STORE_LOG, MESSAGE_LOG]).refuses("journal export", "Y\n", "smp-server-messages.log already exists");
    place(&[MESSAGE_LOG]).refuses("journal import", "Y\n", "smp-server-store.log does not exist");
    let disabled = place(&[STORE_LOG, MESSAGE_LOG]);
    disabled.set("enable = on", "enable = off");
    disabled.refuses("journal import", "Y\n", "the store log is disabled");
    assert!(Place::new().run("journal delete", "Y\n").unwrap_err().contains("not initialized"));
}

#[test]
fn messages_of_unknown_queues_and_damaged_lines_are_refused_unless_accepted() {
    let place = place(&[STORE_LOG, MESSAGE_LOG]);
    let path = place.log(MESSAGE_LOG);
    let old = fs::read_to_string(vector("smp-server-messages-old.log")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let garbage = "garbage\n".repeat(25);
    fs::write(&path, format!("{garbage}{text}{old}")).unwrap();
    place.refuses(
        "journal import",
        "Y\n",
        "25 damaged lines or files, 5 messages of queues that do not exist would be left out",
    );
    let told = place.run("journal import --skip-warnings", "Y\n").unwrap();
    assert!(told.contains("Imported 9 messages"), "{told}");
    assert!(told.contains(&format!("{}:1: not a message of a known version", path.display())), "{told}");
    assert_eq!(told.matches("not a message of a known version").count(), 20);
    let kept = fs::read_to_string(place.log("smp-server-messages.log.bak")).unwrap();
    assert_eq!(kept, format!("{garbage}{text}{old}"));
}

#[test]
fn a_damaged_store_log_is_refused_unless_accepted() {
    let place = place(&[STORE_LOG, MESSAGE_LOG]);
    let path = place.log(STORE_LOG);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}CREATE rid=")).unwrap();
    place.refuses("journal import", "Y\n", "1 damaged lines or files would be left out");
    let told = place.run("journal --skip-warnings import", "Y\n").unwrap();
    assert!(told.contains("smp-server-store.log:") && told.contains("Imported 9 messages"), "{told}");
}
