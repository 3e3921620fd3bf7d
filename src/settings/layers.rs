//! Defaults below the INI file below the environment, by the `config` crate.

use config::{Config, Environment as EnvironmentSource, Map, Value, ValueKind};

use super::ini::IniFile;
use super::keys::{self, Key, Support};
use super::problem::{Note, Problem};
use super::{Environment, environment::OVERRIDE_PREFIX};

/// What all sources together say.
pub struct Layers {
    values: Map<String, Value>,
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// As written, trimmed.
    pub value: &'a str,
    /// Where it comes from.
    pub source: Origin<'a>,
}

/// Which layer a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin<'a> {
    /// Nobody set it.
    Default,
    /// The INI file: `file:line`.
    File(&'a str),
    /// The environment variable of the key.
    Environment,
}

impl Found<'_> {
    /// Where the operator finds it.
    pub fn place(&self, key: &Key) -> String {
        match self.source {
            Origin::Default => "default".to_owned(),
            Origin::File(place) => place.to_owned(),
            Origin::Environment => key.variable(),
        }
    }
}

/// The origin that the crate gives to what comes from the environment.
const ENVIRONMENT_ORIGIN: &str = "the environment";

impl Layers {
    /// Lays the sources over each other.
    pub fn new(ini: &IniFile, environment: &Environment) -> Result<Self, Problem> {
        let failed = |e: config::ConfigError| Problem { place: "settings".to_owned(), text: e.to_string() };
        let mut builder = Config::builder();
        for key in keys::ALL {
            if let Some(default) = key.default {
                builder = builder.set_default(config_path(key.section, key.name), default).map_err(failed)?;
            }
        }
        let config = builder.add_source(ini.clone()).add_source(overrides(environment)).build().map_err(failed)?;
        Ok(Layers { values: config.cache.into_table().map_err(failed)? })
    }

    /// The value of `key`, if any layer has one.
    pub fn find(&self, key: &Key) -> Option<Found<'_>> {
        let section = self.values.get(&key.section.to_lowercase())?;
        let ValueKind::Table(section) = &section.kind else { return None };
        let value = section.get(key.name)?;
        let ValueKind::String(text) = &value.kind else { return None };
        let source = match value.origin() {
            None => Origin::Default,
            Some(ENVIRONMENT_ORIGIN) => Origin::Environment,
            Some(place) => Origin::File(place),
        };
        Some(Found { value: text.trim(), source })
    }

    /// The keys that are set and have no effect in this version.
    pub fn not_implemented(&self) -> Vec<String> {
        let asks = |key: &&Key| {
            let Support::Later { idle } = key.support else { return false };
            self.find(key).is_some_and(|found| !found.value.is_empty() && Some(found.value) != idle)
        };
        keys::ALL.iter().filter(asks).map(Key::title).collect()
    }
}

/// The path of a key as the crate spells it.
fn config_path(section: &str, name: &str) -> String {
    format!("{section}.{name}").to_lowercase()
}

/// The overrides as a source. Only variables that name a known key get to the crate: one that names a section alone would
/// replace the whole section.
fn overrides(environment: &Environment) -> EnvironmentSource {
    let known = environment.overrides().filter(|(name, _)| named_key(name).is_some());
    let known = known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    EnvironmentSource::with_prefix("SMP_SERVER").separator("__").source(Some(known))
}

fn named_key(variable: &str) -> Option<&'static Key> {
    let (section, name) = variable.strip_prefix(OVERRIDE_PREFIX)?.split_once("__")?;
    keys::find(section, name)
}

/// What the file and the environment have that nobody knows, and what is there twice.
pub fn unknown_keys(ini: &IniFile, environment: &Environment) -> Vec<Note> {
    let unknown = |place: &str, section: &str, name: &str| Note::Unknown {
        place: place.to_owned(),
        key: format!("[{section}] {name}"),
        suggestion: keys::suggest(section, name).map(Key::title),
    };
    let in_file = ini.entries().iter().filter(|entry| keys::find(&entry.section, &entry.key).is_none());
    let in_file = in_file.map(|entry| unknown(&entry.place, &entry.section, &entry.key));
    let repeated = ini.repeated().iter().map(|entry| {
        let text = format!("{}: [{}] {} is there twice, the first counts", entry.place, entry.section, entry.key);
        Note::Other(text)
    });
    let mut variables: Vec<_> =
        environment.overrides().map(|(name, _)| name).filter(|name| named_key(name).is_none()).collect();
    variables.sort_unstable();
    let in_environment = variables.into_iter().map(|variable| {
        let rest = variable.strip_prefix(OVERRIDE_PREFIX).unwrap_or(variable);
        let (section, name) = rest.split_once("__").unwrap_or((rest, ""));
        unknown(variable, section, &name.to_lowercase())
    });
    in_file.chain(repeated).chain(in_environment).collect()
}
