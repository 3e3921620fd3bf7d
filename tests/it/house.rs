//! Rules of the house that no lint checks.

use std::fs;
use std::path::{Path, PathBuf};

/// The only file that sends to an actor without a handle: it makes the handles.
const MAY_SEND_RAW: &str = "src/actors/mailbox.rs";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files under `directory`, relative to the root of the repository.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.file_type().unwrap().is_dir());
    let nested = directories.iter().flat_map(|entry| rust_files(&directory.join(entry.file_name())));
    let here = files.iter().map(|entry| directory.join(entry.file_name()));
    here.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).chain(nested).collect()
}

/// Lines of `path` before its unit tests, which stand last in a file; none of a file that is tests.
fn lines_without_tests(path: &Path) -> usize {
    let is_test = path.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name));
    let text = fs::read_to_string(root().join(path)).unwrap();
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    if is_test { 0 } else { text.get(..end).unwrap_or_default().lines().count() }
}

#[test]
fn only_the_mailbox_switches_off_the_ban_of_unbounded_sends() {
    let files: Vec<_> = ["src", "benches"].into_iter().filter(|directory| root().join(directory).exists()).collect();
    let offenders: Vec<_> = files
        .iter()
        .flat_map(|directory| rust_files(Path::new(directory)))
        .filter(|path| path != Path::new(MAY_SEND_RAW))
        .filter(|path| fs::read_to_string(root().join(path)).unwrap().contains("clippy::disallowed_methods"))
        .collect();
    assert!(offenders.is_empty(), "clippy::disallowed_methods is allowed in {offenders:?}");
}

#[test]
fn no_file_has_more_than_400_lines_besides_its_tests() {
    let long: Vec<_> = rust_files(Path::new("src"))
        .into_iter()
        .map(|path| (lines_without_tests(&path), path))
        .filter(|(lines, _)| *lines > 400)
        .collect();
    assert!(long.is_empty(), "to be split along a concept: {long:?}");
}

#[test]
fn nothing_in_the_protocol_layer_does_io_or_knows_the_layers_above() {
    let foreign = [
        "tokio",
        "actix",
        "std::net::Tcp",
        "std::net::Udp",
        "std::fs",
        "crate::transport",
        "crate::store",
        "crate::actors",
    ];
    let offenders: Vec<_> =
        rust_files(Path::new("src/protocol")).into_iter().flat_map(|path| foreign_uses(&path, &foreign)).collect();
    assert!(offenders.is_empty(), "src/protocol is pure: {offenders:?}");
}

/// The `use` lines of `path` that name one of `foreign`.
fn foreign_uses(path: &Path, foreign: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let uses = text.lines().filter(|line| line.trim_start().starts_with("use "));
    let bad = uses.filter(|line| foreign.iter().any(|name| line.contains(name)));
    bad.map(|line| format!("{}: {line}", path.display())).collect()
}

/// What stands between backticks in the cells of a table's column.
fn quoted_in_column(text: &str, column: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut index = None;
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match line.starts_with('|') {
            false => index = None,
            true if cells.contains(&column) => index = cells.iter().position(|cell| *cell == column),
            true => {
                let cell = index.and_then(|index| cells.get(index)).copied().unwrap_or_default();
                names.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    names
}

#[test]
fn every_setting_and_metric_of_the_backpressure_table_exists() {
    let table = fs::read_to_string(root().join("docs/backpressure.md")).unwrap();
    let ini = fs::read_to_string(root().join("config/smp-server.ini")).unwrap();
    let metrics = fs::read_to_string(root().join("src/actors/metrics.rs")).unwrap();
    let (settings, named) = (quoted_in_column(&table, "setting"), quoted_in_column(&table, "metric"));
    assert!(settings.len() >= 8 && named.len() >= 20, "the table was not found: {settings:?} {named:?}");
    let is_key = |name: &String| {
        ini.lines()
            .any(|line| line.trim_start_matches(['#', ' ']).split(['=', ':']).next().map(str::trim) == Some(name))
    };
    let unknown: Vec<_> = settings.iter().filter(|name| !is_key(name)).collect();
    assert!(unknown.is_empty(), "not in config/smp-server.ini: {unknown:?}");
    let unknown: Vec<_> = named.iter().filter(|name| !metrics.contains(&format!("{name} = "))).collect();
    assert!(unknown.is_empty(), "not in src/actors/metrics.rs: {unknown:?}");
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, section) = text.split_once("## Invariants").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let bare: Vec<_> = section.lines().filter(|line| line.starts_with('|') && line.ends_with("| |")).collect();
    assert!(bare.is_empty(), "without a test: {bare:?}");
    let sources: String = ["src", "tests"]
        .into_iter()
        .flat_map(|directory| rust_files(Path::new(directory)))
        .map(|path| fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let names = quoted_in_column(section, "test");
    let tests: Vec<_> = names.iter().filter_map(|name| name.rsplit_once("::")).map(|(_, test)| test).collect();
    assert!(tests.len() >= 15, "the table was not found: {names:?}");
    let missing: Vec<_> =
        tests.iter().filter(|test| !test.contains('*') && !sources.contains(&format!("fn {test}("))).collect();
    assert!(missing.is_empty(), "there is no test {missing:?}");
}
