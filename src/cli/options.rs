//! The command line as types: commands and options of the Haskell server, so that scripts keep working.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::certificates::SignAlgorithm;
use crate::protocol::VersionRange;
use crate::protocol::address::ServerAddressWithPassword;
use crate::settings::{ALLOWED_PASSWORD, Password};
use crate::store::postgres::connect::{ConnectionString, SchemaName};

/// Where the source code of this kind of server is, unless the operator says otherwise.
pub const DEFAULT_SOURCE_CODE: &str = "https://github.com/simplex-chat/simplexmq";

/// A relay of the SimpleX Messaging Protocol.
#[derive(Parser, Debug)]
#[command(name = "smp-server", version, disable_version_flag = true, arg_required_else_help = true)]
#[command(after_help = "Directories: SMP_SERVER_CFG_PATH (default /etc/opt/simplex) for settings and certificates, \
                        SMP_SERVER_LOG_PATH (default /var/opt/simplex) for the store.\n\
                        SMP_SERVER__SECTION__KEY overrides `key` in [SECTION] of smp-server.ini.")]
pub struct CommandLine {
    /// Show version
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Initialize server: create directories, certificates and smp-server.ini
    Init(Box<InitOptions>),
    /// Start server
    Start(StartOptions),
    /// Generate new TLS server credentials, keeping the identity
    Cert(CertOptions),
    /// Move queues and messages between files, the embedded store and PostgreSQL
    Database(Box<super::database::DatabaseArguments>),
    /// Move messages of the Haskell server between its messages log and its journal directory
    Journal(JournalArguments),
    /// Delete configuration and log files
    Delete,
    /// Check any SMP server: run the whole life of a queue against it
    Check(CheckArguments),
}

/// Arguments of `journal`.
#[derive(Args, Debug, Clone, Copy)]
pub struct JournalArguments {
    /// What to do with the journal.
    #[command(subcommand)]
    pub action: JournalAction,
    /// Leave out damaged lines and messages of queues that do not exist
    #[arg(long, global = true)]
    pub skip_warnings: bool,
}

/// What to do with the journal.
#[derive(Subcommand, Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalAction {
    /// Import the messages log to a new journal directory
    Import,
    /// Export the journal directory to a new messages log
    Export,
    /// Delete the journal directory
    Delete,
}

/// The form of a server's address, for messages.
macro_rules! address_form {
    () => {
        "smp://fingerprint[:password]@host[,host][:port]"
    };
}

/// Arguments of `check`.
#[derive(Args, Debug, Clone)]
pub struct CheckArguments {
    /// The server, with its password for new queues if it has one.
    #[arg(
        value_name = "ADDRESS",
        value_parser = Secret(parse_address),
        help = concat!("The server: ", address_form!())
    )]
    pub address: ServerAddressWithPassword,
    /// The newest protocol version to speak
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(versions()))]
    pub max_version: Option<u16>,
    /// Seconds that a step may take; some servers tell of the end of a subscription only after 15
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u16).range(1..))]
    pub timeout: u16,
}

fn parse_address(text: &str) -> Result<ServerAddressWithPassword, String> {
    text.parse().map_err(|_| concat!("expected ", address_form!()).to_owned())
}

/// The versions that can be asked for.
fn versions() -> RangeInclusive<i64> {
    let supported = VersionRange::SUPPORTED;
    supported.min().0.into()..=supported.max().0.into()
}

/// Options of `init`.
#[derive(Args, Debug, Clone)]
pub struct InitOptions {
    /// Keep nothing on disk: queues and messages are lost on restart
    #[arg(long, conflicts_with = "store_log")]
    pub disable_store_log: bool,
    /// Keep queues and messages on disk (the default)
    #[arg(short = 'l', long)]
    pub store_log: bool,
    /// Enable logging daily server statistics
    #[arg(short = 's', long)]
    pub daily_stats: bool,
    /// Signature algorithm of the TLS certificates
    #[arg(short = 'a', long, value_name = "ALG", default_value = "ED25519", ignore_case = true)]
    pub sign_algorithm: SignAlgorithm,
    /// Server IP address, the common name of the TLS certificate if there is no FQDN
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub ip: String,
    /// Server FQDN, the common name of the TLS certificate
    #[arg(short = 'n', long, value_name = "FQDN")]
    pub fqdn: Option<String>,
    /// Allow creating new queues without password
    #[arg(long, conflicts_with = "password")]
    pub no_password: bool,
    /// Password to create new queues (default: a random one)
    #[arg(long, value_name = "PASSWORD", value_parser = Secret(parse_password))]
    pub password: Option<Password>,
    /// Enable control port, on 5224 if none is given
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5224")]
    pub control_port: Option<u16>,
    /// Outgoing SOCKS proxy to forward messages to onion-only servers, localhost:9050 if none is given
    #[arg(long, value_name = "PROXY", num_args = 0..=1, default_missing_value = "localhost:9050")]
    pub socks_proxy: Option<String>,
    /// Own server domain names (comma-separated)
    #[arg(long, value_name = "DOMAINS", value_delimiter = ',')]
    pub own_domains: Vec<String>,
    /// Where the source code of this server is
    #[arg(long, value_name = "URI", num_args = 0..=1, default_missing_value = DEFAULT_SOURCE_CODE, value_parser = parse_uri)]
    pub source_code: Option<String>,
    /// What is told about the operator and the hosting.
    #[command(flatten)]
    pub information: InformationOptions,
    /// Directory to store the generated static site with server information
    #[arg(long, value_name = "PATH")]
    pub web_path: Option<PathBuf>,
    /// Disable the static web server with server information
    #[arg(long)]
    pub disable_web: bool,
    /// Options of the PostgreSQL store.
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// Ask nothing, use the options of the command line
    #[arg(short = 'y', long)]
    pub yes: bool,
}

/// What `init` is told about the operator and the hosting.
#[derive(Args, Debug, Clone, Default)]
pub struct InformationOptions {
    /// Server operator
    #[arg(long, value_name = "OPERATOR_NAME")]
    pub operator: Option<String>,
    /// Country of the operator (ISO 3166, two letters)
    #[arg(long, value_name = "OPERATOR_COUNTRY", value_parser = parse_country)]
    pub operator_country: Option<String>,
    /// Operator public website
    #[arg(long, value_name = "WEBSITE")]
    pub operator_website: Option<String>,
    /// Hosting provider
    #[arg(long, value_name = "HOSTING_NAME")]
    pub hosting: Option<String>,
    /// Country of the hosting provider (ISO 3166, two letters)
    #[arg(long, value_name = "HOSTING_COUNTRY", value_parser = parse_country)]
    pub hosting_country: Option<String>,
    /// Kind of hosting
    #[arg(long, value_name = "HOSTING_TYPE")]
    pub hosting_type: Option<HostingType>,
    /// Country of the server (ISO 3166, two letters)
    #[arg(long, value_name = "SERVER_COUNTRY", value_parser = parse_country)]
    pub server_country: Option<String>,
}

impl InformationOptions {
    /// Whether anything is told that makes the source code obligatory.
    pub fn any(&self) -> bool {
        let texts = [&self.operator, &self.operator_website, &self.hosting, &self.server_country];
        texts.iter().any(|text| text.is_some()) || self.hosting_type.is_some()
    }
}

/// Kind of hosting.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostingType {
    /// A virtual machine.
    Virtual,
    /// A rented machine.
    Dedicated,
    /// An own machine in a data centre.
    Colocation,
    /// An own machine in an own place.
    Owned,
}

impl HostingType {
    /// As the INI file has it.
    pub fn as_str(self) -> &'static str {
        match self {
            HostingType::Virtual => "virtual",
            HostingType::Dedicated => "dedicated",
            HostingType::Colocation => "colocation",
            HostingType::Owned => "owned",
        }
    }
}

/// PostgreSQL, as `init` writes it into the INI file.
#[derive(Args, Debug, Clone, Default)]
pub struct DatabaseOptions {
    /// Database connection string for smp-server.ini (default: postgresql://smp@/smp_server_store)
    #[arg(short = 'd', long = "database", value_name = "DB_CONN", value_parser = Secret(parse_connection))]
    pub connection: Option<ConnectionString>,
    /// Database schema (default: smp_server)
    #[arg(long, value_name = "DB_SCHEMA")]
    pub schema: Option<SchemaName>,
    /// Database pool size (default: 10)
    #[arg(long, value_name = "POOL_SIZE", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pool_size: Option<u16>,
}

/// Options of `start`.
#[derive(Args, Debug, Clone, Default)]
pub struct StartOptions {
    /// Only check settings, certificates and directories, then exit
    #[arg(long)]
    pub check_config: bool,
    /// Do not serve, only do what is done on start and stop
    #[arg(short = 'm', long)]
    pub maintenance: bool,
    /// Compact the store log (accepted for compatibility: this server has none)
    #[arg(long)]
    pub compact_log: bool,
    /// Logging level; RUST_LOG, if set, overrides it
    #[arg(long, value_name = "LOG_LEVEL", default_value = "info")]
    pub log_level: LogLevel,
    /// Start in spite of what would otherwise need a decision
    #[arg(long)]
    pub skip_warnings: bool,
    /// Confirm migrations of a PostgreSQL schema beforehand (default: ask)
    #[arg(long, value_name = "CONFIRM_MIGRATIONS")]
    pub confirm_migrations: Option<Migrations>,
}

/// How much is logged.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What helps to find a mistake.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// As `info`; a level of the Haskell server.
    Note,
    /// What the operator should look at.
    Warn,
    /// What does not work.
    Error,
}

/// Which migrations are confirmed beforehand.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migrations {
    /// To newer schemas.
    Up,
    /// To older ones too.
    Down,
}

/// Options of `cert`.
#[derive(Args, Debug, Clone, Default)]
pub struct CertOptions {
    /// New signature algorithm of the TLS certificate (default: the old one)
    #[arg(short = 'a', long, value_name = "ALG", ignore_case = true)]
    pub sign_algorithm: Option<SignAlgorithm>,
    /// New common name of the TLS certificate (default: the old one)
    #[arg(long = "cn", value_name = "FQDN")]
    pub common_name: Option<String>,
}

/// Parses a value that has a secret in it. clap's own parsers show what they refuse; this one does not.
#[derive(Clone)]
pub(super) struct Secret<T>(pub fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Secret<T> {
    type Value = T;

    fn parse_ref(&self, command: &clap::Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let parsed = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned()).and_then(self.0);
        parsed.map_err(|reason| {
            let name = argument.map(Arg::to_string).unwrap_or_default();
            let text = format!("invalid value for '{name}': {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

fn parse_password(text: &str) -> Result<Password, String> {
    Password::new(text).ok_or_else(|| format!("allowed: {ALLOWED_PASSWORD}"))
}

/// A connection string that libpq would take. The refusal shows no value of it.
pub(super) fn parse_connection(text: &str) -> Result<ConnectionString, String> {
    let connection = ConnectionString::from(text);
    connection.check().map(|()| connection).map_err(|error| error.to_string())
}

fn parse_country(text: &str) -> Result<String, String> {
    let valid = text.len() == 2 && text.bytes().all(|c| c.is_ascii_alphabetic());
    valid.then(|| text.to_uppercase()).ok_or_else(|| "use the two-letter code of ISO 3166".to_owned())
}

/// A URI of source code, as `init` accepts it.
pub fn parse_uri(text: &str) -> Result<String, String> {
    let valid = ["https://", "http://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    valid.then(|| text.to_owned()).ok_or_else(|| "the URI must start with https:// or http://".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn init(arguments: &[&str]) -> Result<InitOptions, clap::Error> {
        let line = ["smp-server", "init"].iter().chain(arguments);
        match CommandLine::try_parse_from(line)?.command {
            Command::Init(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn options_with_an_optional_value_have_their_default() {
        let options = init(&["-y", "--control-port", "--socks-proxy", "--source-code"]).unwrap();
        assert_eq!(options.control_port, Some(5224));
        assert_eq!(options.socks_proxy.as_deref(), Some("localhost:9050"));
        assert_eq!(options.source_code.as_deref(), Some(DEFAULT_SOURCE_CODE));
        let options = init(&["--control-port=1", "--own-domains", "a.b,c.d", "-a", "ed448"]).unwrap();
        assert_eq!((options.control_port, options.sign_algorithm), (Some(1), SignAlgorithm::Ed448));
        assert_eq!(options.own_domains, ["a.b", "c.d"]);
    }

    #[test]
    fn wrong_values_are_refused() {
        for arguments in [
            &["--password", "a b"][..],
            &["--password", "a", "--no-password"],
            &["--server-country", "GER"],
            &["--sign-algorithm", "RSA"],
            &["--source-code", "ftp://x"],
            &["--hosting-type", "cloud"],
            &["--control-port", "70000"],
            &["--database", "nonsense"],
            &["--schema", "Smp"],
            &["--pool-size", "0"],
        ] {
            assert!(init(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn a_refused_value_with_a_secret_is_not_shown() {
        for (line, argument) in [
            ("init --password se:cret", "--password <PASSWORD>"),
            ("init --database postgresql://a:se@cret@h/d", "--database <DB_CONN>"),
            ("init -d postgresql://a:b@h/d?se=cret", "--database <DB_CONN>"),
            ("database import -d host=h,password=se,cret", "--database <DB_CONN>"),
            ("database export --database host='se=cret", "--database <DB_CONN>"),
            ("check smp://se:cret@", "<ADDRESS>"),
        ] {
            let words = std::iter::once("smp-server").chain(line.split(' '));
            let refusal = CommandLine::try_parse_from(words.map(|word| word.replace(',', " "))).unwrap_err();
            let shown = refusal.to_string();
            assert_eq!(refusal.kind(), ErrorKind::ValueValidation, "{line}");
            assert!(shown.contains(&format!("invalid value for '{argument}': ")), "{shown}");
            assert!(!shown.contains("se") || !shown.contains("cret"), "{shown}");
        }
    }

    #[test]
    fn start_accepts_the_flags_of_the_haskell_server() {
        let line = "smp-server start -m --compact-log --log-level note --skip-warnings --confirm-migrations up";
        let Command::Start(options) = CommandLine::try_parse_from(line.split(' ')).unwrap().command else { panic!() };
        assert!(options.maintenance && options.skip_warnings && !options.check_config);
        assert_eq!(options.log_level, LogLevel::Note);
    }
}
