//! Why a command failed, in words that tell the operator what to do next.

use std::io;
use std::path::{Path, PathBuf};

use crate::settings::SettingsError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was to be done with it.
        action: &'static str,
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The command does not do this; the text says why and what to do.
    #[error("{0}")]
    Refused(String),
    /// Standard input or output failed.
    #[error("terminal: {0}")]
    Console(#[from] io::Error),
    /// OpenSSL failed.
    #[error("cryptography failed: {0}")]
    OpenSsl(#[from] openssl::error::ErrorStack),
    /// The server stopped with an error.
    #[error("{0}")]
    Run(Box<dyn std::error::Error + Send + Sync>),
}

impl CommandError {
    /// For `map_err` after an operation on `path`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| CommandError::File { action, path, source }
    }

    /// A refusal.
    pub fn refused(text: impl Into<String>) -> Self {
        CommandError::Refused(text.into())
    }
}
