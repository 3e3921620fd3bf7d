//! How to reach the database: the connection string as libpq reads it, TLS, and connections that are all set up alike.
//!
//! A password never leaves this module but to the database: no text or `Debug` output has it.

mod error;
mod parameters;
mod passfile;
mod schema_name;
mod targets;
mod tls;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use postgres_openssl::MakeTlsConnector;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};
use zeroize::Zeroizing;

pub use error::ConnectError;
pub(in crate::store::postgres) use error::reason;
pub use parameters::StringError;
pub use schema_name::{InvalidSchemaName, SchemaName};

use parameters::Parameters;
use targets::Target;

/// A connection string, which may have a password in it: cleared from memory when dropped, absent from `Debug`.
#[derive(Clone)]
pub struct ConnectionString(Zeroizing<String>);

impl ConnectionString {
    /// Whether it can be read, without a look at the environment or at any file that it names.
    ///
    /// # Errors
    /// It is not one that libpq would take, or asks for what this server does not do.
    pub fn check(&self) -> Result<(), StringError> {
        let parameters = Parameters::parse(&self.0)?;
        tls::Mode::read(&parameters).map(drop)
    }

    /// The text with its password: only for the INI file, where the operator has put it or wants it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ConnectionString {
    fn from(text: &str) -> Self {
        ConnectionString(Zeroizing::new(text.to_owned()))
    }
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionString(..)")
    }
}

/// Which schema of which database.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// `db_connection`: a URI or `key=value` pairs, as libpq takes them. What it lacks comes from the environment
    /// (`PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, ..) and from the password file, as with libpq.
    pub connection: ConnectionString,
    /// `db_schema`.
    pub schema: SchemaName,
}

/// Makes connections to one schema of a database. Cheap to clone.
///
/// Each connection has its `search_path` at the schema and nothing else, and the server's notices off. Both are set by
/// statements right after connecting (a connection pooler between us and PostgreSQL would refuse them as options), so a
/// pool must not reset its connections (`RecyclingMethod::Clean`).
#[derive(Clone)]
pub struct Connector {
    inner: Arc<Inner>,
}

struct Inner {
    targets: Vec<Target>,
    tls: MakeTlsConnector,
    timeout: Duration,
    database: String,
    user: String,
    schema: SchemaName,
}

impl Connector {
    /// Reads the connection string. Nothing is connected yet.
    ///
    /// # Errors
    /// The string is not one that libpq would take, or asks for what this server does not do; a certificate file cannot be
    /// read.
    pub fn new(options: &DatabaseOptions) -> Result<Connector, StringError> {
        Connector::with_environment(options, &|name| std::env::var(name).ok())
    }

    /// The same, with these environment variables in the place of the process's own.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_environment(
        options: &DatabaseOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Connector, StringError> {
        let mut parameters = Parameters::parse(&options.connection.0)?;
        parameters.fill_in(variable);
        let mode = tls::Mode::read(&parameters)?;
        let user = parameters.user()?;
        let database = parameters.get("dbname").unwrap_or(&user).to_owned();
        let inner = Inner {
            targets: targets::read(&parameters, mode, &user, &database, variable)?,
            tls: tls::connector(mode, &parameters, variable)?,
            timeout: parameters.connect_timeout()?,
            database,
            user,
            schema: options.schema.clone(),
        };
        Ok(Connector { inner: Arc::new(inner) })
    }

    /// The schema.
    pub fn schema(&self) -> &SchemaName {
        &self.inner.schema
    }

    /// How long connecting may take, from the string's `connect_timeout` (10 s if it has none) for each host. For pools: it
    /// is [`deadpool_postgres::PoolBuilder::create_timeout`].
    pub fn timeout(&self) -> Duration {
        self.inner.timeout * self.inner.targets.len().try_into().unwrap_or(u32::MAX)
    }

    /// What a pool needs to make the same connections as [`Self::connect`].
    pub fn manager(&self) -> deadpool_postgres::Manager {
        let config = deadpool_postgres::ManagerConfig { recycling_method: deadpool_postgres::RecyclingMethod::Fast };
        // The connector has its own configurations, one a host; this one is only passed back to it.
        deadpool_postgres::Manager::from_connect(tokio_postgres::Config::new(), self.clone(), config)
    }

    /// Connects. The connection's task runs on the current runtime, and ends when the client is dropped.
    ///
    /// # Errors
    /// No host could be reached, or one refused us; the text says what to do.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        self.connect_with_task().await.map(|(client, _)| client)
    }

    /// Connects, and answers also the task, which ends when the connection does.
    pub(super) async fn connect_with_task(&self) -> Result<(Client, JoinHandle<()>), ConnectError> {
        match tokio::time::timeout(self.timeout(), self.open()).await {
            Ok(connected) => connected.map_err(|error| self.explain(&error)),
            Err(_) => Err(ConnectError::Timeout { place: self.to_string(), limit: self.timeout() }),
        }
    }

    /// What an error in connecting means, and what to do.
    pub fn explain(&self, error: &Error) -> ConnectError {
        ConnectError::explain(error, &self.to_string(), &self.inner.user, &self.inner.database)
    }

    /// Tries one host after the other. One that can be reached and refuses us is the last, as with libpq: to go on would
    /// hide why.
    async fn open(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let mut first = None;
        for target in &self.inner.targets {
            match target.open(&self.inner.tls).await {
                Ok(connected) => return self.set_up(connected).await,
                Err(error) if targets::is_refusal(&error) => return Err(error),
                Err(error) => first.get_or_insert(error),
            };
        }
        Err(first.unwrap_or_else(Error::__private_api_timeout))
    }

    async fn set_up(&self, (client, task): (Client, JoinHandle<()>)) -> Result<(Client, JoinHandle<()>), Error> {
        let schema = self.inner.schema.quoted();
        let settings = format!("SET search_path TO {schema}; SET client_min_messages TO warning");
        client.batch_execute(&settings).await?;
        Ok((client, task))
    }
}

impl deadpool_postgres::Connect for Connector {
    fn connect(&self, _: &tokio_postgres::Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        self.open().boxed()
    }
}

/// Where it connects to, without the password.
impl fmt::Display for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database \"{}\" (user \"{}\") at ", self.inner.database, self.inner.user)?;
        for (number, target) in self.inner.targets.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{target}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({self}, schema {})", self.inner.schema)
    }
}
