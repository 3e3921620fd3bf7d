//! The first start on an installation of the Haskell server.

use std::process::Stdio;
use std::time::Duration;

use super::{
    MESSAGE_LOG, STORE, STORE_LOG, assert_exported, copy, exists, lines, refusal, said, start_and_stop, vectors,
    with_files, write_logs,
};
use crate::support::cluster::Cluster;
use crate::support::random::{Random, seed};
use crate::support::{Installation, Server};

const LOGS: &[(&str, &str)] =
    &[(STORE_LOG, STORE_LOG), (MESSAGE_LOG, MESSAGE_LOG), ("smp-server-ntfs.log", "smp-server-ntfs.log")];

#[test]
fn logs_are_imported_kept_and_come_out_equal() {
    let server = Server::start_in(with_files(LOGS));
    let said = server.output().join("\n");
    assert!(said.contains("Imported 2 services, 16 queues, 9 messages"), "{said}");
    let installation = server.stop().installation;
    assert!(exists(&installation, "smp-server-store.log.bak") && exists(&installation, "smp-server-messages.log.bak"));
    assert!(exists(&installation, "smp-server-ntfs.log") && !exists(&installation, STORE_LOG));
    let installation = start_and_stop(installation);
    installation.run(&["database", "export", "-y"]);
    assert_exported(&installation);
    assert!(exists(&installation, STORE));
}

#[test]
fn a_journal_is_imported() {
    let installation = with_files(&[(STORE_LOG, STORE_LOG), ("messages", "messages")]);
    let installation = start_and_stop(installation);
    assert!(exists(&installation, "messages.bak") && !exists(&installation, "messages"));
    installation.run(&["database", "export", "messages", "-y"]);
    assert!(lines(&installation.log().join(MESSAGE_LOG)).len() > 10);
}

#[test]
fn a_damaged_line_is_named_and_refused_or_left_out() {
    let installation =
        with_files(&[("smp-server-store-old.log", STORE_LOG), ("smp-server-messages-old.log", MESSAGE_LOG)]);
    let said = refusal(&installation, &["start"]);
    assert!(said.contains("smp-server-store.log:") && said.contains("--skip-warnings"), "{said}");
    assert!(exists(&installation, STORE_LOG) && !exists(&installation, STORE), "{said}");
    let command = installation.command(&["start", "--skip-warnings"]);
    let installation = Server::start_by(command, installation).stop().installation;
    assert!(!exists(&installation, STORE_LOG));
    installation.run(&["database", "export", "queues", "-y"]);
    let expected = lines(&vectors().join("smp-server-store-old.compacted.log"));
    assert_eq!(lines(&installation.log().join(STORE_LOG)), expected);
}

#[test]
fn nothing_is_imported_where_nothing_is_kept() {
    let installation = with_files(LOGS);
    installation.set("STORE_LOG", "enable", "off");
    installation.set("STORE_LOG", "restore_messages", "off");
    let installation = start_and_stop(installation);
    assert!(exists(&installation, STORE_LOG) && exists(&installation, MESSAGE_LOG) && !exists(&installation, STORE));
}

/// Queues of the log that is cut off again and again.
const QUEUES: u64 = 3_000;

#[test]
fn killed_at_any_moment_the_next_start_begins_again_and_loses_nothing() {
    let installation = Installation::new();
    write_logs(&installation, QUEUES);
    let (log, messages) = (installation.log().join(STORE_LOG), installation.log().join(MESSAGE_LOG));
    let expected = [lines(&log), lines(&messages)];
    let mut random = Random::new(seed("killed_at_any_moment"));
    for _ in 0..6 {
        let mut command = installation.command(&["start"]);
        let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Whatever it is at then.
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        server.kill().unwrap();
        server.wait().unwrap();
    }
    let installation = start_and_stop(installation);
    for name in [STORE_LOG, MESSAGE_LOG, "smp-server.imported", "smp-server.db.import"] {
        assert!(!exists(&installation, name), "{name}");
    }
    installation.run(&["database", "export", "-y"]);
    assert_eq!([lines(&log), lines(&messages)], expected);
}

#[test]
fn a_journal_beside_a_database_is_imported_once() {
    let mut installation = with_files(&[(STORE_LOG, STORE_LOG)]);
    installation.keep_in(Cluster::shared().schema());
    installation.run(&["database", "import", "queues", "-y"]);
    installation.set("STORE_LOG", "store_messages", "journal");
    let journal = installation.log().join("messages");
    copy(&vectors().join("messages"), &journal);
    let told = said(&installation.run(&["start", "--check-config"]));
    assert!(told.contains("messages will be imported by `start`") && journal.exists(), "{told}");
    let installation = start_and_stop(installation);
    let all = installation.schema().unwrap().sql("SELECT count(*) FROM messages");
    assert!(all.parse::<u32>().unwrap() > 10 && exists(&installation, "messages.bak"), "{all}");
    assert_eq!(installation.schema().unwrap().sql("SELECT sum(msg_queue_size) FROM msg_queues"), all);
    copy(&vectors().join("messages"), &journal);
    for start in [&["start", "--check-config"][..], &["start"]] {
        let said = refusal(&installation, start);
        assert!(said.contains("database import messages"), "{said}");
    }
    installation.run(&["database", "import", "messages", "-y"]);
    assert_eq!(installation.schema().unwrap().sql("SELECT count(*) FROM messages"), all);
}

#[test]
fn both_a_store_and_files_are_refused() {
    let installation = start_and_stop(with_files(&[]));
    copy(&vectors().join(STORE_LOG), &installation.log().join(STORE_LOG));
    let said = refusal(&installation, &["start"]);
    assert!(said.contains("both") && said.contains("smp-server.db"), "{said}");
}
