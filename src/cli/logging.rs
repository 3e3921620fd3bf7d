//! The log: to standard error, at the level of the command line unless `RUST_LOG` says otherwise.

use tracing_subscriber::EnvFilter;

use super::options::LogLevel;

/// Sets up the log of the process. A second call changes nothing.
pub fn set_up(level: LogLevel) {
    let level = match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info | LogLevel::Note => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    // It fails only if the log is already set up.
    let _ = log.try_init();
}
