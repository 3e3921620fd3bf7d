//! Commands from beginning to end, in temporary directories.

mod journal;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use clap::Parser;
use tempfile::TempDir;

use super::*;
use crate::settings::{self, StoreLocation};

/// An installation of its own.
struct Place {
    dir: TempDir,
    paths: Paths,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { config: dir.path().join("etc"), log: dir.path().join("var") };
        Place { dir, paths }
    }

    fn initialized() -> Self {
        let place = Place::new();
        place.run("init -y --fqdn smp.example.com --password pw", "").unwrap();
        place
    }

    /// Runs a command line with `input` on the terminal: what it printed.
    fn run(&self, line: &str, input: &str) -> Result<String, String> {
        self.run_with(line, input, &|_| Err("served".into()))
    }

    fn run_with(&self, line: &str, input: &str, run: RunServer<'_>) -> Result<String, String> {
        let command = CommandLine::try_parse_from(["smp-server"].into_iter().chain(line.split(' '))).unwrap().command;
        let path = |path: &std::path::Path| path.display().to_string();
        let (config, log) = (path(&self.paths.config), path(&self.paths.log));
        let environment = [("SMP_SERVER_CFG_PATH", config.as_str()), ("SMP_SERVER_LOG_PATH", log.as_str())];
        let mut output = Vec::new();
        let mut input = input.as_bytes();
        let result = execute(command, &Environment::from(environment), &mut Console::new(&mut input, &mut output), run);
        result.map(|()| String::from_utf8(output).unwrap()).map_err(|e| e.to_string())
    }

    fn settings(&self) -> settings::Loaded {
        settings::load(&self.paths, &Environment::default()).unwrap()
    }

    fn ini(&self) -> String {
        fs::read_to_string(self.paths.ini()).unwrap()
    }
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn init_writes_an_installation_that_start_accepts() {
    let place = Place::new();
    let told = place.run("init -y --fqdn smp.example.com --password p#w", "").unwrap();
    let fingerprint = fs::read_to_string(place.paths.fingerprint()).unwrap();
    assert_eq!(fingerprint.len(), 45);
    assert!(told.contains(&format!("Fingerprint: {fingerprint}")), "{told}");
    assert!(told.contains(&format!("Server address: smp://{}:p#w@smp.example.com\n", fingerprint.trim())), "{told}");
    for secret in [place.paths.ca_key(), place.paths.server_key(), place.paths.ini()] {
        assert_eq!(mode(&secret), 0o600, "{secret:?}");
    }
    let settings::Loaded { settings, notes } = place.settings();
    assert_eq!(notes, []);
    assert_eq!(settings.auth.create_password.unwrap().reveal(), "p#w");
    assert!(matches!(&settings.store.location, StoreLocation::File(path) if *path == place.paths.store()));
    let told = place.run("start --check-config", "").unwrap();
    assert!(told.ends_with("The configuration is valid.\n"), "{told}");
    assert!(told.contains(&format!("Fingerprint: {fingerprint}")), "{told}");
}

#[test]
fn openssl_accepts_the_files_of_init() {
    for algorithm in ["ED25519", "ED448"] {
        let place = Place::new();
        place.run(&format!("init -y -a {algorithm}"), "").unwrap();
        let identity = Identity::load(&place.paths).unwrap();
        assert_eq!(openssl::sha::sha256(&identity.chain[1]), identity.fingerprint.0);
        let key = openssl::pkey::PKey::private_key_from_pkcs8(&identity.private_key).unwrap();
        let server = openssl::x509::X509::from_der(&identity.chain[0]).unwrap();
        assert!(server.public_key().unwrap().public_eq(&key));
        let pem = fs::read_to_string(place.paths.server_key()).unwrap();
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert_eq!(identity.credentials().unwrap().fingerprint(), identity.fingerprint);
    }
}

#[test]
fn init_writes_a_random_password_unless_told_otherwise() {
    let password = |line: &str| {
        let place = Place::new();
        place.run(line, "").unwrap();
        place.settings().settings.auth.create_password.map(|password| password.reveal().to_owned())
    };
    let (one, two) = (password("init -y"), password("init -y"));
    assert_eq!(one.as_ref().map(String::len), Some(44));
    assert_ne!(one, two);
    assert_eq!(password("init -y --no-password"), None);
}

#[test]
fn init_puts_every_option_into_the_file() {
    let place = Place::new();
    let line = "init -y --disable-store-log -s --ip 10.0.0.1 --control-port 5555 --socks-proxy --own-domains a.b,c.d \
                --source-code --operator Me --operator-country ch --operator-website https://me --hosting You \
                --hosting-country de --hosting-type owned --server-country at --web-path /w -d postgresql://me@/mine --schema s \
                --pool-size 3";
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    place.run(&line, "").unwrap();
    let ini = place.ini();
    for expected in [
        "source_code = https://github.com/simplex-chat/simplexmq",
        "operator = Me",
        "operator_country = CH",
        "website = https://me",
        "hosting = You",
        "hosting_country = DE",
        "hosting_type = owned",
        "server_country = AT",
        "enable = off",
        "restore_messages = off",
        "db_connection = postgresql://me@/mine",
        "db_schema = s",
        "db_pool_size = 3",
        "log_stats = on",
        "host = 10.0.0.1",
        "control_port = 5555",
        "socks_proxy = localhost:9050",
        "own_server_domains = a.b c.d",
        "static_path = /w",
    ] {
        assert!(ini.lines().any(|line| line == expected), "{expected} in\n{ini}");
    }
    assert!(ini.contains("\ncontrol_port_admin_password = ") && ini.contains("\ncontrol_port_user_password = "));
    assert!(matches!(place.settings().settings.store.location, StoreLocation::Memory));
}

#[test]
fn init_asks_for_what_the_command_line_leaves_open() {
    let place = Place::new();
    let answers = "\nn\ny\nb@d\nmy-pw\nhost.example.com\nftp://no\nhttps://source\n\n";
    let told = place.run("init", answers).unwrap();
    assert!(told.contains("Invalid password") && told.contains("Invalid source code URI"), "{told}");
    let ini = place.ini();
    for expected in [
        "enable = off",
        "log_stats = on",
        "create_password = my-pw",
        "host = host.example.com",
        "source_code = https://source",
    ] {
        assert!(ini.lines().any(|line| line == expected), "{expected}");
    }
    let certificate = identity::read_certificate(&place.paths.server_certificate()).unwrap();
    assert_eq!(certificates::common_name(&certificate).as_deref(), Some("host.example.com"));
}

#[test]
fn init_does_nothing_when_the_answers_end() {
    for answers in ["", "\n", "\ny\n", "\ny\nn\n", "\ny\nn\nr\n", "\ny\nn\nr\nhost\n", "\ny\nn\nr\nhost\n\n"] {
        let place = Place::new();
        assert!(place.run("init", answers).unwrap_err().contains("NOT initialized"), "{answers:?}");
        assert!(!place.paths.config.exists());
    }
}

#[test]
fn init_never_touches_an_installation() {
    let place = Place::initialized();
    let before = fs::read(place.paths.ca_key()).unwrap();
    let refusal = place.run("init -y", "").unwrap_err();
    assert!(refusal.contains("already initialized") && refusal.contains("smp-server start"), "{refusal}");
    fs::remove_file(place.paths.ini()).unwrap();
    let refusal = place.run("init -y", "").unwrap_err();
    assert!(refusal.contains("ca.key belongs to a server"), "{refusal}");
    assert_eq!(fs::read(place.paths.ca_key()).unwrap(), before);
    let place = Place::new();
    fs::create_dir_all(place.paths.log.join("messages")).unwrap();
    assert!(place.run("init -y", "").unwrap_err().contains("messages belongs to a server"));
}

#[test]
fn init_refuses_what_does_not_fit_together() {
    let refusal = |line: &str| {
        let place = Place::new();
        let refusal = place.run(line, "").unwrap_err();
        assert!(!place.paths.config.exists());
        refusal
    };
    assert!(refusal("init -y --operator Me").contains("--source-code"));
    assert!(refusal("init -y --operator-country CH").contains("--operator"));
    assert!(refusal("init -y --hosting-country CH").contains("--hosting"));
    assert!(refusal("init -y --fqdn a\tb").contains("cannot be a host name"));
    assert!(refusal(&format!("init -y --fqdn {}", "x".repeat(65))).contains("1 to 64"));
    assert!(refusal("init -y --source-code --operator Me\n[AUTH]").contains("control characters"));
}

#[test]
fn start_hands_everything_to_the_server_and_returns_its_error() {
    let place = Place::initialized();
    let seen = RefCell::new(None);
    let run = |setup: start::ServerSetup| {
        seen.replace(Some(setup));
        Ok(())
    };
    let told = place.run_with("start --maintenance", "", &run).unwrap();
    let setup = seen.take().unwrap();
    assert!(setup.maintenance);
    assert_eq!(setup.identity.chain.len(), 2);
    assert_eq!(setup.paths, place.paths);
    for expected in ["SMP port 5223", "expiring messages after 21 days", "requires password"] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    assert_eq!(place.run("start", "").unwrap_err(), "served");
}

#[test]
fn start_needs_an_installation() {
    let place = Place::new();
    for command in ["start", "start --check-config", "cert", "delete"] {
        let refusal = place.run(command, "Y\n").unwrap_err();
        assert!(refusal.contains("not initialized") && refusal.contains("smp-server init"), "{refusal}");
    }
}

#[test]
fn start_refuses_files_that_do_not_belong_together() {
    let other = Place::initialized();
    let refusal = |change: &dyn Fn(&Place)| {
        let place = Place::initialized();
        change(&place);
        place.run("start", "").unwrap_err()
    };
    let replaced = |file: fn(&Paths) -> std::path::PathBuf| {
        refusal(&|place| assert!(fs::copy(file(&other.paths), file(&place.paths)).is_ok()))
    };
    assert!(replaced(Paths::ca_certificate).contains("does not match"));
    assert!(replaced(Paths::fingerprint).contains("does not match"));
    assert!(replaced(Paths::server_key).contains("server.key is not the key of server.crt"));
    let both = refusal(&|place| {
        fs::copy(other.paths.server_key(), place.paths.server_key()).unwrap();
        fs::copy(other.paths.server_certificate(), place.paths.server_certificate()).unwrap();
    });
    assert!(both.contains("server.crt is not signed by ca.crt") && both.contains("smp-server cert"), "{both}");
    for file in [Paths::ca_certificate, Paths::server_certificate, Paths::server_key, Paths::fingerprint] {
        assert!(refusal(&|place| fs::remove_file(file(&place.paths)).unwrap()).contains("cannot read"));
    }
    assert!(refusal(&|place| fs::write(place.paths.server_key(), "x").unwrap()).contains("not an unencrypted PEM"));
    assert!(refusal(&|place| fs::write(place.paths.ca_certificate(), "x").unwrap()).contains("ca.crt"));
    assert!(refusal(&|place| fs::remove_dir_all(&place.paths.log).unwrap()).contains("cannot write to"));
}

#[test]
fn start_takes_over_the_queues_of_the_haskell_server() {
    let place = Place::initialized();
    let log = place.paths.log.join("smp-server-store.log");
    fs::write(&log, "nonsense\n").unwrap();
    assert!(place.run("start --check-config", "").unwrap().contains("will be imported"));
    let refusal = place.run("start", "").unwrap_err();
    assert!(refusal.contains("1 damaged") && refusal.contains("--skip-warnings"), "{refusal}");
    assert_eq!(place.run("start --skip-warnings", "").unwrap_err(), "served");
    assert!(place.paths.store().exists() && !log.exists());
    fs::write(&log, "").unwrap();
    let refusal = place.run("start", "").unwrap_err();
    assert!(refusal.contains("both") && refusal.contains("smp-server.db"), "{refusal}");
    assert_eq!(place.run("start --skip-warnings", "").unwrap_err(), "served");
}

#[test]
fn start_reports_wrong_settings() {
    let place = Place::initialized();
    fs::write(place.paths.ini(), "[TRANSPORT]\nport = x\nworkers = y\n").unwrap();
    let refusal = place.run("start --check-config", "").unwrap_err();
    assert!(refusal.contains("2 mistakes") && refusal.contains("smp-server.ini:3"), "{refusal}");
}

#[test]
fn cert_makes_a_new_certificate_under_the_same_identity() {
    let place = Place::initialized();
    let before = Identity::load(&place.paths).unwrap();
    place.run("cert", "").unwrap();
    let kept = Identity::load(&place.paths).unwrap();
    assert_eq!(
        (kept.fingerprint, kept.algorithm, &kept.chain[1]),
        (before.fingerprint, before.algorithm, &before.chain[1])
    );
    assert_ne!(kept.chain[0], before.chain[0]);
    assert_ne!(kept.private_key, before.private_key);
    assert_eq!(mode(&place.paths.server_key()), 0o600);
    let name = |place: &Place| {
        certificates::common_name(&identity::read_certificate(&place.paths.server_certificate()).unwrap())
    };
    assert_eq!(name(&place).as_deref(), Some("smp.example.com"));
    place.run("cert -a ED448 --cn other.example.com", "").unwrap();
    let changed = Identity::load(&place.paths).unwrap();
    assert_eq!(changed.algorithm, certificates::SignAlgorithm::Ed448);
    assert_eq!(name(&place).as_deref(), Some("other.example.com"));
    assert_eq!(fs::read_dir(&place.paths.config).unwrap().count(), 6);
}

#[test]
fn cert_needs_the_key_of_the_authority() {
    let (place, other) = (Place::initialized(), Place::initialized());
    let before = fs::read(place.paths.server_certificate()).unwrap();
    fs::copy(other.paths.ca_key(), place.paths.ca_key()).unwrap();
    assert!(place.run("cert", "").unwrap_err().contains("is not the key of ca.crt"));
    fs::remove_file(place.paths.ca_key()).unwrap();
    assert!(place.run("cert", "").unwrap_err().contains("only the key of the authority"));
    assert_eq!(fs::read(place.paths.server_certificate()).unwrap(), before);
}

#[test]
fn delete_refuses_while_a_server_runs_on_the_store() {
    let place = Place::initialized();
    fs::write(place.paths.store(), "").unwrap();
    let running = crate::store::sqlite::StoreLock::take(&place.paths.store()).unwrap();
    let refusal = place.run("delete", "Y\n").unwrap_err();
    assert!(refusal.contains("Stop the server first"), "{refusal}");
    assert!(place.paths.store().exists());
    drop(running);
    assert!(place.run("delete", "Y\n").unwrap().contains("Deleted"));
}

#[test]
fn delete_deletes_only_what_was_confirmed() {
    let place = Place::initialized();
    fs::create_dir(place.paths.log.join("messages")).unwrap();
    for no in ["", "n\n", "y\n"] {
        assert!(place.run("delete", no).unwrap_err().contains("NOT deleted"));
        assert!(place.paths.ini().exists());
    }
    assert!(place.run("delete", "Y\n").unwrap().contains("Deleted"));
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0);
    place.run("init -y", "").unwrap();
}
