//! Starting with settings that are right, wrong, overridden, or those of the server that was here before.

mod database;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::{Installation, Relay, Server};

/// What a server that does not start says, and that it failed.
fn refusal(output: &Output) -> String {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    assert!(!output.status.success(), "it started: {said}");
    assert!(!said.contains("Listening on"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn start(installation: &Installation) -> String {
    refusal(&installation.command(&["start"]).output().unwrap())
}

const MISTAKES: &[(&str, &str, &str, &str)] = &[
    ("TRANSPORT", "port", "5223,many", "port numbers"),
    ("TRANSPORT", "max_smp_version", "21", "6 to 20"),
    ("STORE_LOG", "message_queue_quota", "none", "whole number"),
    ("STORE_LOG", "sync", "sometimes", "`full` or `normal`"),
    ("AUTH", "new_queues", "perhaps", "`on` or `off`"),
    ("INACTIVE_CLIENTS", "ttl", "-1", "seconds"),
    ("STORE_LOG", "expire_ntfs_hours", "0", "hours"),
    ("NOTIFICATIONS", "delivery_interval_ms", "soon", "milliseconds"),
    ("NOTIFICATIONS", "pending_per_notifier", "0", "whole number"),
    ("NOTIFICATIONS", "pending_total", "all", "whole number"),
];

#[test]
fn all_wrong_values_are_named_at_once_with_place_and_what_is_allowed() {
    let installation = Installation::new();
    for (section, key, value, _) in MISTAKES {
        installation.set(section, key, value);
    }
    for arguments in [&["start"][..], &["start", "--check-config"]] {
        let said = refusal(&installation.command(arguments).output().unwrap());
        assert!(said.contains(&format!("{} mistakes", MISTAKES.len())), "{said}");
        for (section, key, value, allowed) in MISTAKES {
            let title = format!("[{section}] {key} = {value}");
            let line = said.lines().find(|line| line.contains(&title)).unwrap_or_else(|| panic!("{title} in {said}"));
            assert!(line.contains("smp-server.ini:") && line.contains(allowed), "{line}");
        }
    }
    let files = fs::read_dir(installation.log()).unwrap().count();
    assert_eq!(files, 0, "nothing was begun");
}

#[test]
fn a_configuration_is_checked_without_being_used() {
    let installation = Installation::new();
    // A port that is in use: nothing is listened on.
    let taken = TcpListener::bind("[::]:0").unwrap();
    installation.set("TRANSPORT", "port", &taken.local_addr().unwrap().port().to_string());
    let output = installation.run(&["start", "--check-config"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("The configuration is valid") && !said.contains("Listening on"), "{said}");
    assert_eq!(fs::read_dir(installation.log()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_environment_overrides_the_file() {
    let installation = Installation::new();
    installation.set("AUTH", "new_queues", "on");
    installation.set("TRANSPORT", "max_smp_version", "20");
    let mut command = installation.command(&["start"]);
    command.env("SMP_SERVER__AUTH__NEW_QUEUES", "off").env("SMP_SERVER__TRANSPORT__MAX_SMP_VERSION", "9");
    let relay = Relay::of(Server::start_by(command, installation));
    let mut client = relay.connect().await;
    assert_eq!(client.version().0, 9);
    assert!(smp_server::client::NewQueue::messaging().create(&mut client).await.is_err());
}

/// A server that is told how long notifications are kept, and how many: nothing of that is left to a later version.
#[test]
fn settings_of_notifications_are_used() {
    let installation = Installation::new();
    let keys = [
        ("STORE_LOG", "expire_ntfs_hours", "48"),
        ("NOTIFICATIONS", "delivery_interval_ms", "250"),
        ("NOTIFICATIONS", "pending_per_notifier", "5"),
        ("NOTIFICATIONS", "pending_total", "1000"),
    ];
    for (section, key, value) in keys {
        installation.set(section, key, value);
    }
    let said = Server::start_in(installation).output().join("\n");
    for (_, key, _) in keys {
        assert!(!said.contains(key), "{said}");
    }
}

#[test]
fn a_wrong_value_in_the_environment_is_named_with_its_variable() {
    let installation = Installation::new();
    let mut command = installation.command(&["start"]);
    let said = refusal(&command.env("SMP_SERVER__TRANSPORT__WORKERS", "all").output().unwrap());
    assert!(said.contains("SMP_SERVER__TRANSPORT__WORKERS: [TRANSPORT] workers = all"), "{said}");
}

#[test]
fn a_second_server_on_the_same_store_is_refused() {
    let server = Server::start();
    let said = start(server.installation());
    assert!(said.contains("smp-server.db") && (said.contains("use") || said.contains("another")), "{said}");
    let installation = server.stop().installation;
    Server::start_in(installation);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let installation = Installation::new();
    installation.set("TRANSPORT", "port", &port.to_string());
    let said = start(&installation);
    assert!(said.contains(&format!(":{port}")) && said.contains("in use"), "{said}");
}

/// Root reads everything, so that only a test of another user can tell.
fn reads_everything(installation: &Installation) -> bool {
    fs::read(installation.config().join("server.key")).is_ok()
}

#[test]
fn an_unreadable_key_is_named() {
    let installation = Installation::new();
    let key = installation.config().join("server.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).unwrap();
    if reads_everything(&installation) {
        fs::remove_file(&key).unwrap();
        fs::create_dir(&key).unwrap();
    }
    let said = start(&installation);
    assert!(said.contains("server.key") && said.contains("cannot"), "{said}");
}

#[test]
fn a_key_of_another_certificate_or_none_is_named() {
    let (installation, other) = (Installation::new(), Installation::new());
    fs::copy(other.config().join("server.key"), installation.config().join("server.key")).unwrap();
    let said = start(&installation);
    assert!(said.contains("server.key") && said.contains("is not the key of server.crt"), "{said}");
    fs::write(installation.config().join("server.key"), "no key").unwrap();
    assert!(start(&installation).contains("server.key"), "{said}");
}

#[test]
fn a_directory_that_was_not_initialised_is_told_how() {
    let said = start(&Installation::empty());
    assert!(said.contains("init"), "{said}");
}

/// As the Haskell server's `init` writes it, in sections, keys, values and what is commented out.
const OF_THE_HASKELL_SERVER: &str = "\
[INFORMATION]
source_code: https://github.com/simplex-chat/simplexmq

# usage_conditions: https://example.com/terms
# condition_amendments: https://example.com/amendments

# server_country: SE
# operator: entity (organization or person name)
# operator_country: GB
# website:

# admin_simplex: SimpleX address
# admin_email:
# admin_pgp:
# admin_pgp_fingerprint:

# complaints_simplex: SimpleX address
# complaints_email:

# hosting: entity (organization or person name)
# hosting_country: US
hosting_type: virtual

[STORE_LOG]
enable: on

store_queues: memory

# db_connection: postgresql://smp@/smp_server_store
# db_schema: smp_server
# db_pool_size: 10

# db_store_log: off

# db_deleted_ttl: 21

store_messages: memory

restore_messages: on

expire_messages_days: 21
expire_messages_on_start: on
expire_messages_on_send: off
expire_ntfs_hours: 24

log_stats: off

# prometheus_interval: 60

[AUTH]
new_queues: on

create_password: a-password

# control_port_admin_password:
# control_port_user_password:

[TRANSPORT]
host: <hostnames>
port: 5223,443
log_tls_errors: off

websockets: off
# control_port: 5224

[PROXY]
# host_mode: public
# required_host_mode: off

# own_server_domains:

# socks_proxy: localhost:9050

# socks_mode: onion

# client_concurrency: 32

[INACTIVE_CLIENTS]
disconnect: on
ttl: 21600
check_interval: 3600

[WEB]
static_path: /var/opt/simplex/www

# http: 8000

https: 443
cert: /etc/opt/simplex/web.crt
key: /etc/opt/simplex/web.key
";

/// But for the ports, which other tests would fight about: they come from the environment.
#[tokio::test]
async fn the_settings_of_the_haskell_server_start_this_one_unchanged() {
    let installation = Installation::new();
    fs::write(installation.config().join("smp-server.ini"), OF_THE_HASKELL_SERVER).unwrap();
    let mut command = installation.command(&["start"]);
    command.env("SMP_SERVER__TRANSPORT__PORT", "0,0");
    let server = Server::start_by(command, installation);
    let relay = Relay::of(server);
    let mut client = relay.connect().await;
    let new = smp_server::client::NewQueue::messaging().with_password(Some(b"a-password".as_slice().into()));
    new.create(&mut client).await.unwrap();
    let said = relay.server().output().join("\n");
    for key in ["[WEB] static_path", "[WEB] https", "[WEB] cert", "[WEB] key"] {
        assert_eq!(said.matches(key).count(), 1, "{key} is named once: {said}");
    }
}

#[tokio::test]
async fn every_port_is_served() {
    let installation = Installation::new();
    installation.set("TRANSPORT", "port", "0,0");
    let server = Server::start_in(installation);
    let fingerprint = server.installation().fingerprint();
    let first = server.address();
    let mut second = None;
    crate::support::until("the second address", async || {
        let lines = server.output();
        second = lines.iter().find_map(|line| line.strip_prefix("Listening on ")?.parse::<SocketAddr>().ok());
        second.is_some()
    })
    .await;
    for port in [first.port(), second.unwrap().port()] {
        for host in ["127.0.0.1", "[::1]"] {
            let address = format!("smp://{fingerprint}@{host}:{port}").parse().unwrap();
            match smp_server::client::Client::connect(&address, &Default::default()).await {
                Ok(mut client) => client.ping().await.unwrap(),
                // Not every machine that tests has IPv6.
                Err(error) => assert_eq!(host, "[::1]", "{error}"),
            }
        }
    }
}
