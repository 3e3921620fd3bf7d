//! `smp-server database`: files, the embedded store and PostgreSQL, each into each other.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::{
    MESSAGE_LOG, STORE, STORE_LOG, assert_exported, exists, lines, refusal, said, start_and_stop, with_files,
    write_logs,
};
use crate::support::cluster::{Cluster, Schema};
use crate::support::random::{Random, seed};
use crate::support::{Installation, Server};

const LOGS: &[(&str, &str)] = &[(STORE_LOG, STORE_LOG), (MESSAGE_LOG, MESSAGE_LOG)];

/// Arguments with a schema's place.
fn on<'a>(schema: &'a Schema, connection: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["database"], arguments, &["-d", connection, "--schema", schema.name()]].concat()
}

#[test]
fn files_go_into_postgresql_and_come_out_equal() {
    let (installation, schema) = (with_files(LOGS), Cluster::shared().schema());
    let connection = schema.cluster().connection();
    let output = installation.run(&on(&schema, &connection, &["import", "-y"]));
    assert!(said(&output).contains("store_queues = database"), "{}", said(&output));
    assert!(exists(&installation, "smp-server-store.log.bak") && exists(&installation, "smp-server-messages.log.bak"));
    installation.run(&on(&schema, &connection, &["export", "--from", "postgres", "-y"]));
    assert_exported(&installation);
    let again = refusal(&installation, &on(&schema, &connection, &["import", "-y"]));
    assert!(again.contains("exists already") && again.contains("database delete"), "{again}");
    let again = refusal(&installation, &on(&schema, &connection, &["export", "--from", "postgres", "-y"]));
    assert!(again.contains("smp-server-store.log exists already"), "{again}");
    let output = installation.run(&on(&schema, &connection, &["delete"]));
    assert!(said(&output).contains(&format!("DROP SCHEMA {} CASCADE;", schema.name())), "{}", said(&output));
}

#[test]
fn queues_and_messages_go_one_after_the_other() {
    let (installation, schema) = (with_files(LOGS), Cluster::shared().schema());
    let connection = schema.cluster().connection();
    let early = refusal(&installation, &on(&schema, &connection, &["import", "messages", "-y"]));
    assert!(early.contains("does not exist") && early.contains("database import queues"), "{early}");
    installation.run(&on(&schema, &connection, &["import", "--table", "queues", "-y"]));
    assert!(exists(&installation, MESSAGE_LOG));
    installation.run(&on(&schema, &connection, &["import", "--table", "messages", "-y"]));
    for table in ["queues", "messages"] {
        installation.run(&on(&schema, &connection, &["export", table, "--from", "postgres", "-y"]));
    }
    assert_exported(&installation);
}

#[test]
fn a_question_that_is_not_answered_with_yes_changes_nothing() {
    let (installation, schema) = (with_files(LOGS), Cluster::shared().schema());
    let connection = schema.cluster().connection();
    for answer in ["", "n\n", "\n"] {
        let mut command = installation.command(&on(&schema, &connection, &["import"]));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success() && said(&output).contains("nothing was moved"), "{}", said(&output));
        assert_eq!(said(&output).contains("Pass --yes"), answer.is_empty(), "{}", said(&output));
    }
    assert!(exists(&installation, STORE_LOG) && exists(&installation, MESSAGE_LOG));
    let missing = refusal(&installation, &on(&schema, &connection, &["delete"]));
    assert!(missing.contains("no schema"), "{missing}");
}

#[test]
fn damage_refuses_before_anything_is_written() {
    let (installation, schema) = (with_files(&[("smp-server-store-old.log", STORE_LOG)]), Cluster::shared().schema());
    let connection = schema.cluster().connection();
    let damaged = refusal(&installation, &on(&schema, &connection, &["import", "queues", "-y"]));
    assert!(damaged.contains("smp-server-store.log:") && damaged.contains("--skip-warnings"), "{damaged}");
    assert!(refusal(&installation, &on(&schema, &connection, &["delete"])).contains("no schema"));
    installation.run(&on(&schema, &connection, &["import", "queues", "-y", "--skip-warnings"]));
    assert!(!exists(&installation, STORE_LOG));
}

#[test]
fn a_running_server_is_not_disturbed() {
    let server = Server::start();
    let said = refusal(server.installation(), &["database", "export", "-y"]);
    assert!(said.contains("in use") && said.contains("Stop the server"), "{said}");
    let mut installation = server.stop().installation;
    installation.keep_in(Cluster::shared().schema());
    std::fs::remove_file(installation.log().join(STORE)).unwrap();
    let server = Server::start_in(installation);
    let said = refusal(server.installation(), &["database", "export", "-y"]);
    assert!(said.contains("in use"), "{said}");
}

const QUEUES: u64 = 3_000;

#[test]
fn sqlite_goes_into_postgresql_and_back_also_when_killed_on_the_way() {
    let (installation, schema) = (Installation::new(), Cluster::shared().schema());
    let connection = schema.cluster().connection();
    write_logs(&installation, QUEUES);
    let logs = [STORE_LOG, MESSAGE_LOG].map(|name| installation.log().join(name));
    let expected = logs.each_ref().map(|log| lines(log));
    let installation = start_and_stop(installation);
    let mut random = Random::new(seed("sqlite_goes_into_postgresql"));
    let ways = [
        on(&schema, &connection, &["import", "-y"]),
        on(&schema, &connection, &["export", "--from", "postgres", "--to", "sqlite", "-y"]),
    ];
    for way in &ways {
        for _ in 0..3 {
            let mut command = installation.command(way);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.below(1_500)));
            child.kill().unwrap();
            let ended = child.wait().unwrap();
            if ended.success() {
                break;
            }
        }
        let output = installation.command(way).output().unwrap();
        // It may have been done before it was killed.
        let done = ["exist", "was imported already"].iter().any(|told| said(&output).contains(told));
        assert!(output.status.success() || done, "{}", said(&output));
        if said(&output).contains("then cut off, nothing is missing") {
            // Between its last two steps: the second is left to whoever reads that.
            let backup = installation.log().join("smp-server.db.bak");
            std::fs::rename(installation.log().join(STORE), backup).unwrap();
        }
    }
    assert!(exists(&installation, "smp-server.db.bak") && exists(&installation, STORE));
    installation.run(&["database", "export", "-y"]);
    assert_eq!(logs.each_ref().map(|log| lines(log)), expected);
}
