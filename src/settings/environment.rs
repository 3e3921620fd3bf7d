//! Environment variables as a value, so that everything that depends on them is tested without touching the process.

use std::collections::HashMap;
use std::fmt;

/// Variables with this prefix override keys of the INI file: `SMP_SERVER__SECTION__KEY`.
pub const OVERRIDE_PREFIX: &str = "SMP_SERVER__";

/// The variables that the server looks at.
#[derive(Clone, Default)]
pub struct Environment {
    variables: HashMap<String, String>,
}

impl Environment {
    /// The variables of this process. Bytes that are not UTF-8 become U+FFFD, which no setting allows, so that such a
    /// value is reported and not silently ignored.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| name.starts_with("SMP_SERVER_"))
            .collect();
        Environment { variables }
    }

    /// The value of `name`; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Names and values of all variables that have the prefix of overrides and a value.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        pairs.filter(|(name, value)| name.starts_with(OVERRIDE_PREFIX) && !value.is_empty())
    }
}

impl<'a, I: IntoIterator<Item = (&'a str, &'a str)>> From<I> for Environment {
    fn from(pairs: I) -> Self {
        let variables = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Environment { variables }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
