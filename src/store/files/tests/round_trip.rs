//! What is written is read back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{read_all, replay};
use crate::store::files::{JournalDirectory, JournalWriter, LogFiles, MessageLog};
use crate::store::transfer::testing::{Contents, contents, copy, fill};
use crate::store::transfer::{Item, Sink, TransferError};

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn random_contents_come_back_from_a_store_log_and_a_messages_log() {
    let directory = tempfile::tempdir().unwrap();
    let (queues, messages) = (directory.path().join("q.log"), directory.path().join("m.log"));
    let written = Contents::random(300, 10);
    let mut sink = Box::new(LogFiles::create(Some(&queues), Some(&messages)).unwrap());
    fill(&mut *sink, &written);
    assert_eq!(files(directory.path()), ["m.log.tmp", "q.log.tmp"]);
    sink.finish().unwrap();
    assert_eq!(files(directory.path()), ["m.log", "q.log"]);

    let (mut log, damaged, ineffective) = replay(&queues);
    assert!(damaged.is_empty() && ineffective.is_empty());
    let found = contents(&mut log);
    assert_eq!((found.services, found.queues), (written.services, written.queues));
    assert_eq!(contents(&mut MessageLog::open(&messages).unwrap()).messages, written.messages);
}

#[test]
fn random_messages_come_back_from_a_journal_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages");
    let written = Contents::random(100, 20);
    let mut sink = Box::new(JournalWriter::create(&path).unwrap());
    fill(&mut *sink, &written);
    assert!(!path.exists());
    sink.finish().unwrap();
    assert_eq!(files(directory.path()), ["messages"]);
    assert_eq!(contents(&mut JournalDirectory::open(&path).unwrap()).messages, written.messages);
}

#[test]
fn a_queue_whose_messages_are_not_together_keeps_them_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages");
    let written = Contents::random(40, 10);
    let mut sink = Box::new(JournalWriter::create(&path).unwrap());
    let mut waiting: BTreeMap<_, _> = written.messages.iter().map(|(id, list)| (*id, list.iter())).collect();
    while !waiting.is_empty() {
        waiting.retain(|id, messages| {
            let next = messages.next().map(|message| Item::Message(*id, Box::new(message.clone())));
            next.map(|item| sink.put(item).unwrap()).is_some()
        });
    }
    sink.finish().unwrap();
    assert_eq!(contents(&mut JournalDirectory::open(&path).unwrap()).messages, written.messages);
}

#[test]
fn a_messages_log_and_a_journal_become_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name);
    let written = Contents::random(60, 10);
    let mut sink = Box::new(LogFiles::create(None, Some(&path("1.log"))).unwrap());
    fill(&mut *sink, &written);
    sink.finish().unwrap();
    let mut sink = Box::new(JournalWriter::create(&path("messages")).unwrap());
    copy(&mut MessageLog::open(&path("1.log")).unwrap(), &mut *sink);
    sink.finish().unwrap();
    let mut sink = Box::new(LogFiles::create(None, Some(&path("2.log"))).unwrap());
    copy(&mut JournalDirectory::open(&path("messages")).unwrap(), &mut *sink);
    sink.finish().unwrap();
    assert_eq!(contents(&mut MessageLog::open(&path("2.log")).unwrap()).messages, written.messages);
}

#[test]
fn a_writer_that_is_not_finished_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (queues, messages) = (directory.path().join("q.log"), directory.path().join("m.log"));
    fs::write(&queues, "there before").unwrap();
    let some = Contents::random(10, 3);
    let mut sink = LogFiles::create(Some(&queues), Some(&messages)).unwrap();
    fill(&mut sink, &some);
    drop(sink);
    let mut sink = JournalWriter::create(&directory.path().join("messages")).unwrap();
    fill(&mut sink, &some);
    drop(sink);
    assert_eq!(files(directory.path()), ["q.log"]);
    assert_eq!(fs::read(&queues).unwrap(), b"there before");
}

#[test]
fn a_journal_directory_is_not_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages");
    fs::create_dir(&path).unwrap();
    let refused = JournalWriter::create(&path).err();
    assert!(matches!(refused, Some(TransferError::File { .. })), "{refused:?}");
}

#[test]
fn what_an_interrupted_writer_left_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages");
    fs::create_dir_all(directory.path().join("messages.tmp/AA/BB")).unwrap();
    Box::new(JournalWriter::create(&path).unwrap()).finish().unwrap();
    assert!(files(&path).is_empty());
    let log = directory.path().join("m.log");
    fs::write(directory.path().join("m.log.tmp"), "left by a crash").unwrap();
    Box::new(LogFiles::create(None, Some(&log)).unwrap()).finish().unwrap();
    assert!(fs::read(&log).unwrap().is_empty());
    assert!(read_all(&mut MessageLog::open(&log).unwrap()).0.is_empty());
}

#[test]
fn a_store_log_whose_rewriting_was_interrupted_is_read_from_before_that() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("store.log");
    fs::copy(super::vector("smp-server-store.log"), directory.path().join("store.log.start")).unwrap();
    fs::write(&log, "CREATE rid=").unwrap();
    let refused = LogFiles::create(Some(&log), None).err().unwrap();
    assert!(refused.to_string().contains("store.log.start"), "{refused}");
    let (replayed, damaged, _) = replay(&log);
    assert_eq!(replayed.counts(), (2, 16));
    assert!(damaged.is_empty());
    assert_eq!(files(directory.path()), ["store.log", "store.log.bak"]);
    assert_eq!(fs::read(directory.path().join("store.log.bak")).unwrap(), b"CREATE rid=");
}
