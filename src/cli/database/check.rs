//! `smp-server database check`: the numbers and hashes that the store keeps of its services' queues are those of the queues
//! that there are.
//!
//! Services are told by numbers in the order in which they came: their IDs are nobody's business.

use actix_rt::System;

use crate::cli::console::Console;
use crate::cli::error::CommandError;
use crate::cli::store::open_store;
use crate::protocol::handshake::ServiceRole;
use crate::settings::{self, Environment, Paths, StoreLocation};
use crate::store::transfer::file;
use crate::store::{ServiceCheck, StoreError};

/// Runs the command on the store that the settings name.
///
/// # Errors
/// There is no store, it can not be opened or read, or something differs and is not to be repaired.
pub fn check(
    paths: &Paths,
    environment: &Environment,
    repair: bool,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    let store = settings::load(paths, environment)?.settings.store;
    refuse_absent(&store.location)?;
    console.say("Counting the queues of all services...")?;
    let store = open_store(&store).map_err(|error| CommandError::refused(error.to_string()))?;
    let checked = System::new().block_on(async {
        let checks = store.check_services(repair).await?;
        store.close().await?;
        Ok::<_, StoreError>(checks)
    });
    let checks = checked.map_err(|error| CommandError::refused(format!("the store failed: {error}")))?;
    report(&checks, repair, console)
}

fn refuse_absent(location: &StoreLocation) -> Result<(), CommandError> {
    match location {
        StoreLocation::Memory => Err(CommandError::refused(
            "the server keeps its queues in memory: there is nothing to be checked (enable in [STORE_LOG] is off)",
        )),
        StoreLocation::File(path) if !file::is_present(path) => Err(CommandError::refused(format!(
            "{} does not exist: there is nothing to be checked.\nIf it is in another directory, name that in \
             SMP_SERVER_LOG_PATH.",
            path.display()
        ))),
        StoreLocation::File(_) | StoreLocation::Postgres(_) => Ok(()),
    }
}

fn report(checks: &[ServiceCheck], repair: bool, console: &mut Console<'_>) -> Result<(), CommandError> {
    let different: Vec<String> =
        checks.iter().enumerate().filter(|(_, check)| check.kept != check.counted).map(describe).collect();
    for line in &different {
        console.say(line)?;
    }
    let services = checks.len();
    match different.len() {
        0 => Ok(console.say(format_args!("Done: {services} services, nothing differs"))?),
        wrong if repair => Ok(console.say(format_args!("Done: {services} services, {wrong} set right"))?),
        wrong => Err(CommandError::refused(format!(
            "of {services} services, {wrong} have other queues than is kept.\nSet it right with `smp-server database check \
             --repair`."
        ))),
    }
}

fn describe((at, ServiceCheck { role, kept, counted, .. }): (usize, &ServiceCheck)) -> String {
    let role = match role {
        ServiceRole::Messaging => "messaging",
        ServiceRole::Notifier => "notifier",
        ServiceRole::Proxy => "proxy",
    };
    let hash = if kept.hash == counted.hash { "the same hash" } else { "another hash" };
    format!("service {} ({role}): {} queues are kept, {} are there, {hash}", at + 1, kept.count, counted.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ServiceId;
    use crate::protocol::command::{IdsHash, ServiceQueues};

    fn service(kept: i64, counted: i64) -> ServiceCheck {
        let queues = |count| ServiceQueues { count, hash: IdsHash([u8::try_from(count).unwrap(); 16]) };
        let (kept, counted) = (queues(kept), queues(counted));
        ServiceCheck { service: ServiceId([1; 24]), role: ServiceRole::Notifier, kept, counted }
    }

    fn said(checks: &[ServiceCheck], repair: bool) -> (String, Result<(), String>) {
        let (mut input, mut output) = (&b""[..], Vec::new());
        let mut console = Console::new(&mut input, &mut output);
        let result = report(checks, repair, &mut console).map_err(|error| error.to_string());
        (String::from_utf8(output).unwrap(), result)
    }

    #[test]
    fn what_differs_is_told_and_refused_unless_it_was_set_right() {
        let checks = [service(2, 2), service(3, 5)];
        let line = "service 2 (notifier): 3 queues are kept, 5 are there, another hash\n";
        let (output, result) = said(&checks, false);
        assert_eq!(output, line);
        assert!(result.unwrap_err().contains("of 2 services, 1 have other queues"));
        assert_eq!(said(&checks, true), (format!("{line}Done: 2 services, 1 set right\n"), Ok(())));
        assert_eq!(said(&checks[..1], false), ("Done: 1 services, nothing differs\n".to_owned(), Ok(())));
    }
}
