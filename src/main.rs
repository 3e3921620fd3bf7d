//! The `smp-server` binary: command line to one function per command.

fn main() -> std::process::ExitCode {
    smp_server::cli::main()
}
