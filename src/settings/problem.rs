//! What is wrong with the settings, and what is worth a line in the log. Values of secret keys never get in here.

use std::fmt;

/// One mistake: where, what was written, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line` or the name of an environment variable.
    pub place: String,
    /// What is wrong there.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// All mistakes of the settings at once, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SettingsError {
    /// Those of the file in its order, then those of the environment.
    pub problems: Vec<Problem>,
    /// What else the operator should know: an unknown key is often a known one misspelt.
    pub notes: Vec<Note>,
}

impl Problem {
    /// The line of the file, for sorting; what has none comes last.
    fn line(&self) -> usize {
        self.place.rsplit(':').next().and_then(|line| line.parse().ok()).unwrap_or(usize::MAX)
    }
}

impl SettingsError {
    /// These mistakes, in order.
    pub fn new(mut problems: Vec<Problem>, notes: Vec<Note>) -> Self {
        problems.sort_by_key(Problem::line);
        SettingsError { problems, notes }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "the settings have a mistake:")?,
            n => write!(f, "the settings have {n} mistakes:")?,
        }
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  note: {note}"))
    }
}

/// Something that is accepted and has no effect, or not the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Keys that this version knows and does not use yet, as `[SECTION] key`.
    NotImplemented(Vec<String>),
    /// A key that nobody knows: a slip of the pen, or a later version's.
    Unknown {
        /// `file:line` or the name of an environment variable.
        place: String,
        /// `[SECTION] key` as written.
        key: String,
        /// The known key that was perhaps meant.
        suggestion: Option<String>,
    },
    /// Something else that the operator should know.
    Other(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NotImplemented(keys) => write!(f, "not implemented yet, without effect: {}", keys.join(", ")),
            Note::Unknown { place, key, suggestion: None } => write!(f, "{place}: unknown key {key}, without effect"),
            Note::Unknown { place, key, suggestion: Some(meant) } => {
                write!(f, "{place}: unknown key {key}, without effect; is {meant} meant?")
            }
            Note::Other(text) => f.write_str(text),
        }
    }
}
