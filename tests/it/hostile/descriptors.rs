//! No file descriptors left.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::Bystander;
use super::raw::tcp;
use crate::support::{Relay, Server, Store, for_each_store};

for_each_store!(a_server_out_of_descriptors_waits_and_goes_on_when_there_are_some);

/// Descriptors that the server may have.
const LIMIT: usize = 64;

/// How long the server's use of the processor is watched.
const WATCH: Duration = Duration::from_secs(1);

/// A server that may have [`LIMIT`] descriptors.
fn limited(store: Store) -> Relay {
    let installation = store.installation();
    let start = installation.command(&["start"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$0\" start")]).arg(start.get_program());
    command.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Relay::of(Server::start_by(command, installation))
}

/// Processor time of a process, in clock ticks (100 a second).
fn ticks(process_id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

fn open_descriptors(process_id: u32) -> usize {
    fs::read_dir(format!("/proc/{process_id}/fd")).unwrap().count()
}

async fn a_server_out_of_descriptors_waits_and_goes_on_when_there_are_some(store: Store) {
    let relay = limited(store);
    let process_id = relay.server().process_id();
    let mut bystander = Bystander::at(&relay).await;
    let mut others = Vec::new();
    for _ in 0..2 * LIMIT {
        others.push(tcp(&relay).await);
    }
    crate::support::until("no descriptors to be left", async || open_descriptors(process_id) >= LIMIT - 1).await;
    let (before, started) = (ticks(process_id), Instant::now());
    while started.elapsed() < WATCH {
        bystander.is_served().await;
        tokio::time::sleep(WATCH / 10).await;
    }
    assert!(ticks(process_id) - before < 50, "the server spins");
    drop(others);
    relay.connect().await.ping().await.unwrap();
    bystander.is_served().await;
    let said = relay.server().output();
    let complaints = said.iter().filter(|line| line.contains("cannot accept connections")).count();
    assert_eq!(complaints, 1, "once a minute: {said:?}");
}
