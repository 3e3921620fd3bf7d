use std::fs;

use clap::Parser;

use super::arguments::{DatabaseArguments, Kind, Table};
use super::plan::{Plan, Step};
use crate::cli::options::{Command, CommandLine};
use crate::settings::Paths;

fn arguments(line: &str) -> DatabaseArguments {
    let words = ["smp-server", "database"].into_iter().chain(line.split(' '));
    match CommandLine::try_parse_from(words).unwrap().command {
        Command::Database(arguments) => *arguments,
        other => panic!("{other:?}"),
    }
}

struct Files(tempfile::TempDir);

impl Files {
    fn with(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| fs::write(directory.path().join(name), "").unwrap());
        Files(directory)
    }

    fn plan(&self, line: &str, on_database: bool) -> Result<Plan, String> {
        let paths = Paths { config: self.0.path().to_owned(), log: self.0.path().to_owned() };
        Plan::make(&paths, &arguments(line), on_database).map_err(|error| error.to_string())
    }
}

const LOGS: [&str; 2] = ["smp-server-store.log", "smp-server-messages.log"];

#[test]
fn the_haskell_servers_command_lines_are_understood() {
    assert_eq!(arguments("import").tables(), Table::All);
    assert_eq!(arguments("import --table queues").tables(), Table::Queues);
    assert_eq!(arguments("export messages").tables(), Table::Messages);
    let full = arguments("delete --table all -d postgresql://smp@/x --schema other --pool-size 3");
    assert_eq!(full.schema.unwrap().as_str(), "other");
    assert!(full.connection.is_some() && !full.yes);
}

#[test]
fn what_is_imported_is_what_is_there() {
    let plan = Files::with(&LOGS).plan("import", false).unwrap();
    assert_eq!((plan.from, plan.to, plan.step), (Kind::Log, Kind::Postgres, Step::Files));
    assert_eq!(plan.files.paths().count(), 2);
    let plan = Files::with(&["smp-server.db"]).plan("import", false).unwrap();
    assert_eq!((plan.from, plan.step), (Kind::Sqlite, Step::Store));
    let plan = Files::with(&LOGS).plan("import messages", true).unwrap();
    assert_eq!((plan.step, plan.files.queues), (Step::MessagesInto, None));
}

#[test]
fn what_is_exported_is_what_the_server_runs_on() {
    let plan = Files::with(&[]).plan("export", true).unwrap();
    assert_eq!((plan.from, plan.to, plan.step), (Kind::Postgres, Kind::Log, Step::Store));
    let plan = Files::with(&["smp-server.db"]).plan("export", false).unwrap();
    assert_eq!(plan.from, Kind::Sqlite);
    let plan = Files::with(&[]).plan("export --from postgres --to sqlite", false).unwrap();
    assert_eq!((plan.from, plan.to), (Kind::Postgres, Kind::Sqlite));
}

#[test]
fn exported_logs_are_not_told_to_be_beside_a_store_that_is_not_there() {
    let advice = |names, line| Files::with(names).plan(line, false).unwrap().advice(false);
    assert!(advice(&["smp-server.db"], "export").contains("smp-server.db away"));
    let told = advice(&[], "export --from postgres");
    assert!(!told.contains("smp-server.db") && told.contains("store_messages = memory"), "{told}");
}

#[test]
fn refusals_say_what_to_do() {
    let cases: [(&[&str], &str, &str); 8] = [
        (&["smp-server.db", LOGS[0]], "import", "--from log or --from sqlite"),
        (&[], "import", "SMP_SERVER_LOG_PATH"),
        (&[LOGS[0]], "import", "import the queues alone"),
        (&[LOGS[1]], "import", "no queues to import.\nIf it is in another directory"),
        (&[LOGS[0], LOGS[1], "messages"], "import", "Move the other one away"),
        (&[], "export", "does not exist"),
        (&["smp-server.db"], "import queues", "use `all`"),
        (&["smp-server.db"], "export --from sqlite --to sqlite", "name different ones"),
    ];
    for (names, line, expected) in cases {
        let refusal = Files::with(names).plan(line, false).unwrap_err();
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
}
