//! Typed settings, read once: defaults below the INI file below the environment (`SMP_SERVER__SECTION__KEY`).
//!
//! An INI file of the Haskell server is read unchanged: keys that have no effect yet are accepted and named once
//! ([`Note`]). All mistakes are reported together, each with its place, value and what is allowed ([`SettingsError`]).
//! Nothing here ever shows a password, and nothing but [`load`] touches the file system. A [`Password`] is wiped when it is
//! dropped; the text of the file, which passes through the `config` crate, is only dropped.

mod clients;
mod database;
pub mod environment;
mod ini;
pub mod keys;
mod layers;
mod notifications;
mod password;
mod paths;
mod problem;
mod reader;
mod store;
#[cfg(test)]
mod tests;
mod transport;

use std::path::Path;

pub use clients::{Auth, InactiveClients, Information, Subscriptions};
pub use database::Database;
pub use environment::Environment;
pub use notifications::Notifications;
pub use password::{ALLOWED_PASSWORD, Password};
pub use paths::Paths;
pub use problem::{Note, Problem, SettingsError};
pub use store::{MessageExpiration, Store, StoreLocation, Sync};
pub use transport::Transport;

use ini::IniFile;
use layers::Layers;
use reader::Reader;

/// Everything that the server wants to be told, validated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `[TRANSPORT]`.
    pub transport: Transport,
    /// `[STORE_LOG]`.
    pub store: Store,
    /// `[AUTH]`.
    pub auth: Auth,
    /// `[INACTIVE_CLIENTS]`; `None`: clients may be inactive for as long as they like.
    pub inactive_clients: Option<InactiveClients>,
    /// `[SUBSCRIPTIONS]`.
    pub subscriptions: Subscriptions,
    /// `[NOTIFICATIONS]`.
    pub notifications: Notifications,
    /// `[INFORMATION]`.
    pub information: Information,
}

/// Settings, and what the operator should be told about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// For the log, once.
    pub notes: Vec<Note>,
}

/// Reads the INI file of the installation, overridden by `environment`.
///
/// # Errors
/// All mistakes of the file and the environment, or that the file cannot be read.
pub fn load(paths: &Paths, environment: &Environment) -> Result<Loaded, SettingsError> {
    let path = paths.ini();
    parse(&path, &read(&path)?, paths, environment)
}

/// Reads only the keys of the database, whichever store is used: for what moves queues into it or out of it.
///
/// # Errors
/// As [`load`], for these keys.
pub fn load_database(paths: &Paths, environment: &Environment) -> Result<Database, SettingsError> {
    let path = paths.ini();
    let ini = IniFile::parse(&path, &read(&path)?);
    let layers = Layers::new(&ini, environment).map_err(|problem| SettingsError::new(vec![problem], Vec::new()))?;
    let mut reader = Reader::new(&layers, ini.problems().to_vec());
    match (Database::read(&mut reader, false), reader.into_problems()) {
        (Some(database), problems) if problems.is_empty() => Ok(database),
        (_, problems) => Err(SettingsError::new(problems, Vec::new())),
    }
}

/// The text of the INI file.
fn read(path: &Path) -> Result<String, SettingsError> {
    let unreadable = |text: String| {
        let place = path.display().to_string();
        SettingsError::new(vec![Problem { place, text }], Vec::new())
    };
    let bytes = std::fs::read(path).map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        unreadable(format!("line {line} is not UTF-8"))
    })
}

/// Reads settings from the text of an INI file, overridden by `environment`; `path` is only for messages.
///
/// # Errors
/// All mistakes of both.
pub fn parse(path: &Path, text: &str, paths: &Paths, environment: &Environment) -> Result<Loaded, SettingsError> {
    let ini = IniFile::parse(path, text);
    let layers = Layers::new(&ini, environment).map_err(|problem| SettingsError::new(vec![problem], Vec::new()))?;
    let mut notes = layers::unknown_keys(&ini, environment);
    let waiting = layers.not_implemented();
    if !waiting.is_empty() {
        notes.push(Note::NotImplemented(waiting));
    }
    let mut reader = Reader::new(&layers, ini.problems().to_vec());
    let settings = Settings {
        transport: Transport::read(&mut reader),
        store: Store::read(&mut reader, paths, &mut notes),
        auth: Auth::read(&mut reader),
        inactive_clients: InactiveClients::read(&mut reader),
        subscriptions: Subscriptions::read(&mut reader),
        notifications: Notifications::read(&mut reader),
        information: Information::read(&mut reader),
    };
    match reader.into_problems() {
        problems if problems.is_empty() => Ok(Loaded { settings, notes }),
        problems => Err(SettingsError::new(problems, notes)),
    }
}
