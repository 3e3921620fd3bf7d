//! What the settings accept, what they refuse, and how they say so.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::protocol::Version;
use crate::store::postgres::connect::Connector;

/// What `init` of the Haskell server writes, in keys and values; `store`, `password` and `transport` are lines that differ.
fn haskell_ini(enable: &str, store_messages: &str, password: &str) -> String {
    format!(
        "[INFORMATION]\n# License\n\nsource_code = https://example.com/source?a=b#c\n\n# server_country = ISO code\n\
         operator = Some Org; Ltd\noperator_country = CH\n# website = \nhosting_type = virtual\n\n\
         [STORE_LOG]\n# Log\nenable = {enable}\n\nstore_queues = memory\n\n# db_connection = postgresql://smp@/store\n\
         # db_schema = smp_server\n# db_pool_size = 10\n\n# db_store_log = off\n# db_deleted_ttl = 21\n\n\
         store_messages = {store_messages}\n\nrestore_messages = {enable}\n\nexpire_messages_days = 21\n\
         expire_messages_on_start = on\nexpire_messages_on_send = off\nexpire_ntfs_hours = 24\n\nlog_stats = off\n\n\
         # prometheus_interval = 60\n\n\
         [AUTH]\n# Queues\nnew_queues = on\n\n{password}\n\n# control_port_admin_password = \n\
         # control_port_user_password = \n\n# daily_block_queue_quota = 20\n\n\
         [TRANSPORT]\n# Host\nhost = smp1.example.com,abc.onion\nport = 5223,443\nlog_tls_errors = off\n\n\
         websockets = off\n# control_port = 5224\n\n\
         [PROXY]\n# host_mode = public\n# required_host_mode = off\n# own_server_domains = \n\n\
         # socks_proxy = localhost:9050\n# socks_mode = onion\n# client_concurrency = 32\n\n\
         [NAMES]\nenable: off\n# resolver_endpoint: http://127.0.0.1:8000\n# resolver_concurrency = 1000\n\n\
         [INACTIVE_CLIENTS]\ndisconnect = on\nttl = 21600\ncheck_interval = 3600\n\n\
         [WEB]\nstatic_path = /var/opt/simplex/www\n\n# http = 8000\n\nhttps = 443\n\
         cert = /etc/opt/simplex/web.crt\nkey = /etc/opt/simplex/web.key\n"
    )
}

fn parse_with(text: &str, environment: &[(&str, &str)]) -> Result<Loaded, SettingsError> {
    let paths = Paths { config: "/c".into(), log: "/l".into() };
    parse(Path::new("smp-server.ini"), text, &paths, &Environment::from(environment.iter().copied()))
}

fn settings(text: &str) -> Settings {
    parse_with(text, &[]).unwrap().settings
}

fn problems(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
    parse_with(text, environment).unwrap_err().problems.iter().map(Problem::to_string).collect()
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let Loaded { settings, notes } = parse_with("", &[]).unwrap();
    assert_eq!(notes, []);
    let Transport { host, ports, versions, workers, .. } = &settings.transport;
    assert_eq!((host.as_str(), ports.as_slice(), workers), ("<hostnames>", &[5223, 443][..], &None));
    assert_eq!((versions.min(), versions.max()), (Version(6), Version(20)));
    assert_eq!(settings.transport.client_blocks, 32);
    assert_eq!(settings.transport.send_timeout, Duration::from_secs(60));
    assert!(settings.transport.x448 && settings.auth.new_queues && settings.auth.create_password.is_none());
    assert!(matches!(settings.store.location, StoreLocation::Memory));
    assert_eq!((settings.store.message_queue_quota, settings.store.sync), (128, Sync::Full));
    let expiration = settings.store.expiration;
    assert_eq!(expiration.ttl, Duration::from_secs(21 * 86_400));
    assert_eq!(expiration.check_interval, Duration::from_secs(7200));
    assert!(expiration.on_start && expiration.on_send);
    assert_eq!((settings.inactive_clients, settings.subscriptions.end_interval), (None, Duration::ZERO));
}

#[test]
fn files_of_the_haskell_server_are_read_unchanged() {
    let no_password = "# create_password = some words, '@' and ':' and '/'";
    for (store, password) in [("memory", no_password), ("journal", "create_password = p#w;d=\\'\"%")] {
        let Loaded { settings, notes } = parse_with(&haskell_ini("on", store, password), &[]).unwrap();
        assert!(
            matches!(&settings.store.location, StoreLocation::File(path) if *path == Path::new("/l/smp-server.db"))
        );
        assert!(!settings.store.expiration.on_send);
        assert_eq!(settings.transport.host, "smp1.example.com,abc.onion");
        assert_eq!(settings.information.source_code.as_deref(), Some("https://example.com/source?a=b#c"));
        assert_eq!(settings.inactive_clients.unwrap().ttl, Duration::from_secs(21600));
        let expected = (store == "journal").then_some("p#w;d=\\'\"%");
        assert_eq!(settings.auth.create_password.as_ref().map(Password::reveal), expected);
        let waiting = ["operator", "operator_country"].map(|key| format!("[INFORMATION] {key}"));
        let web = ["static_path", "https", "cert", "key"].map(|key| format!("[WEB] {key}"));
        assert_eq!(notes, [Note::NotImplemented(waiting.into_iter().chain(web).collect())]);
    }
}

#[test]
fn a_disabled_store_stays_in_memory() {
    assert!(matches!(settings(&haskell_ini("off", "memory", "")).store.location, StoreLocation::Memory));
    let Loaded { settings, notes } = parse_with(&haskell_ini("off", "journal", ""), &[]).unwrap();
    assert!(matches!(settings.store.location, StoreLocation::Memory));
    assert!(notes.iter().any(|note| note.to_string().contains("[STORE_LOG] store_messages = journal")), "{notes:?}");
}

fn database_ini(queues: &str, messages: &str) -> String {
    format!("[STORE_LOG]\nstore_queues = {queues}\nstore_messages = {messages}\n")
}

fn database(text: &str) -> Database {
    match settings(text).store.location {
        StoreLocation::Postgres(database) => database,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_database_keeps_queues_and_messages() {
    for messages in ["database", "journal"] {
        let found = database(&database_ini("database", messages));
        assert_eq!((found.options.schema.as_str(), found.pool_size), ("smp_server", 10));
        assert_eq!(found.deleted_ttl, 21);
        assert_eq!((found.import_journal, found.store_log), (messages == "journal", false));
        let connector = Connector::with_environment(&found.options, &|_| None).unwrap();
        let expected = "database \"smp_server_store\" (user \"smp\")";
        assert!(connector.to_string().starts_with(expected), "{connector}");
    }
    let keys = "db_connection = host=/run dbname=x\ndb_schema = other_1\ndb_pool_size = 1000\ndb_deleted_ttl = 0\n";
    let found = database(&(database_ini("database", "database") + keys));
    assert_eq!((found.options.schema.as_str(), found.pool_size), ("other_1", 1000));
    assert_eq!(found.deleted_ttl, 0);
}

#[test]
fn wrong_keys_of_a_database_are_named_with_what_is_wrong() {
    let cases = [
        ("db_connection", "postgresql://smp@/x?colour=red", "unknown parameter \"colour\""),
        ("db_connection", "host", "cannot be read"),
        ("db_connection", "sslmode=perhaps", "sslmode"),
        ("db_schema", "Smp", "lower-case letters"),
        ("db_pool_size", "0", "connections, a whole number from 1 to 1000"),
        ("db_deleted_ttl", "-1", "days"),
        ("db_store_log", "yes", "`on` or `off`"),
    ];
    for (key, value, expected) in cases {
        let found = problems(&(database_ini("database", "database") + &format!("{key} = {value}\n")), &[]);
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("smp-server.ini:4: [STORE_LOG] {key} = ")),
            "{found:?}"
        );
        assert!(found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn a_mistake_in_where_the_store_is_brings_no_notes_of_another_store() {
    for (queues, mistake) in [("database", "db_connection = host"), ("database", "db_schema = Smp"), ("disk", "")] {
        let text = database_ini(queues, "database") + "enable = off\nrestore_messages = on\n" + mistake;
        let told = parse_with(&text, &[]).unwrap_err().to_string();
        assert!(!told.contains("no effect"), "{told}");
    }
}

#[test]
fn queues_and_messages_are_not_kept_in_different_places() {
    let told = problems(&database_ini("database", "memory"), &[]);
    assert_eq!(
        told,
        ["smp-server.ini:3: [STORE_LOG] store_messages = memory: allowed with [STORE_LOG] store_queues = database: \
          `database` or `journal`"]
    );
    for queues in ["memory", "journal"] {
        let told = problems(&database_ini(queues, "database"), &[]);
        assert!(
            told.len() == 1 && told[0].ends_with(&format!("store_queues = {queues}: `memory` or `journal`")),
            "{told:?}"
        );
    }
    let told = problems("[STORE_LOG]\nstore_queues = database\n", &[]);
    assert!(
        told[0].starts_with("smp-server.ini:2: [STORE_LOG] store_queues = database: ") && told[0].contains("not set"),
        "{told:?}"
    );
    let told = problems("[STORE_LOG]\nstore_messages = database\n", &[]);
    assert!(told[0].starts_with("smp-server.ini:2: [STORE_LOG] store_messages = database: "), "{told:?}");
}

#[test]
fn keys_of_the_database_may_say_anything_while_it_is_not_used() {
    let text =
        "[STORE_LOG]\ndb_connection = \ndb_schema = 1 2\ndb_pool_size = 0\ndb_store_log = x\ndb_deleted_ttl = -1\n";
    assert_eq!(parse_with(text, &[]).unwrap().notes, []);
}

#[test]
fn keys_without_effect_on_a_database_are_told() {
    let quiet =
        database_ini("database", "database") + "enable = on\nrestore_messages = on\nsync = full\ndb_store_log = off\n";
    assert_eq!(parse_with(&quiet, &[]).unwrap().notes, []);
    let asking = database_ini("database", "database")
        + "enable = off\nrestore_messages = off\nsync = normal\ndb_store_log = on\n";
    let told: Vec<_> = parse_with(&asking, &[]).unwrap().notes.iter().map(Note::to_string).collect();
    let expected = ["enable = off", "restore_messages = off", "sync = normal", "db_store_log = on"];
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(&format!("[STORE_LOG] {expected} has no effect")), "{told}");
    }
}

#[test]
fn the_environment_overrides_the_file_and_the_file_the_defaults() {
    let text = "[TRANSPORT]\nport = 1\nclient_blocks = 7\n[STORE_LOG]\nexpire_messages_days = 1\n";
    let environment = [
        ("SMP_SERVER__TRANSPORT__PORT", "2,3"),
        ("SMP_SERVER__STORE_LOG__EXPIRE_MESSAGES_SECONDS", "5"),
        ("SMP_SERVER__STORE_LOG__EXPIRE_CHECK_SECONDS", ""),
        ("SMP_SERVER__AUTH__CREATE_PASSWORD", "pw#1"),
        ("SMP_SERVER_CFG_PATH", "/elsewhere"),
    ];
    let Loaded { settings, notes } = parse_with(text, &environment).unwrap();
    assert_eq!((settings.transport.ports.as_slice(), settings.transport.client_blocks), (&[2, 3][..], 7));
    assert_eq!(settings.store.expiration.ttl, Duration::from_secs(5));
    assert_eq!(settings.store.expiration.check_interval, Duration::from_secs(7200));
    assert_eq!(settings.auth.create_password.unwrap().reveal(), "pw#1");
    assert_eq!(notes, []);
}

#[test]
fn names_are_read_in_any_case() {
    assert_eq!(settings("[Transport]\nPORT = 7").transport.ports, [7]);
}

#[test]
fn every_kind_of_wrong_value_names_place_key_value_and_what_is_allowed() {
    let cases = [
        ("TRANSPORT", "port", "5223,70000", "port numbers"),
        ("TRANSPORT", "port", "1,2,1", "different"),
        ("TRANSPORT", "port", "", "port numbers"),
        ("TRANSPORT", "log_tls_errors", "yes", "`on` or `off`"),
        ("TRANSPORT", "min_smp_version", "5", "from 6 to 20"),
        ("TRANSPORT", "max_smp_version", "21", "from 6 to 20"),
        ("TRANSPORT", "max_connections", "0", "connections, a whole number from 1"),
        ("TRANSPORT", "max_handshakes", "many", "handshakes"),
        ("TRANSPORT", "handshake_timeout", "1.5", "seconds"),
        ("TRANSPORT", "client_blocks", "-1", "blocks"),
        ("TRANSPORT", "send_timeout", "0", "seconds"),
        ("TRANSPORT", "workers", "0", "`auto`"),
        ("TRANSPORT", "x448", "true", "`on` or `off`"),
        ("STORE_LOG", "enable", "On", "`on` or `off`"),
        ("STORE_LOG", "store_queues", "disk", "`memory`"),
        ("STORE_LOG", "store_messages", "disk", "`memory` or `journal` or `database`"),
        ("STORE_LOG", "restore_messages", "1", "`on` or `off`"),
        ("STORE_LOG", "message_queue_quota", "0", "messages"),
        ("STORE_LOG", "expire_messages_days", "0", "days"),
        ("STORE_LOG", "expire_messages_seconds", "x", "seconds"),
        ("STORE_LOG", "expire_check_seconds", "0", "seconds"),
        ("STORE_LOG", "expire_messages_on_send", "", "`on` or `off`"),
        ("STORE_LOG", "sync", "off", "`full` or `normal`"),
        ("AUTH", "new_queues", "no", "`on` or `off`"),
        ("INACTIVE_CLIENTS", "disconnect", "x", "`on` or `off`"),
        ("INACTIVE_CLIENTS", "ttl", "0", "seconds"),
        ("INACTIVE_CLIENTS", "check_interval", "6h", "seconds"),
        ("SUBSCRIPTIONS", "end_interval_ms", "-1", "milliseconds"),
    ];
    for (section, key, value, allowed) in cases {
        let found = problems(&format!("[{section}]\n{key} = {value}\n"), &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("smp-server.ini:2: [{section}] {key} = {value}: ")), "{found:?}");
        assert!(found[0].contains(allowed), "{found:?}");
        if !value.is_empty() {
            let variable = format!("SMP_SERVER__{section}__{}", key.to_uppercase());
            let found = problems("", &[(&variable, value)]);
            assert!(found[0].starts_with(&format!("{variable}: [{section}] {key} = {value}: ")), "{found:?}");
        }
    }
}

#[test]
fn versions_must_not_be_the_wrong_way_round() {
    let found = problems("[TRANSPORT]\nmin_smp_version = 9\nmax_smp_version = 8\n", &[]);
    assert_eq!(
        found,
        ["smp-server.ini:2: [TRANSPORT] min_smp_version = 9: it is above [TRANSPORT] max_smp_version = 8"]
    );
    let versions = settings("[TRANSPORT]\nmin_smp_version = 8\nmax_smp_version = 8\n").transport.versions;
    assert_eq!((versions.min(), versions.max()), (Version(8), Version(8)));
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "nonsense\n[TRANSPORT]\nport = x\nworkers = y\n[AUTH]\nnew_queues = z\n[broken\n";
    let error = parse_with(text, &[("SMP_SERVER__STORE_LOG__SYNC", "w")]).unwrap_err();
    assert_eq!(error.problems.len(), 6);
    let told = error.to_string();
    assert!(told.starts_with("the settings have 6 mistakes:\n  "), "{told}");
    for part in ["ini:1: ", "ini:3: ", "ini:4: ", "ini:6: ", "ini:7: ", "SMP_SERVER__STORE_LOG__SYNC: "] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let places: Vec<_> = error.problems.iter().map(|problem| problem.place.as_str()).collect();
    assert!(places[..5].is_sorted() && places[5].starts_with("SMP_SERVER"), "{places:?}");
}

#[test]
fn a_misspelt_key_is_told_beside_the_mistakes() {
    let text = "[TRANSPORT]\nport = x\nmax_conections = 5\n";
    let told = parse_with(text, &[]).unwrap_err().to_string();
    assert!(told.contains("note: ") && told.contains("max_conections") && told.contains("max_connections"), "{told}");
}

#[test]
fn passwords_are_never_shown() {
    for text in ["[AUTH]\ncreate_password = to/psecret\n", "[AUTH]\nport = psecret\ncreate_password = a psecret #\n"] {
        let error = parse_with(text, &[]).unwrap_err();
        assert!(error.to_string().contains("[AUTH] create_password = (not shown)"), "{error}");
        assert!(!format!("{error} {error:?}").contains("psecret"));
    }
    let text = database_ini("database", "database") + "db_connection = postgresql://a:psecret@[x\n";
    let error = parse_with(&text, &[]).unwrap_err();
    assert!(error.to_string().contains("[STORE_LOG] db_connection = (not shown)"), "{error}");
    assert!(!format!("{error} {error:?}").contains("psecret"));
    let text = database_ini("database", "database") + "db_connection = postgresql://a:psecret@x/y\n";
    assert!(!format!("{:?}", parse_with(&text, &[]).unwrap()).contains("psecret"));
    let loaded = parse_with("[AUTH]\ncreate_password = psecret\ncontrol_port_user_password = psecret\n", &[]).unwrap();
    assert!(!format!("{loaded:?}").contains("psecret"));
}

#[test]
fn a_comment_behind_a_value_is_explained() {
    let found = problems("[TRANSPORT]\nclient_blocks = 32 # blocks\n", &[]);
    assert!(found[0].ends_with("(a comment needs a line of its own)"), "{found:?}");
}

#[test]
fn unknown_and_repeated_keys_are_named_and_do_not_hinder() {
    let text = "[TRANSPORT]\nmax_conections = 5\nport = 1\nport = 2\n[AUTH]\na.b = 1\n[MINE]\nx = y\n";
    let environment =
        [("SMP_SERVER__TRANSPORT", "x"), ("SMP_SERVER__TRANSPORT__WORKER", "2"), ("SMP_SERVER__A[0__B", "")];
    let Loaded { settings, notes } = parse_with(text, &environment).unwrap();
    assert_eq!(settings.transport.ports, [1]);
    let told: Vec<_> = notes.iter().map(Note::to_string).collect();
    assert_eq!(
        told,
        [
            "smp-server.ini:2: unknown key [TRANSPORT] max_conections, without effect; is [TRANSPORT] max_connections meant?",
            "smp-server.ini:6: unknown key [AUTH] a.b, without effect",
            "smp-server.ini:8: unknown key [MINE] x, without effect",
            "smp-server.ini:4: [TRANSPORT] port is there twice, the first counts",
            "SMP_SERVER__TRANSPORT: unknown key [TRANSPORT] , without effect",
            "SMP_SERVER__TRANSPORT__WORKER: unknown key [TRANSPORT] worker, without effect; is [TRANSPORT] workers meant?",
        ]
    );
}

#[test]
fn keys_that_are_not_implemented_are_named_only_when_they_ask_for_something() {
    let quiet = "[TRANSPORT]\nwebsockets = off\n[STORE_LOG]\nlog_stats = off\ndb_schema = x\n[NAMES]\nenable: off\n";
    assert_eq!(parse_with(quiet, &[]).unwrap().notes, []);
    let asking = "[TRANSPORT]\nwebsockets = 443\ncontrol_port = 5224\n[STORE_LOG]\nlog_stats = on\n";
    let told = parse_with(asking, &[]).unwrap().notes;
    assert_eq!(told.len(), 1);
    let expected = "not implemented yet, without effect: [STORE_LOG] log_stats, [TRANSPORT] websockets, \
                    [TRANSPORT] control_port";
    assert_eq!(told[0].to_string(), expected);
}

#[test]
fn the_address_names_a_port_only_if_clients_would_not_find_it() {
    let port = |ports: &str| settings(&format!("[TRANSPORT]\nport = {ports}")).transport.address_port();
    assert_eq!(
        (port("5223,443"), port("443, 5223"), port("5225"), port("443,80")),
        (None, None, Some(5225), Some(443))
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake_too() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { config: dir.path().into(), log: dir.path().into() };
    let error = load(&paths, &Environment::default()).unwrap_err();
    assert!(error.to_string().contains("smp-server.ini: cannot be read: No such file"), "{error}");
    std::fs::write(paths.ini(), b"[AUTH]\n\nk = \xff\n").unwrap();
    assert!(load(&paths, &Environment::default()).unwrap_err().to_string().contains("line 3 is not UTF-8"));
}

#[test]
fn every_key_that_counts_as_used_is_read_and_checked() {
    let free_text = [keys::HOST, keys::SOURCE_CODE];
    for key in keys::ALL.iter().filter(|key| key.support == keys::Support::Used && !free_text.contains(key)) {
        let mut text = format!("[{}]\n{} = \u{1}x\n", key.section, key.name);
        if key.name.starts_with("db_") {
            text = database_ini("database", "database") + &text;
        }
        let found = problems(&text, &[]);
        assert!(found[0].contains(&key.title()), "{found:?}");
    }
}
