use std::path::Path;

use bytes::Bytes;

use super::{SqliteSink, SqliteSource};
use crate::store::conformance::fixtures::{self, recipient};
use crate::store::sqlite::{SqliteOptions, SqliteStore};
use crate::store::transfer::testing::{self, Contents};
use crate::store::transfer::{Item, Put, Sink, Source};

fn write(path: &Path, contents: &Contents) {
    let mut sink = SqliteSink::create(path).unwrap();
    testing::fill(&mut sink, contents);
    Box::new(sink).finish().unwrap();
}

fn read(path: &Path) -> Contents {
    testing::contents(&mut SqliteSource::open(path).unwrap())
}

fn message(queue: u8, number: u8) -> Item {
    let sent = fixtures::message(queue, number);
    testing::sent(sent.queue, number.into(), sent.body)
}

#[test]
fn everything_arrives_equal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("smp-server.db");
    let contents = Contents::random(700, 3);
    write(&path, &contents);
    assert_eq!(read(&path), contents);
    let copied = directory.path().join("copy.db");
    write(&copied, &read(&path));
    assert_eq!(read(&copied), contents);
}

#[test]
fn a_store_that_was_filled_opens_and_leaves_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("smp-server.db");
    write(&path, &Contents::random(10, 2));
    let mut names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["smp-server.db", "smp-server.db.lock"]);
    SqliteStore::open(&SqliteOptions { path: Some(path), ..SqliteOptions::default() }).unwrap();
}

#[test]
fn taken_ids_and_unknown_queues_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut sink = SqliteSink::create(&directory.path().join("s.db")).unwrap();
    let queue = |n| Item::Queue(Box::new(fixtures::rich_queue(n)));
    assert_eq!(sink.put(queue(1)).unwrap(), Put::Stored);
    assert_eq!(sink.put(queue(1)).unwrap(), Put::Duplicate);
    let mut thief = fixtures::queue(2);
    thief.record.sender_id = fixtures::sender(1);
    assert_eq!(sink.put(Item::Queue(Box::new(thief))).unwrap(), Put::Duplicate);
    assert_eq!(sink.put(message(1, 7)).unwrap(), Put::Stored);
    assert_eq!(sink.put(message(2, 7)).unwrap(), Put::NoQueue);
}

#[test]
fn an_existing_store_and_one_in_use_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    assert!(SqliteSource::open(&path).err().unwrap().to_string().contains("does not exist"));
    let store = SqliteStore::open(&SqliteOptions { path: Some(path.clone()), ..SqliteOptions::default() }).unwrap();
    assert!(SqliteSource::open(&path).err().unwrap().to_string().contains("Stop the server"));
    assert!(SqliteSink::create(&path).err().unwrap().to_string().contains("Stop the server"));
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        crate::store::Store::close(&store).await.unwrap();
    });
    drop(store);
    assert!(SqliteSink::create(&path).err().unwrap().to_string().contains("exists already"));
}

#[test]
fn the_log_of_a_store_that_is_gone_is_not_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    std::fs::write(directory.path().join("s.db-wal"), "old").unwrap();
    let contents = Contents::random(3, 1);
    write(&path, &contents);
    assert_eq!(read(&path), contents);
}

/// Moves `contents` until `stop` items were put, then drops everything as the end of the process would.
fn interrupted(path: &Path, mark: &str, contents: &Contents, stop: usize) {
    let (mut sink, last) = SqliteSink::resume(path, mark).unwrap();
    assert_eq!(last, None);
    for item in contents.items().take(stop) {
        sink.put(item).unwrap();
        sink.items = u32::MAX / 2; // every queue begins a transaction
    }
}

#[test]
fn an_interrupted_transfer_goes_on_after_the_last_whole_queue() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from.db"), directory.path().join("to.db"));
    let contents = Contents::random(40, 5);
    write(&from, &contents);
    for stop in [1, 17, 60, contents.items().count()] {
        let mut source = SqliteSource::open(&from).unwrap();
        let mark = source.mark().unwrap();
        interrupted(&to, &mark, &contents, stop);
        let (mut sink, last) = SqliteSink::resume(&to, &mark).unwrap();
        if let Some(last) = last {
            source.skip_to(&last).unwrap();
        }
        assert_eq!(last.is_some(), stop >= 17, "{stop}");
        testing::copy(&mut source, &mut sink);
        Box::new(sink).finish().unwrap();
        assert_eq!(source.progress().map(|(done, all)| done == all), Some(true));
        assert_eq!(read(&to), contents, "{stop}");
        std::fs::remove_file(&to).unwrap();
    }
}

#[test]
fn a_transfer_of_another_content_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    interrupted(&path, "one", &Contents::random(9, 2), 20);
    let (mut sink, last) = SqliteSink::resume(&path, "two").unwrap();
    assert_eq!(last, None);
    assert_eq!(sink.put(Item::Queue(Box::new(fixtures::queue(1)))).unwrap(), Put::Stored);
    Box::new(sink).finish().unwrap();
    assert_eq!(read(&path).queues.len(), 1);
}

#[test]
fn a_value_that_cannot_be_read_is_damage_of_its_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    write(&path, &Contents::random(5, 0));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE queues SET recipient_keys = x'09' WHERE queue = 3", []).unwrap();
    drop(connection);
    let (mut damages, mut queues) = (Vec::new(), 0);
    let mut source = SqliteSource::open(&path).unwrap();
    while let Some(item) = source.next(&mut |damage| damages.push(damage)).unwrap() {
        queues += u32::from(matches!(item, Item::Queue(_)));
    }
    assert_eq!((queues, damages.len(), damages[0].line), (4, 1, 3));
    assert!(damages[0].reason.contains("malformed"), "{}", damages[0].reason);
}

#[test]
fn long_queues_are_read_in_pieces_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.db");
    let mut sink = SqliteSink::create(&path).unwrap();
    sink.put(Item::Queue(Box::new(fixtures::queue(1)))).unwrap();
    for number in 0..200_u64 {
        sink.put(testing::sent(recipient(1), number, Bytes::from(vec![1; 10]))).unwrap();
    }
    Box::new(sink).finish().unwrap();
    let contents = read(&path);
    let times: Vec<_> = contents.messages[&recipient(1)].iter().map(|message| message.timestamp.seconds).collect();
    assert_eq!(times, (0..200).collect::<Vec<_>>());
}
