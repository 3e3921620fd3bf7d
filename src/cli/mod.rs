//! The command line: one function per command.

pub mod check;

/// Runs the command that the process's arguments name.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
