//! `smp-server check` against the server.

use crate::support::{Server, Store, for_each_lasting_store};

for_each_lasting_store!(the_server_passes_the_check_in_every_version);

fn the_server_passes_the_check_in_every_version(store: Store) {
    let server = store.server();
    for version in 6..=20 {
        let version = version.to_string();
        let checked = server.installation().run(&["check", "--max-version", &version, &server.smp_address()]);
        let report = String::from_utf8(checked.stdout).expect("text");
        assert!(report.contains(&format!("version {version}\n")), "{report}");
        assert!(report.lines().last().is_some_and(|line| line.starts_with("ok    DEL")), "{report}");
    }
}

#[test]
fn a_failed_check_is_told_by_the_exit_code() {
    let server = Server::start();
    let nobody = server.smp_address().replace(&server.installation().fingerprint(), &"A".repeat(43));
    let checked = server.installation().command(&["check", &nobody]).output().expect("smp-server runs");
    assert!(!checked.status.success());
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(told.contains("the check failed: connect as recipient"), "{told}");
}
