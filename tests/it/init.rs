//! `smp-server init`: what it leaves behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::Installation;

#[test]
fn init_makes_keys_certificates_fingerprint_and_settings() {
    let installation = Installation::empty();
    let output = installation.run(&["init", "-y", "--fqdn", "localhost", "--no-password"]);
    for name in ["ca.crt", "ca.key", "server.crt", "server.key", "fingerprint", "smp-server.ini"] {
        let length = fs::metadata(installation.config().join(name)).map(|file| file.len());
        assert!(length.as_ref().is_ok_and(|length| *length > 0), "{name}: {length:?}");
    }
    let said = String::from_utf8(output.stdout).unwrap();
    let address = format!("smp://{}@localhost", installation.fingerprint());
    assert!(said.contains(&address), "{address} is not in what init prints:\n{said}");
}

#[test]
fn init_keeps_private_keys_from_other_users() {
    let installation = Installation::empty();
    installation.run(&["init", "-y", "--fqdn", "localhost", "--no-password"]);
    for name in ["ca.key", "server.key"] {
        let mode = fs::metadata(installation.config().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}

#[test]
fn init_does_not_touch_what_is_there() {
    let installation = Installation::empty();
    installation.run(&["init", "-y", "--fqdn", "localhost", "--no-password"]);
    let before = fs::read(installation.config().join("ca.key")).unwrap();
    let again = installation.command(&["init", "-y", "--fqdn", "localhost", "--no-password"]).output().unwrap();
    assert!(!again.status.success(), "a second init is refused: {again:?}");
    assert_eq!(fs::read(installation.config().join("ca.key")).unwrap(), before);
}
