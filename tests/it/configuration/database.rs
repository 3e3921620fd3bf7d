//! Starting on a database: one that is not there, new, of another version, in use, or beside files of another store.

use std::fs;

use rustix::process::Signal;

use super::{refusal, start};
use crate::support::cluster::Cluster;
use crate::support::{Installation, Relay, Server, Store};

fn both(output: &std::process::Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// An installation whose schema is made, and which no server runs on.
fn stopped() -> Installation {
    Store::Postgres.server().stop().installation
}

#[test]
fn a_database_that_is_not_there_is_named_and_nothing_listens() {
    let (installation, nowhere) = (Installation::new(), tempfile::tempdir().unwrap());
    installation.use_database(&format!("postgresql://smp@/smp?host={}", nowhere.path().display()), "smp_server");
    for arguments in [&["start"][..], &["start", "--check-config"], &["start", "--maintenance"]] {
        let output = installation.command(arguments).output().unwrap();
        let said = refusal(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("PostgreSQL cannot be reached") && said.contains("db_connection"), "{said}");
    }
}

#[test]
fn a_new_schema_is_created_and_told_once() {
    let server = Store::Postgres.server();
    assert!(server.output().iter().any(|line| line.contains("created the schema")));
    let server = Server::start_in(server.stop().installation);
    assert!(!server.output().iter().any(|line| line.contains("created the schema")));
}

#[test]
fn a_configuration_with_a_new_schema_is_checked_without_creating_it() {
    let installation = Store::Postgres.installation();
    let schema = installation.schema().unwrap();
    let count = || schema.sql(format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", schema.name()));
    let said = both(&installation.run(&["start", "--check-config"]));
    assert!(said.contains("`start` creates it") && said.contains("The configuration is valid"), "{said}");
    assert_eq!(count(), "0");
    let installation = Server::start_in(installation).stop().installation;
    let said = both(&installation.run(&["start", "--check-config"]));
    assert!(!said.contains("creates it") && said.contains("The configuration is valid"), "{said}");
}

#[test]
fn a_configuration_is_checked_beside_a_running_server() {
    let server = Store::Postgres.server();
    let said = both(&server.installation().run(&["start", "--check-config"]));
    assert!(said.contains("PostgreSQL database \"smp\"") && said.contains("schema: smp_test_"), "{said}");
}

#[test]
fn a_second_server_on_the_same_schema_is_refused() {
    let server = Store::Postgres.server();
    for arguments in [&["start"][..], &["start", "--maintenance"]] {
        let said = refusal(&server.installation().command(arguments).output().unwrap());
        assert!(said.contains("in use by another smp-server"), "{said}");
    }
    Server::start_in(server.kill().installation);
}

#[test]
fn an_older_schema_is_migrated_only_when_that_is_confirmed() {
    let installation = stopped();
    let schema = installation.schema().unwrap();
    let newest = schema.sql("DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations) RETURNING name");
    for arguments in [&["start"][..], &["start", "--maintenance"]] {
        let said = refusal(&installation.command(arguments).output().unwrap());
        assert!(said.contains("--confirm-migrations up") && said.contains(&newest), "{said}");
    }
    let said = both(&installation.run(&["start", "--check-config"]));
    assert!(said.contains("--confirm-migrations up"), "{said}");
}

#[test]
fn a_newer_schema_is_taken_back_only_when_that_is_confirmed() {
    let installation = stopped();
    let schema = installation.schema().unwrap();
    schema.sql("INSERT INTO migrations (name, ts, down) VALUES ('29990101_later', now(), 'SELECT 1;')");
    for arguments in [&["start"][..], &["start", "--confirm-migrations", "up"]] {
        let said = refusal(&installation.command(arguments).output().unwrap());
        assert!(said.contains("--confirm-migrations down") && said.contains("29990101_later"), "{said}");
    }
    let command = installation.command(&["start", "--confirm-migrations", "down"]);
    let server = Server::start_by(command, installation);
    let schema = server.installation().schema().unwrap();
    assert_eq!(schema.sql("SELECT count(*) FROM migrations WHERE name = '29990101_later'"), "0");
}

#[test]
fn a_schema_with_an_unfinished_import_is_refused() {
    let installation = stopped();
    let schema = installation.schema().unwrap();
    schema.sql(format!("COMMENT ON SCHEMA {} IS 'smp-server import in progress: test'", schema.name()));
    for arguments in [&["start"][..], &["start", "--check-config"]] {
        let said = refusal(&installation.command(arguments).output().unwrap());
        assert!(said.contains("an import into it was interrupted"), "{said}");
    }
}

#[test]
fn a_database_without_pgcrypto_is_told_how_to_get_it() {
    let (installation, cluster) = (Installation::new(), Cluster::shared());
    cluster.sql("CREATE DATABASE without_pgcrypto");
    installation.use_database(&cluster.connection().replace("/smp?", "/without_pgcrypto?"), "smp_server");
    let said = start(&installation);
    assert!(said.contains("CREATE EXTENSION") && said.contains("pgcrypto"), "{said}");
}

#[test]
fn queues_and_messages_beside_the_database_are_not_left_behind() {
    let installation = Store::Postgres.installation();
    let file = |name: &str| installation.log().join(name);
    let refused = |name: &str, expected: &[&str]| {
        let said = start(&installation);
        assert!(said.contains(name) && expected.iter().all(|text| said.contains(text)), "{said}");
    };
    fs::write(file("smp-server-store.log"), "").unwrap();
    refused("smp-server-store.log", &["smp-server database import"]);
    fs::remove_file(file("smp-server-store.log")).unwrap();
    fs::write(file("smp-server-messages.log"), "").unwrap();
    refused("smp-server-messages.log", &["smp-server database import --table messages"]);
    fs::remove_file(file("smp-server-messages.log")).unwrap();
    fs::create_dir(file("messages")).unwrap();
    refused("messages", &["store_messages to `journal`"]);
    installation.set("STORE_LOG", "store_messages", "journal");
    refused("messages", &["not the schema", "Check db_connection and db_schema"]);
    installation.set("STORE_LOG", "store_messages", "database");
    fs::remove_dir(file("messages")).unwrap();
    fs::write(file("smp-server.db"), "").unwrap();
    refused("smp-server.db", &["smp-server database import", "--skip-warnings"]);
    fs::remove_file(file("smp-server.db")).unwrap();
    let installation = Server::start_in(installation).stop().installation;
    fs::write(installation.log().join("smp-server-store.log"), "").unwrap();
    let said = start(&installation);
    assert!(said.contains("both") && said.contains("smp-server-store.log"), "{said}");
    // The Haskell server has written it beside the database.
    installation.set("STORE_LOG", "db_store_log", "on");
    fs::write(installation.log().join("smp-server.db"), "").unwrap();
    let check = both(&installation.run(&["start", "--check-config"]));
    assert!(check.contains("smp-server.db is there and not used"), "{check}");
    let told = Server::start_in(installation).stop().output.join("\n");
    assert!(told.contains("db_store_log = on has no effect") && told.contains("smp-server.db is there"), "{told}");
}

#[test]
fn maintenance_is_done_on_a_database_too() {
    let said = both(&Store::Postgres.installation().run(&["start", "--maintenance"]));
    assert!(said.contains("maintenance finished") && !said.contains("Listening on"), "{said}");
}

#[tokio::test]
async fn the_password_of_the_database_is_told_nowhere() {
    const PASSWORD: &str = "secret-of-the-database";
    let installation = Store::Postgres.installation();
    let connection = Cluster::shared().connection().replace("smp@", &format!("smp:{PASSWORD}@"));
    installation.set("STORE_LOG", "db_connection", &connection);
    let mut command = installation.command(&["start"]);
    command.env("RUST_LOG", "trace");
    let relay = Relay::of(Server::start_by(command, installation));
    crate::support::secured(&mut relay.connect().await).await;
    let said = relay.end(Signal::TERM).await.output.join("\n");
    assert!(said.contains("DEBUG") && said.contains("PostgreSQL database"), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
}
