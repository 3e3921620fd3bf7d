//! `smp-server start`: everything is read and checked before anything starts.

mod database;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use tracing::{info, warn};

use super::adopt::{self, Decisions};
use super::certificates::to_base64;
use super::console::Console;
use super::error::CommandError;
use super::identity::Identity;
use super::import::Files;
use super::options::StartOptions;
use crate::settings::{self, Environment, Note, Paths, Settings, StoreLocation};
use crate::store::postgres::connect::Connector;
use database::DatabaseStart;

/// Everything that the server needs to run.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// The settings.
    pub settings: Settings,
    /// Certificates and key.
    pub identity: Identity,
    /// Where files may be written.
    pub paths: Paths,
    /// How to connect to the database, if the settings name one.
    pub connector: Option<Connector>,
    /// Whether to do only what is done on start and stop, and not to serve.
    pub maintenance: bool,
}

/// What runs the server until it is told to stop.
pub type RunServer<'a> = &'a dyn Fn(ServerSetup) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Checks everything, tells what will be served, and runs the server, unless only the check is asked for.
pub fn start(
    paths: &Paths,
    environment: &Environment,
    options: &StartOptions,
    console: &mut Console<'_>,
    run: RunServer<'_>,
) -> Result<(), CommandError> {
    let (setup, notes) = prepare(paths, environment, options)?;
    // Under a service manager, standard output is a log.
    say_setup(&setup, std::io::stdout().is_terminal(), console)?;
    let database = database_of(&setup);
    if options.check_config {
        database.map_or(Ok(()), |database| database.check(options, console))?;
        say_journal(&setup, options, console)?;
        for note in &notes {
            console.say(format_args!("note: {note}"))?;
        }
        console.say("The configuration is valid.")?;
        return Ok(());
    }
    notes.iter().for_each(log_note);
    database.map_or(Ok(()), |database| database.open(options, console))?;
    adopt(&setup, options, console)?;
    run(setup).map_err(CommandError::Run)
}

/// Reads and checks settings, certificates and directories.
///
/// # Errors
/// Whatever would keep the server from running, or would make it run without the queues that it had.
pub fn prepare(
    paths: &Paths,
    environment: &Environment,
    options: &StartOptions,
) -> Result<(ServerSetup, Vec<Note>), CommandError> {
    super::require_installation(paths)?;
    let settings::Loaded { settings, mut notes } = settings::load(paths, environment)?;
    let identity = Identity::load(paths)?;
    let connector = match &settings.store.location {
        StoreLocation::Memory => None,
        StoreLocation::File(_) => {
            check_writable(&paths.log)?;
            let files = adopt::look_at_files(paths, decisions(&settings, options))?;
            let note = |files: Files| Note::Other(format!("{} will be imported by `start`", files.names()));
            notes.extend(files.filter(|_| options.check_config).map(note));
            None
        }
        StoreLocation::Postgres(database) => {
            let refused = |error| CommandError::refused(format!("[STORE_LOG] db_connection: {error}"));
            Some(Connector::new(&database.options).map_err(refused)?)
        }
    };
    if options.compact_log {
        notes.push(Note::Other("--compact-log has no effect: there is no store log to compact".to_owned()));
    }
    let (paths, maintenance) = (paths.clone(), options.maintenance);
    Ok((ServerSetup { settings, identity, paths, connector, maintenance }, notes))
}

/// Takes over what the Haskell server has left.
fn adopt(setup: &ServerSetup, options: &StartOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
    let decisions = decisions(&setup.settings, options);
    match (&setup.settings.store.location, &setup.connector) {
        (StoreLocation::File(_), _) => adopt::adopt_files(&setup.paths, decisions, console),
        (StoreLocation::Postgres(database), Some(connector)) if database.import_journal => {
            adopt::adopt_journal(&setup.paths, connector, decisions, console)
        }
        _ => Ok(()),
    }
}

/// Tells whether a journal directory will be imported into the database.
fn say_journal(setup: &ServerSetup, options: &StartOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
    let (StoreLocation::Postgres(database), Some(connector)) = (&setup.settings.store.location, &setup.connector)
    else {
        return Ok(());
    };
    if !database.import_journal {
        return Ok(());
    }
    match adopt::look_at_journal(&setup.paths, connector, decisions(&setup.settings, options))? {
        Some(files) => Ok(console.say(format_args!("note: {} will be imported by `start`", files.names()))?),
        None => Ok(()),
    }
}

fn decisions(settings: &Settings, options: &StartOptions) -> Decisions {
    Decisions { skip_warnings: options.skip_warnings, restore_messages: settings.store.restore_messages }
}

fn database_of(setup: &ServerSetup) -> Option<DatabaseStart<'_>> {
    let StoreLocation::Postgres(database) = &setup.settings.store.location else { return None };
    setup.connector.as_ref().map(|connector| DatabaseStart { database, connector, paths: &setup.paths })
}

fn check_writable(directory: &Path) -> Result<(), CommandError> {
    use rustix::fs::Access;
    let needed = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let access = rustix::fs::access(directory, needed).map_err(std::io::Error::from);
    access.map_err(CommandError::file("write to", directory))
}

fn log_note(note: &Note) {
    match note {
        Note::NotImplemented(_) => info!("{note}"),
        Note::Unknown { .. } | Note::Other(_) => warn!("{note}"),
    }
}

fn say_setup(setup: &ServerSetup, show_password: bool, console: &mut Console<'_>) -> Result<(), CommandError> {
    let ServerSetup { settings, identity, .. } = setup;
    let password = settings.auth.create_password.as_ref();
    console.say(super::VERSION)?;
    console.say(format_args!("Fingerprint: {}", to_base64(&identity.fingerprint.0)))?;
    let address = identity.address(&settings.transport, password.filter(|_| show_password));
    console.say(format_args!("Server address: {address}"))?;
    super::say_source_code(settings.information.source_code.as_deref(), console)?;
    for line in describe(setup) {
        console.say(line)?;
    }
    Ok(())
}

/// What the server will do, a line each.
fn describe(setup: &ServerSetup) -> Vec<String> {
    let settings = &setup.settings;
    let transport = &settings.transport;
    let expiration = &settings.store.expiration;
    let store = match (&settings.store.location, &setup.connector) {
        (_, Some(connector)) => format!("PostgreSQL {connector}, schema: {}", connector.schema()),
        (StoreLocation::File(path), None) => format!("Store: {}", path.display()),
        (_, None) => "Store: in memory, nothing is kept on restart".to_owned(),
    };
    let ports = transport.ports.iter().map(|port| format!("SMP port {port} (TLS)"));
    let inactive = match settings.inactive_clients {
        Some(inactive) => format!("expiring clients inactive for {}", duration_text(inactive.ttl)),
        None => "not expiring inactive clients".to_owned(),
    };
    let new_queues = match (settings.auth.new_queues, &settings.auth.create_password) {
        (false, _) => "NOT allowed",
        (true, Some(_)) => "requires password",
        (true, None) => "allowed",
    };
    let mut lines = vec![store];
    lines.extend(ports);
    lines.push(format!("SMP versions {} to {}", transport.versions.min().0, transport.versions.max().0));
    lines.push(format!("expiring messages after {}", duration_text(expiration.ttl)));
    lines.push(inactive);
    lines.push(format!("creating new queues {new_queues}"));
    lines
}

/// A duration in the largest unit that it is a whole number of.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    match units.iter().find(|(unit, _)| seconds != 0 && seconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_the_largest_fitting_unit() {
        let text = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!(
            [text(1_814_400), text(7_200), text(90), text(120)],
            ["21 days", "2 hours", "90 seconds", "2 minutes"]
        );
    }
}
