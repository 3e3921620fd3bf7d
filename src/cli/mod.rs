//! The command line: one function per command, each over a console and paths that a test can replace.
//!
//! Commands are compatible with the Haskell server: same options, files, paths and variables. Nothing here serves clients;
//! `start` checks everything and hands a [`start::ServerSetup`] to whoever runs the server.

mod adopt;
mod cert;
pub mod certificates;
pub mod check;
mod console;
pub mod database;
mod delete;
mod error;
mod files;
mod identity;
mod import;
mod init;
mod journal;
mod logging;
pub mod options;
mod replay;
pub mod start;
pub mod store;
mod template;
#[cfg(test)]
mod tests;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

pub use console::Console;
pub use error::CommandError;
pub use identity::Identity;

use crate::settings::{Environment, Paths};
use options::{Command, CommandLine};
use start::RunServer;

/// What the server calls itself.
const VERSION: &str = concat!("SMP server v", env!("CARGO_PKG_VERSION"));

/// Runs the command that the process's arguments name; `run` serves until it is told to stop. A failure is told on
/// standard error and by the exit code: 1, or 2 for a command line that cannot be understood.
pub fn main(run: RunServer<'_>) -> ExitCode {
    let command = CommandLine::parse().command;
    let environment = Environment::of_process();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout());
    let mut console = Console::new(&mut input, &mut output);
    match execute(command, &environment, &mut console, run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn execute(
    command: Command,
    environment: &Environment,
    console: &mut Console<'_>,
    run: RunServer<'_>,
) -> Result<(), CommandError> {
    let paths = Paths::from_environment(environment);
    match command {
        Command::Init(options) => init::init(&paths, *options, console),
        Command::Start(options) => {
            logging::set_up(options.log_level);
            start::start(&paths, environment, &options, console, run)
        }
        Command::Cert(options) => cert::cert(&paths, &options, console),
        Command::Database(arguments) => database::database(&paths, environment, &arguments, console),
        Command::Journal(arguments) => journal::journal(&paths, environment, &arguments, console),
        Command::Delete => delete::delete(&paths, console),
        Command::Check(arguments) => check::check(arguments, console),
    }
}

fn require_installation(paths: &Paths) -> Result<(), CommandError> {
    let ini = paths.ini();
    if ini.is_file() {
        return Ok(());
    }
    Err(CommandError::refused(format!(
        "the server is not initialized ({} does not exist).\nRun `smp-server init`.",
        ini.display()
    )))
}

fn say_source_code(source_code: Option<&str>, console: &mut Console<'_>) -> Result<(), CommandError> {
    match source_code {
        Some(uri) => console.say(format_args!("Server source code: {uri}"))?,
        None => console.say(
            "Warning: it is not told where the source code of this server is.\n\
             Set `source_code` in section [INFORMATION] of smp-server.ini: the licence asks for it.",
        )?,
    }
    Ok(())
}
