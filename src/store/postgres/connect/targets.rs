//! The hosts of a connection string, and how each is tried.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use postgres_openssl::MakeTlsConnector;
use tokio::task::JoinHandle;
use tokio_postgres::config::{ChannelBinding, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error};

use super::parameters::{Parameters, StringError};
use super::passfile;
use super::tls::Mode;

/// Where PostgreSQL listens when nobody says otherwise: Debian's directory, and that of its authors.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// PostgreSQL's port.
const PORT: u16 = 5432;

/// How often an idle connection is checked, so that one whose database's machine is gone is noticed. Linux would do it after
/// two hours.
const KEEPALIVE_IDLE: std::time::Duration = std::time::Duration::from_secs(60);

/// One host.
pub(super) struct Target {
    /// With and without TLS, in the order to be tried.
    attempts: Vec<Config>,
    host: String,
    port: u16,
}

impl Target {
    /// Connects. The second way is tried where the host did not speak TLS, or does not let us in this way.
    pub async fn open(&self, tls: &MakeTlsConnector) -> Result<(Client, JoinHandle<()>), Error> {
        let mut last = None;
        for config in &self.attempts {
            match open(config, tls).await {
                Err(error) if may_be_tls(&error) => last = Some(error),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(Error::__private_api_timeout))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.starts_with('/') {
            true => write!(f, "{}/.s.PGSQL.{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

async fn open(config: &Config, tls: &MakeTlsConnector) -> Result<(Client, JoinHandle<()>), Error> {
    let (client, connection) = config.connect(tls.clone()).await?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to the database ended: {error}");
        }
    });
    Ok((client, task))
}

/// Whether another way to speak (with or without TLS) may succeed.
fn may_be_tls(error: &Error) -> bool {
    // The driver tells kinds of errors by their text only.
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) || error.to_string().contains("TLS")
}

/// Whether a server answered, and does not want us. One that is just starting or stopping is as good as none.
pub(super) fn is_refusal(error: &Error) -> bool {
    let reached = !error.source_is::<io::Error>() && !error.is_closed();
    reached && error.code() != Some(&SqlState::CANNOT_CONNECT_NOW)
}

trait SourceIs {
    fn source_is<T: std::error::Error + 'static>(&self) -> bool;
}

impl SourceIs for Error {
    fn source_is<T: std::error::Error + 'static>(&self) -> bool {
        std::error::Error::source(self).is_some_and(|source| source.is::<T>())
    }
}

/// All hosts of the parameters.
pub(super) fn read(
    parameters: &Parameters,
    mode: Mode,
    user: &str,
    database: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Target>, StringError> {
    let base = base(parameters, user, database)?;
    let hosts = hosts(parameters)?;
    let targets = hosts.into_iter().map(|(host, address, port)| {
        let mut config = base.clone();
        config.port(port);
        if let Some(address) = address {
            config.hostaddr(address);
        }
        match host.starts_with('/') {
            true => config.host_path(Path::new(&host)),
            false => config.host(&host),
        };
        let place = passfile::Place { host: passfile_host(&host), port, database, user };
        match parameters.get("password") {
            Some(password) => config.password(password),
            None => match passfile::find(parameters, variable, &place) {
                Some(password) => config.password(password.as_bytes()),
                None => &mut config,
            },
        };
        let modes = if host.starts_with('/') { &[SslMode::Disable] } else { mode.attempts() };
        let attempts = modes.iter().map(|mode| config.clone().ssl_mode(*mode).clone()).collect();
        Target { attempts, host, port }
    });
    Ok(targets.collect())
}

fn passfile_host(host: &str) -> &str {
    if host == SOCKETS[0] { "localhost" } else { host }
}

/// What is the same for all hosts.
fn base(parameters: &Parameters, user: &str, database: &str) -> Result<Config, StringError> {
    let mut config = Config::new();
    config.user(user).dbname(database);
    config.application_name(parameters.get("application_name").unwrap_or("smp-server"));
    config.connect_timeout(parameters.connect_timeout()?);
    config.target_session_attrs(session(parameters)?).channel_binding(binding(parameters)?);
    if let Some(options) = parameters.get("options") {
        config.options(options);
    }
    config.keepalives(parameters.number("keepalives")?.is_none_or(|number| number != 0));
    config.keepalives_idle(parameters.seconds("keepalives_idle")?.unwrap_or(KEEPALIVE_IDLE));
    if let Some(interval) = parameters.seconds("keepalives_interval")? {
        config.keepalives_interval(interval);
    }
    if let Some(count) = parameters.number("keepalives_count")?.and_then(|count| u32::try_from(count).ok()) {
        config.keepalives_retries(count);
    }
    // In milliseconds, unlike the others.
    if let Some(timeout) = parameters.number("tcp_user_timeout")?.and_then(|timeout| u64::try_from(timeout).ok()) {
        config.tcp_user_timeout(std::time::Duration::from_millis(timeout));
    }
    Ok(config)
}

fn session(parameters: &Parameters) -> Result<TargetSessionAttrs, StringError> {
    match parameters.get("target_session_attrs") {
        None | Some("any") => Ok(TargetSessionAttrs::Any),
        Some("read-write" | "primary") => Ok(TargetSessionAttrs::ReadWrite),
        Some(_) => Err(StringError::Value {
            name: "target_session_attrs",
            allowed: "any, read-write or primary: this server writes to its database",
        }),
    }
}

fn binding(parameters: &Parameters) -> Result<ChannelBinding, StringError> {
    match parameters.get("channel_binding") {
        Some("disable") => Ok(ChannelBinding::Disable),
        None | Some("prefer") => Ok(ChannelBinding::Prefer),
        Some("require") => Ok(ChannelBinding::Require),
        Some(_) => Err(StringError::Value { name: "channel_binding", allowed: "disable, prefer or require" }),
    }
}

/// Hosts with their address, if it is given, and port.
fn hosts(parameters: &Parameters) -> Result<Vec<(String, Option<IpAddr>, u16)>, StringError> {
    let list = |name| parameters.get(name).map(|value| value.split(',').map(str::trim).collect::<Vec<_>>());
    let addresses = list("hostaddr").unwrap_or_default();
    let hosts = match list("host") {
        Some(hosts) => hosts,
        None if addresses.is_empty() => SOCKETS.to_vec(),
        None => addresses.clone(),
    };
    let ports = list("port").unwrap_or_else(|| vec![""]);
    if !(addresses.is_empty() || addresses.len() == hosts.len()) {
        return Err(StringError::Value { name: "hostaddr", allowed: "as many addresses as there are hosts" });
    }
    if !(ports.len() == 1 || ports.len() == hosts.len()) {
        return Err(StringError::Value { name: "port", allowed: "one number, or as many as there are hosts" });
    }
    let one = |(number, host): (usize, &&str)| {
        let host = if host.is_empty() { SOCKETS[0] } else { host };
        let address = addresses.get(number).map(|address| self::address(address)).transpose()?.flatten();
        Ok((host.to_owned(), address, port(ports.get(number).unwrap_or(&ports[0]))?))
    };
    hosts.iter().enumerate().map(one).collect()
}

fn address(text: &str) -> Result<Option<IpAddr>, StringError> {
    let address =
        |text: &str| text.parse().map_err(|_| StringError::Value { name: "hostaddr", allowed: "an IP address" });
    (!text.is_empty()).then(|| address(text)).transpose()
}

fn port(text: &str) -> Result<u16, StringError> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    let wrong = StringError::Value { name: "port", allowed: "a number from 1 to 65535" };
    if text.is_empty() { Ok(PORT) } else { port(text).ok_or(wrong) }
}
