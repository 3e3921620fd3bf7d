//! Why there is no connection, in words for the operator.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why the database cannot be used. Each text names the place (without the password) and says what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// Nothing answers there.
    #[error("PostgreSQL cannot be reached: {place}: {reason}. Check that it runs, and db_connection in the INI file")]
    Unreachable {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// It did not answer in time.
    #[error("PostgreSQL did not answer within {} s: {place}. Check that it runs, and db_connection in the INI file",
        limit.as_secs())]
    Timeout {
        /// Where.
        place: String,
        /// The time.
        limit: Duration,
    },
    /// It is starting or stopping.
    #[error("PostgreSQL is not ready: {place}: {reason}. Try again when it has started")]
    NotReady {
        /// Where.
        place: String,
        /// What it says.
        reason: String,
    },
    /// The database does not exist.
    #[error(
        "there is no database \"{database}\": {place}. Create it:\n  \
        sudo -u postgres createdb --owner={user} {database}\n  \
        sudo -u postgres psql -d {database} -c 'CREATE EXTENSION IF NOT EXISTS pgcrypto;'"
    )]
    NoDatabase {
        /// Where.
        place: String,
        /// The database.
        database: String,
        /// Who is to own it.
        user: String,
    },
    /// It does not let us in: no such role, a wrong or no password, `pg_hba.conf`.
    #[error(
        "PostgreSQL does not let us in: {place}: {reason}. Check user and password in db_connection (or PGPASSWORD, or \
        ~/.pgpass) and pg_hba.conf; a role that does not exist is created by: sudo -u postgres createuser {user}"
    )]
    Refused {
        /// Where.
        place: String,
        /// What it says.
        reason: String,
        /// The role.
        user: String,
    },
    /// It has no connections left.
    #[error("PostgreSQL has no connections left: {place}: {reason}. Raise its max_connections, or lower db_pool_size")]
    TooMany {
        /// Where.
        place: String,
        /// What it says.
        reason: String,
    },
    /// TLS failed.
    #[error("no TLS with PostgreSQL: {place}: {reason}. Check sslmode and sslrootcert in db_connection")]
    Tls {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// Anything else.
    #[error("PostgreSQL cannot be used: {place}: {reason}")]
    Other {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
}

impl ConnectError {
    pub(super) fn explain(error: &Error, place: &str, user: &str, database: &str) -> ConnectError {
        let (place, user, database) = (place.to_owned(), user.to_owned(), database.to_owned());
        let reason = reason(error);
        let Some(code) = error.code() else {
            let text = error.to_string();
            return match text {
                _ if text.contains("TLS") => {
                    // What was wrong with the certificate is not in the innermost reason.
                    let reason = error.source().map_or(reason, ToString::to_string);
                    ConnectError::Tls { place, reason }
                }
                // What the driver wants and lacks is a password; what it cannot do is a way to authenticate.
                _ if text.contains("configuration") || text.contains("authentication") => {
                    ConnectError::Refused { place, reason, user }
                }
                _ if error.source().is_some_and(|source| source.is::<io::Error>()) || error.is_closed() => {
                    ConnectError::Unreachable { place, reason }
                }
                _ => ConnectError::Other { place, reason },
            };
        };
        match *code {
            SqlState::INVALID_CATALOG_NAME => ConnectError::NoDatabase { place, database, user },
            SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                ConnectError::Refused { place, reason, user }
            }
            SqlState::INSUFFICIENT_PRIVILEGE => ConnectError::Refused { place, reason, user },
            SqlState::TOO_MANY_CONNECTIONS => ConnectError::TooMany { place, reason },
            SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => {
                ConnectError::NotReady { place, reason }
            }
            _ => ConnectError::Other { place, reason },
        }
    }
}

/// What the database says, or else the innermost of the driver's reasons, which says most.
pub(in crate::store::postgres) fn reason(error: &Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return answer.message().to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
