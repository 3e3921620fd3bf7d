//! Every key that the INI file may have: its place, its default, and whether this version does something with it.
//!
//! The documentation of the keys is `config/smp-server.ini`; a test holds the two together.

/// What this version makes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has an effect.
    Used,
    /// It is accepted, and named in the log unless it has the value that asks for nothing.
    Later {
        /// The value that asks for nothing, if there is one.
        idle: Option<&'static str>,
    },
}

/// A key of the INI file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name of the section, upper case.
    pub section: &'static str,
    /// Name of the key, lower case.
    pub name: &'static str,
    /// The value that an absent key has; `None` if its absence means something of its own.
    pub default: Option<&'static str>,
    /// What this version makes of it.
    pub support: Support,
    /// Whether its value must never be shown.
    pub secret: bool,
}

impl Key {
    /// `[SECTION] name`.
    pub fn title(&self) -> String {
        format!("[{}] {}", self.section, self.name)
    }

    /// The environment variable that overrides it.
    pub fn variable(&self) -> String {
        format!("{}{}__{}", super::environment::OVERRIDE_PREFIX, self.section, self.name.to_uppercase())
    }

    const fn secret(self) -> Self {
        Key { secret: true, ..self }
    }
}

const fn key(section: &'static str, name: &'static str, default: Option<&'static str>, support: Support) -> Key {
    Key { section, name, default, support, secret: false }
}

const fn used(section: &'static str, name: &'static str, default: &'static str) -> Key {
    key(section, name, Some(default), Support::Used)
}

const fn optional(section: &'static str, name: &'static str) -> Key {
    key(section, name, None, Support::Used)
}

const fn later(section: &'static str, name: &'static str) -> Key {
    key(section, name, None, Support::Later { idle: None })
}

const fn later_unless(section: &'static str, name: &'static str, idle: &'static str) -> Key {
    key(section, name, None, Support::Later { idle: Some(idle) })
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $key:expr;)*) => {
        $($(#[$doc])* pub const $name: Key = $key;)*

        /// All keys, in the order of the shipped file.
        pub const ALL: &[Key] = &[$($name),*];
    };
}

keys! {
    /// Where the source code of the running version is (URI); shown on start.
    SOURCE_CODE = optional("INFORMATION", "source_code");
    /// Conditions of use (URI).
    USAGE_CONDITIONS = later("INFORMATION", "usage_conditions");
    /// Amendments to the conditions (URI).
    CONDITION_AMENDMENTS = later("INFORMATION", "condition_amendments");
    /// Country of the server.
    SERVER_COUNTRY = later("INFORMATION", "server_country");
    /// Name of the operator.
    OPERATOR = later("INFORMATION", "operator");
    /// Country of the operator.
    OPERATOR_COUNTRY = later("INFORMATION", "operator_country");
    /// Web site of the operator.
    WEBSITE = later("INFORMATION", "website");
    /// SimpleX address of the administrators.
    ADMIN_SIMPLEX = later("INFORMATION", "admin_simplex");
    /// E-mail address of the administrators.
    ADMIN_EMAIL = later("INFORMATION", "admin_email");
    /// PGP key of the administrators.
    ADMIN_PGP = later("INFORMATION", "admin_pgp");
    /// Fingerprint of that PGP key.
    ADMIN_PGP_FINGERPRINT = later("INFORMATION", "admin_pgp_fingerprint");
    /// SimpleX address for complaints.
    COMPLAINTS_SIMPLEX = later("INFORMATION", "complaints_simplex");
    /// E-mail address for complaints.
    COMPLAINTS_EMAIL = later("INFORMATION", "complaints_email");
    /// PGP key for complaints.
    COMPLAINTS_PGP = later("INFORMATION", "complaints_pgp");
    /// Fingerprint of that PGP key.
    COMPLAINTS_PGP_FINGERPRINT = later("INFORMATION", "complaints_pgp_fingerprint");
    /// Name of the hosting provider.
    HOSTING = later("INFORMATION", "hosting");
    /// Country of the hosting provider.
    HOSTING_COUNTRY = later("INFORMATION", "hosting_country");
    /// Kind of hosting. The Haskell server writes `virtual` whether it was asked for or not.
    HOSTING_TYPE = later_unless("INFORMATION", "hosting_type", "virtual");

    /// Whether anything is kept on disk.
    STORE_ENABLE = used("STORE_LOG", "enable", "off");
    /// Where queues are kept.
    STORE_QUEUES = used("STORE_LOG", "store_queues", "memory");
    /// Where messages are kept.
    STORE_MESSAGES = used("STORE_LOG", "store_messages", "memory");
    /// PostgreSQL: connection string, which may hold a password.
    DB_CONNECTION = used("STORE_LOG", "db_connection", "postgresql://smp@/smp_server_store").secret();
    /// PostgreSQL: schema.
    DB_SCHEMA = used("STORE_LOG", "db_schema", "smp_server");
    /// PostgreSQL: connections.
    DB_POOL_SIZE = used("STORE_LOG", "db_pool_size", "10");
    /// PostgreSQL: whether changes are written to a log file too, which this server does not do.
    DB_STORE_LOG = used("STORE_LOG", "db_store_log", "off");
    /// PostgreSQL: how long deleted queues are kept, days.
    DB_DELETED_TTL = used("STORE_LOG", "db_deleted_ttl", "21");
    /// Whether messages survive a restart.
    RESTORE_MESSAGES = optional("STORE_LOG", "restore_messages");
    /// Messages a queue holds.
    MESSAGE_QUEUE_QUOTA = used("STORE_LOG", "message_queue_quota", "128");
    /// Age of messages that are deleted, days.
    EXPIRE_MESSAGES_DAYS = used("STORE_LOG", "expire_messages_days", "21");
    /// Age of messages that are deleted, seconds.
    EXPIRE_MESSAGES_SECONDS = optional("STORE_LOG", "expire_messages_seconds");
    /// How often old messages are looked for, seconds.
    EXPIRE_CHECK_SECONDS = used("STORE_LOG", "expire_check_seconds", "7200");
    /// Whether old messages are deleted on start.
    EXPIRE_MESSAGES_ON_START = used("STORE_LOG", "expire_messages_on_start", "on");
    /// Whether old messages of a queue are deleted when a message is sent to it.
    EXPIRE_MESSAGES_ON_SEND = used("STORE_LOG", "expire_messages_on_send", "on");
    /// Age of notifications that are deleted, hours.
    EXPIRE_NTFS_HOURS = used("STORE_LOG", "expire_ntfs_hours", "24");
    /// How a commit reaches the disk.
    SYNC = used("STORE_LOG", "sync", "full");
    /// Daily statistics.
    LOG_STATS = later_unless("STORE_LOG", "log_stats", "off");
    /// Interval of metrics, seconds.
    PROMETHEUS_INTERVAL = later("STORE_LOG", "prometheus_interval");

    /// Whether queues may be created.
    NEW_QUEUES = used("AUTH", "new_queues", "on");
    /// Password to create queues.
    CREATE_PASSWORD = optional("AUTH", "create_password").secret();
    /// Control port: password of administrators.
    CONTROL_PORT_ADMIN_PASSWORD = later("AUTH", "control_port_admin_password").secret();
    /// Control port: password of other users.
    CONTROL_PORT_USER_PASSWORD = later("AUTH", "control_port_user_password").secret();
    /// Control port: queues that may be blocked a day.
    DAILY_BLOCK_QUEUE_QUOTA = later_unless("AUTH", "daily_block_queue_quota", "20");

    /// Host names for the server's address.
    HOST = used("TRANSPORT", "host", "<hostnames>");
    /// Ports to listen on.
    PORT = used("TRANSPORT", "port", "5223,443");
    /// Whether failed TLS handshakes are logged.
    LOG_TLS_ERRORS = used("TRANSPORT", "log_tls_errors", "off");
    /// Ports for web sockets.
    WEBSOCKETS = later_unless("TRANSPORT", "websockets", "off");
    /// Control port.
    CONTROL_PORT = later("TRANSPORT", "control_port");
    /// Oldest version of SMP that is spoken.
    MIN_SMP_VERSION = used("TRANSPORT", "min_smp_version", "6");
    /// Newest version of SMP that is spoken.
    MAX_SMP_VERSION = used("TRANSPORT", "max_smp_version", "20");
    /// Connections at a time.
    MAX_CONNECTIONS = used("TRANSPORT", "max_connections", "100000");
    /// Handshakes at a time.
    MAX_HANDSHAKES = used("TRANSPORT", "max_handshakes", "1000");
    /// Time for TLS and SMP handshake together, seconds.
    HANDSHAKE_TIMEOUT = used("TRANSPORT", "handshake_timeout", "60");
    /// Blocks that may wait to be sent to a client.
    CLIENT_BLOCKS = used("TRANSPORT", "client_blocks", "32");
    /// Time in which a client must take something of what waits for it, seconds.
    SEND_TIMEOUT = used("TRANSPORT", "send_timeout", "60");
    /// Worker threads.
    WORKERS = used("TRANSPORT", "workers", "auto");
    /// Whether X448 key exchange is accepted.
    X448 = used("TRANSPORT", "x448", "on");

    /// Whether the public or the onion host of a relay is preferred.
    HOST_MODE = later_unless("PROXY", "host_mode", "public");
    /// Whether the preferred kind of host is required.
    REQUIRED_HOST_MODE = later_unless("PROXY", "required_host_mode", "off");
    /// Domains of own relays.
    OWN_SERVER_DOMAINS = later("PROXY", "own_server_domains");
    /// SOCKS proxy.
    SOCKS_PROXY = later("PROXY", "socks_proxy");
    /// What the SOCKS proxy is used for.
    SOCKS_MODE = later_unless("PROXY", "socks_mode", "onion");
    /// Proxy commands of a client at a time.
    CLIENT_CONCURRENCY = later_unless("PROXY", "client_concurrency", "32");

    /// Whether names are resolved.
    NAMES_ENABLE = later_unless("NAMES", "enable", "off");
    /// Resolver (URI).
    RESOLVER_ENDPOINT = later("NAMES", "resolver_endpoint");
    /// Credentials for the resolver.
    RESOLVER_AUTH = later("NAMES", "resolver_auth").secret();
    /// Time for an answer of the resolver, milliseconds.
    RESOLVER_TIMEOUT_MS = later("NAMES", "resolver_timeout_ms");
    /// Size of an answer of the resolver, bytes.
    RESOLVER_MAX_RESPONSE_BYTES = later("NAMES", "resolver_max_response_bytes");
    /// Lookups of a connection at a time.
    RESOLVER_CONCURRENCY = later("NAMES", "resolver_concurrency");

    /// Whether inactive clients are disconnected.
    DISCONNECT = used("INACTIVE_CLIENTS", "disconnect", "off");
    /// Time without commands after which a client is inactive, seconds.
    INACTIVE_TTL = used("INACTIVE_CLIENTS", "ttl", "21600");
    /// How often inactive clients are looked for, seconds.
    INACTIVE_CHECK_INTERVAL = used("INACTIVE_CLIENTS", "check_interval", "3600");

    /// How long `END` and `DELD` are collected before they are sent, milliseconds.
    END_INTERVAL_MS = used("SUBSCRIPTIONS", "end_interval_ms", "0");

    /// How long notifications of a connection are collected before they are sent, milliseconds.
    DELIVERY_INTERVAL_MS = used("NOTIFICATIONS", "delivery_interval_ms", "100");
    /// Notifications that may wait for one notifier.
    PENDING_PER_NOTIFIER = used("NOTIFICATIONS", "pending_per_notifier", "100");
    /// Notifications that may wait in all.
    PENDING_TOTAL = used("NOTIFICATIONS", "pending_total", "100000");

    /// Directory of the generated site.
    STATIC_PATH = later("WEB", "static_path");
    /// HTTP port.
    HTTP = later("WEB", "http");
    /// HTTPS port.
    HTTPS = later("WEB", "https");
    /// Certificate for HTTPS.
    WEB_CERT = later("WEB", "cert");
    /// Key for HTTPS.
    WEB_KEY = later("WEB", "key");
}

/// The key that `section` and `name` (in any case) stand for.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    ALL.iter().find(|key| key.section.eq_ignore_ascii_case(section) && key.name.eq_ignore_ascii_case(name))
}

/// The known key that somebody who wrote `[section] name` probably meant: the same name in another section, or a name with
/// at most two letters changed, missing or too many.
pub fn suggest(section: &str, name: &str) -> Option<&'static Key> {
    let name = name.to_lowercase();
    let misplaced = || ALL.iter().find(|key| key.name == name);
    let distance = |key: &&Key| {
        let in_name = edit_distance(&name, key.name);
        in_name + edit_distance(&section.to_uppercase(), key.section)
    };
    let nearest = || ALL.iter().min_by_key(distance).filter(|key| distance(key) <= 2);
    nearest().or_else(misplaced)
}

/// Levenshtein distance, in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_their_names_are_plain() {
        for (i, key) in ALL.iter().enumerate() {
            assert!(ALL[i + 1..].iter().all(|other| other.title() != key.title()), "{}", key.title());
            assert!(key.name.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'_')), "{}", key.name);
            assert!(key.section.bytes().all(|c| matches!(c, b'A'..=b'Z' | b'_')), "{}", key.section);
        }
    }

    #[test]
    fn slips_of_the_pen_are_recognized() {
        assert_eq!(suggest("TRANSPORT", "max_conections"), Some(&MAX_CONNECTIONS));
        assert_eq!(suggest("TRANSPROT", "port"), Some(&PORT));
        assert_eq!(suggest("AUTH", "max_connections"), Some(&MAX_CONNECTIONS));
        assert_eq!(suggest("TRANSPORT", "colour_of_the_server"), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
