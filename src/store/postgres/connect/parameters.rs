//! The parameters of a connection string: both of libpq's forms, and its defaults from the environment.

use std::collections::HashMap;
use std::time::Duration;

use zeroize::Zeroizing;

/// Why a connection string cannot be used. Texts have names of parameters, never values of them.
#[derive(Debug, thiserror::Error)]
pub enum StringError {
    /// No parameter of libpq has this name.
    #[error("the connection string has an unknown parameter \"{0}\"")]
    Unknown(String),
    /// The same where it may be the rest of a password.
    #[error(
        "the connection string has an unknown parameter after the password (not shown: it may be a part of it; a password \
         with spaces needs single quotes, one in a URI needs & as %26)"
    )]
    UnknownAfterPassword,
    /// libpq has it, this server does not.
    #[error("the parameter \"{0}\" of the connection string is not supported: remove it")]
    NotSupported(&'static str),
    /// The value is not one of those that the parameter may have.
    #[error("the parameter \"{name}\" of the connection string has to be {allowed}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// The string cannot be read.
    #[error("the connection string cannot be read: {0}")]
    Syntax(&'static str),
    /// A certificate or key that it names cannot be used.
    #[error("{path}: {reason}")]
    Certificate {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Parameters that have an effect here, and the environment variables that give their defaults.
const KNOWN: &[(&str, &str)] = &[
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("application_name", "PGAPPNAME"),
    ("options", "PGOPTIONS"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("keepalives", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
    ("keepalives_count", ""),
    ("tcp_user_timeout", ""),
];

/// Parameters of libpq that cannot be granted. (`client_encoding` can: it is always UTF-8.)
const NOT_SUPPORTED: &[&str] = &[
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "load_balance_hosts",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "service",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslnegotiation",
    "sslpassword",
    "sslsni",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
];

/// How long one host may take: libpq would wait for ever, and so would a server at its start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the string and the environment say.
#[derive(Default)]
pub(super) struct Parameters {
    values: HashMap<&'static str, Zeroizing<String>>,
}

impl Parameters {
    /// Reads a URI (`postgresql://..`) or `key=value` pairs.
    pub fn parse(text: &str) -> Result<Parameters, StringError> {
        let mut parameters = Parameters::default();
        match text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://")) {
            Some(rest) => parameters.read_uri(rest)?,
            None => parameters.read_pairs(text)?,
        }
        Ok(parameters)
    }

    /// Adds what the environment has and the string lacks.
    pub fn fill_in(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        for (name, default) in KNOWN.iter().filter(|(_, default)| !default.is_empty()) {
            if self.get(name).is_none()
                && let Some(value) = variable(default)
            {
                self.values.insert(name, Zeroizing::new(value));
            }
        }
    }

    /// The value; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value as a number.
    pub fn number(&self, name: &'static str) -> Result<Option<i32>, StringError> {
        let number = |value: &str| value.trim().parse().map_err(|_| StringError::Value { name, allowed: "a number" });
        self.get(name).map(number).transpose()
    }

    /// The value as a number of seconds above 0, anything else being none.
    pub fn seconds(&self, name: &'static str) -> Result<Option<Duration>, StringError> {
        let number = self.number(name)?.and_then(|seconds| u64::try_from(seconds).ok());
        Ok(number.filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    /// How long to wait for one host.
    pub fn connect_timeout(&self) -> Result<Duration, StringError> {
        Ok(self.seconds("connect_timeout")?.unwrap_or(CONNECT_TIMEOUT))
    }

    /// The role; the system's user if there is none.
    pub fn user(&self) -> Result<String, StringError> {
        let user = self.get("user").map(str::to_owned).or_else(system_user);
        user.ok_or(StringError::Syntax("it names no user: add one, as in postgresql://smp@/smp_server_store"))
    }

    fn set(&mut self, name: &str, value: Zeroizing<String>) -> Result<(), StringError> {
        if let Some((known, _)) = KNOWN.iter().find(|(known, _)| *known == name) {
            self.values.insert(known, value);
            return Ok(());
        }
        match (name, value.to_ascii_lowercase().as_str()) {
            ("fallback_application_name", _) | ("client_encoding", "utf8" | "utf-8" | "auto") => Ok(()),
            ("client_encoding", _) => Err(StringError::Value { name: "client_encoding", allowed: "UTF8" }),
            _ => Err(match NOT_SUPPORTED.iter().find(|known| **known == name) {
                Some(known) => StringError::NotSupported(known),
                None if self.get("password").is_some() => StringError::UnknownAfterPassword,
                None => StringError::Unknown(name.to_owned()),
            }),
        }
    }

    fn read_pairs(&mut self, text: &str) -> Result<(), StringError> {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let no_equals = StringError::Syntax("a parameter has no = (a value with spaces needs single quotes)");
            let (name, value) = rest.split_once('=').ok_or(no_equals)?;
            if name.trim().contains(char::is_whitespace) {
                return Err(StringError::Syntax("a parameter has no = (a value with spaces needs single quotes)"));
            }
            let (value, after) = take_value(value.trim_start())?;
            self.set(name.trim(), value)?;
            rest = after.trim_start();
        }
        Ok(())
    }

    /// `[user[:password]@][host[:port][,..]][/dbname][?name=value[&..]]`, after the scheme.
    fn read_uri(&mut self, text: &str) -> Result<(), StringError> {
        let rest = match text.split_once('@').filter(|(user, _)| !user.contains('/')) {
            Some((user, rest)) => {
                self.read_user(user)?;
                rest
            }
            None => text,
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Otherwise a part of a password would be taken for a host or database, and shown as such.
        if rest.contains('@') {
            return Err(StringError::Syntax("write @ as %40 and / as %2F in user, password and database"));
        }
        let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
        self.read_hosts(hosts)?;
        self.set("dbname", decode(database)?)?;
        query.split('&').try_for_each(|pair| self.read_query(pair))
    }

    fn read_user(&mut self, text: &str) -> Result<(), StringError> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        self.set("user", decode(user)?)?;
        self.set("password", decode(password)?)
    }

    fn read_hosts(&mut self, text: &str) -> Result<(), StringError> {
        let hosts = text.split(',').map(split_port).collect::<Result<Vec<_>, _>>()?;
        let join = |parts: Vec<&str>| match parts.iter().all(|part| part.is_empty()) {
            true => Ok(Zeroizing::default()),
            false => decode(&parts.join(",")),
        };
        self.set("host", join(hosts.iter().map(|(host, _)| *host).collect())?)?;
        self.set("port", join(hosts.iter().map(|(_, port)| *port).collect())?)
    }

    fn read_query(&mut self, pair: &str) -> Result<(), StringError> {
        if pair.is_empty() {
            return Ok(());
        }
        let (name, value) = pair.split_once('=').ok_or(StringError::Syntax("a parameter after ? has no ="))?;
        let (name, value) = (decode(name)?, decode(value)?);
        // As drivers of Java write it.
        match name.as_str() == "ssl" && value.as_str() == "true" {
            true => self.set("sslmode", Zeroizing::new("require".to_owned())),
            false => self.set(&name, value),
        }
    }
}

/// A host and its port, which may be empty. IPv6 addresses stand in brackets.
fn split_port(text: &str) -> Result<(&str, &str), StringError> {
    let Some(address) = text.strip_prefix('[') else {
        return Ok(text.split_once(':').unwrap_or((text, "")));
    };
    let (address, port) = address.split_once(']').ok_or(StringError::Syntax("an IPv6 address has no ]"))?;
    match port.strip_prefix(':') {
        Some(port) => Ok((address, port)),
        None if port.is_empty() => Ok((address, "")),
        None => Err(StringError::Syntax("something stands between ] and : of a host")),
    }
}

/// The value at the start of the text, quoted or not, and what follows it.
fn take_value(text: &str) -> Result<(Zeroizing<String>, &str), StringError> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |rest| (true, rest));
    let mut value = Zeroizing::new(String::with_capacity(text.len()));
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, characters.as_str())),
            blank if !quoted && blank.is_whitespace() => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    if quoted { Err(StringError::Syntax("a quoted value has no end")) } else { Ok((value, "")) }
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<Zeroizing<String>, StringError> {
    const BAD: StringError = StringError::Syntax("% has to be followed by two hexadecimal digits (write % as %25)");
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match byte {
            b'%' => {
                let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(BAD)?;
                // A sign is a digit for `from_str_radix` only.
                let byte = u8::from_str_radix(digits, 16).ok().filter(|byte| *byte != 0 && !digits.starts_with('+'));
                (byte.ok_or(BAD)?, &after[2..])
            }
            byte => (byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| StringError::Syntax("it is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// The name of the user that runs the process.
fn system_user() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let of_id = users.lines().find(|line| line.split(':').nth(2) == Some(id.as_str()));
    of_id?.split(':').next().map(str::to_owned)
}
