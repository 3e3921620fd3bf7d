//! The `smp-server` binary: command line to one function per command.

use std::process::ExitCode;

/// jemalloc gives memory back after a burst of handshakes; its decay times are set in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    smp_server::cli::main(&smp_server::actors::run::run)
}
