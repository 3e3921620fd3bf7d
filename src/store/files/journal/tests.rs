//! Journals that a crash or an operator has left behind.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{JournalDirectory, id_text, queue_directory, state_path};
use crate::protocol::QueueId;
use crate::store::transfer::{Damage, Item, Source};

const MESSAGES: [&str; 3] = [
    "Kd_r0TEvEYdpoJJiNEP8KOz9g-fQAHPi 1700000101 flags=F MQ==\n",
    "5PnhXkr5SyCw_9aleziNeFt5fy6LqTxS 1700000102 flags=T Mg==\n",
    "IbUcCWFcTQ32GDYuvFsbX1RMcQHwAnYZ 1700000103 flags=F Mw==\n",
];

/// Bytes of each of [`MESSAGES`].
const LENGTH: usize = 57;

/// A journal directory with one queue.
struct Journal {
    root: TempDir,
    directory: PathBuf,
}

impl Journal {
    fn new(state: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let id = id_text(&QueueId([1; 24]));
        let directory = queue_directory(root.path(), &id);
        fs::create_dir_all(&directory).unwrap();
        fs::write(state_path(&directory, &id), state).unwrap();
        Journal { root, directory }
    }

    fn state_path(&self) -> PathBuf {
        state_path(&self.directory, &id_text(&QueueId([1; 24])))
    }

    /// A file of messages.
    fn with(self, name: &str, content: &str) -> Self {
        fs::write(super::journal_path(&self.directory, name), content).unwrap();
        self
    }

    /// Times of the messages (the last digit), and what is damaged: line and reason.
    fn read(&self) -> (Vec<i64>, Vec<(u64, String)>) {
        let (seconds, damaged) = self.read_all();
        (seconds, damaged.into_iter().map(|damage| (damage.line, damage.reason)).collect())
    }

    fn read_all(&self) -> (Vec<i64>, Vec<Damage>) {
        let mut source = JournalDirectory::open(self.root.path()).unwrap();
        let (mut seconds, mut damaged) = (Vec::new(), Vec::new());
        while let Some(item) = source.next(&mut |damage| damaged.push(damage)).unwrap() {
            let Item::Message(queue, message) = item else { panic!("{item:?}") };
            assert_eq!(queue, QueueId([1; 24]));
            seconds.push(message.timestamp.seconds % 10);
        }
        assert_eq!(source.progress(), Some((1, 1)));
        (seconds, damaged)
    }
}

fn state(write: &str, read: &str, size: usize) -> String {
    format!("write={write} read={read} canWrite=T size={size}")
}

/// A position in file `name` before message `at` of `count`.
fn position(name: &str, at: usize, count: usize) -> String {
    format!("{name},{at},{count},{},{}", at * LENGTH, count * LENGTH)
}

/// One file of three messages, of which one was read.
fn one_file() -> String {
    state(&position("A", 3, 3), &position("A", 1, 3), 2)
}

/// Two files: two messages that are read but one, and one message.
fn two_files() -> String {
    state(&position("B", 1, 1), &position("A", 1, 2), 2)
}

#[test]
fn the_messages_between_the_two_positions_are_read() {
    assert_eq!(Journal::new(&one_file()).with("A", &MESSAGES.concat()).read(), (vec![2, 3], vec![]));
    let two = Journal::new(&two_files()).with("A", &MESSAGES[..2].concat()).with("B", MESSAGES[2]);
    assert_eq!(two.read(), (vec![2, 3], vec![]));
}

#[test]
fn a_last_line_of_the_state_that_was_cut_counts_for_nothing() {
    let next = state(&position("A", 3, 3), &position("A", 2, 3), 1);
    for end in 0..next.len() {
        let journal = Journal::new(&format!("{}\n{}", one_file(), &next[..end])).with("A", &MESSAGES.concat());
        assert_eq!(journal.read(), (vec![2, 3], vec![]), "{end}");
    }
    let journal = Journal::new(&format!("{}\n{next}", one_file())).with("A", &MESSAGES.concat());
    assert_eq!(journal.read(), (vec![3], vec![]));
}

#[test]
fn a_first_line_of_the_state_that_was_cut_means_no_messages() {
    for text in ["", "write=A,1"] {
        assert_eq!(Journal::new(text).with("A", MESSAGES[0]).read(), (vec![], vec![]), "{text:?}");
    }
}

#[test]
fn a_wrong_last_line_of_the_state_is_told_and_the_one_before_it_counts() {
    let journal = Journal::new(&format!("{}\ngarbage\n", one_file())).with("A", &MESSAGES.concat());
    let (messages, damaged) = journal.read();
    assert_eq!((messages, damaged.len()), (vec![2, 3], 1));
    let inconsistent = state(&position("A", 3, 3), &position("A", 1, 3), 3);
    let (messages, damaged) = Journal::new(&format!("{inconsistent}\n")).with("A", &MESSAGES.concat()).read();
    assert_eq!((messages, damaged.len()), (vec![], 1));
}

#[test]
fn a_state_that_is_being_replaced_counts_before_its_successor() {
    let journal = Journal::new("write=A,").with("A", &MESSAGES.concat());
    let mut backup = journal.state_path().into_os_string();
    backup.push(".bak");
    fs::write(backup, format!("{}\n", one_file())).unwrap();
    assert_eq!(journal.read(), (vec![2, 3], vec![]));
}

#[test]
fn only_the_end_of_a_long_state_is_read() {
    let journal = Journal::new(&format!("{}\n", one_file()).repeat(10_000)).with("A", &MESSAGES.concat());
    assert_eq!(journal.read(), (vec![2, 3], vec![]));
}

#[test]
fn a_missing_file_of_messages_is_told_and_the_other_one_is_read() {
    let (messages, damaged) = Journal::new(&two_files()).with("B", MESSAGES[2]).read_all();
    assert_eq!((messages, damaged.len()), (vec![3], 1));
    assert!(damaged[0].file.ends_with("messages.A.log"));
    assert!(damaged[0].reason.contains("1 messages"), "{}", damaged[0]);
    let (messages, damaged) = Journal::new(&two_files()).with("A", &MESSAGES[..2].concat()).read_all();
    assert_eq!((messages, damaged.len()), (vec![2], 1));
}

#[test]
fn a_damaged_message_is_told_with_its_line_in_the_file() {
    let broken = MESSAGES[1].replace("1700000102", "17000x0102");
    let journal = Journal::new(&one_file()).with("A", &[MESSAGES[0], &broken, MESSAGES[2]].concat());
    assert_eq!(journal.read(), (vec![3], vec![(2, "a time is not a number of seconds".to_owned())]));
}

#[test]
fn a_file_shorter_than_the_state_says_gives_what_is_there() {
    let text = MESSAGES.concat();
    let (messages, damaged) = Journal::new(&one_file()).with("A", &text[..2 * LENGTH]).read();
    assert_eq!(messages, [2]);
    assert_eq!(damaged.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [0, 3]);
    let (messages, damaged) = Journal::new(&one_file()).with("A", &text[..text.len() - 10]).read();
    assert_eq!(messages, [2]);
    assert_eq!(damaged.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn a_state_cannot_name_a_file_outside_its_directory() {
    let outside = state(&position("../../A", 1, 1), &position("../../A", 0, 1), 1);
    let (messages, damaged) = Journal::new(&format!("{outside}\n")).read();
    assert_eq!((messages, damaged.len()), (vec![], 1));
}

#[test]
fn what_is_no_queue_s_directory_is_told() {
    let journal = Journal::new(&one_file()).with("A", &MESSAGES.concat());
    let strange: &[&str] = &["notes.txt", "AQ/EBAQ", "AQ/E?"];
    let make = |name: &&str| fs::create_dir_all(journal.root.path().join(name)).unwrap();
    strange.iter().for_each(make);
    let mut source = JournalDirectory::open(journal.root.path()).unwrap();
    let (mut messages, mut damaged) = (0, Vec::new());
    while source.next(&mut |damage| damaged.push(damage.file)).unwrap().is_some() {
        messages += 1;
    }
    assert_eq!(messages, 2);
    let relative: Vec<_> = damaged.iter().map(|path| path.strip_prefix(journal.root.path()).unwrap()).collect();
    assert_eq!(relative, [Path::new("AQ/EBAQ"), Path::new("notes.txt")]);
}

#[test]
fn messages_without_a_state_are_told() {
    let journal = Journal::new("").with("A", MESSAGES[0]);
    fs::remove_file(journal.state_path()).unwrap();
    let (messages, damaged) = journal.read();
    assert_eq!((messages, damaged.len()), (vec![], 1));
    assert!(damaged[0].1.contains("missing"), "{damaged:?}");
    fs::write(super::journal_path(&journal.directory, "A"), "").unwrap();
    assert_eq!(journal.read(), (vec![], vec![]), "before the first message there is none");
}
