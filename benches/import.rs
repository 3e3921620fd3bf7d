//! How long it takes to move in from the Haskell server's files, and how much memory:
//! `cargo bench --bench import -- [--queues N] [--body BYTES]`.
//!
//! Makes a store log of N queues (100,000) and a messages log of as many messages with bodies of BYTES (512), lets the
//! release binary import them, into the embedded store on its first start and into a PostgreSQL of its own by `database
//! import`, and starts it again on each. Needs some gigabytes in the temporary directory for a million, and more for larger
//! bodies.

// A bench says what went wrong by panicking.
#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "../tests/it/support/cluster.rs"]
mod cluster;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::Cluster;
use smp_server::protocol::command::{MessageFlags, QueueMode};
use smp_server::protocol::keys::PublicAuthKey;
use smp_server::protocol::{MessageId, QueueId};
use smp_server::store::files::LogFiles;
use smp_server::store::transfer::{Item, Sink};
use smp_server::store::{Day, DhSecret, Message, MessageContent, NewQueue, QueueRecord, QueueStatus, Timestamp};

/// Between two looks at a process's memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

const LOGS: [&str; 2] = ["smp-server-store.log", "smp-server-messages.log"];

fn main() {
    let (queues, body) = (argument("--queues").unwrap_or(100_000), argument("--body").unwrap_or(512));
    let installation = Installation::new();
    installation.write_logs(queues, body);
    let size = |name: &str| fs::metadata(installation.log().join(name)).expect("a log").len() / (1 << 20);
    println!("{queues} queues ({} MiB), {queues} messages ({} MiB)\n", size(LOGS[0]), size(LOGS[1]));
    println!("{:32}{:>10}{:>12}", "", "seconds", "peak MiB");

    report("SQLite: first start", installation.start(&[]));
    report("SQLite: start", installation.start(&[]));
    for name in LOGS {
        let backup = installation.log().join(format!("{name}.bak"));
        fs::rename(backup, installation.log().join(name)).expect("a log was kept");
    }

    let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB"]);
    let connection = cluster.connection();
    let import = ["database", "import", "--from", "log", "-y", "-d", &connection, "--schema", "bench"];
    report("PostgreSQL: database import", run_to_end(installation.command(&import)));
    let settings = [
        ("SMP_SERVER__STORE_LOG__STORE_QUEUES", "database"),
        ("SMP_SERVER__STORE_LOG__STORE_MESSAGES", "database"),
        ("SMP_SERVER__STORE_LOG__DB_CONNECTION", &*connection),
        ("SMP_SERVER__STORE_LOG__DB_SCHEMA", "bench"),
    ];
    report("PostgreSQL: start", installation.start(&settings));
}

fn argument(name: &str) -> Option<u64> {
    let arguments: Vec<String> = std::env::args().collect();
    let value = arguments.iter().skip_while(|argument| *argument != name).nth(1)?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value}")))
}

fn report(what: &str, (time, peak_kib): (Duration, u64)) {
    println!("{what:32}{:>10.2}{:>12}", time.as_secs_f64(), peak_kib / 1024);
}

/// An initialised server's directories.
struct Installation {
    directory: tempfile::TempDir,
}

impl Installation {
    fn new() -> Self {
        let installation = Installation { directory: tempfile::tempdir().expect("a temporary directory") };
        let init = ["init", "-y", "--fqdn", "localhost", "--no-password", "--disable-web"];
        let output = installation.command(&init).output().expect("smp-server runs");
        assert!(output.status.success(), "{output:?}");
        installation
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("var")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smp-server"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env("SMP_SERVER_CFG_PATH", self.directory.path().join("etc")).env("SMP_SERVER_LOG_PATH", self.log());
        command.env("SMP_SERVER__TRANSPORT__HOST", "127.0.0.1").env("SMP_SERVER__TRANSPORT__PORT", "0");
        command
    }

    /// Starts the server: until it listens, how long that takes and the most memory it has had; then ends it.
    fn start(&self, settings: &[(&str, &str)]) -> (Duration, u64) {
        let begun = Instant::now();
        let mut server = self.command(&["start"]).envs(settings.iter().copied()).spawn().expect("smp-server starts");
        let output = BufReader::new(server.stdout.take().expect("a pipe"));
        let listening = output.lines().map_while(Result::ok).any(|line| line.contains("Listening on"));
        assert!(listening, "the server did not start");
        let measured = (begun.elapsed(), peak_kib(&server).expect("it runs"));
        server.kill().and_then(|()| server.wait()).expect("it can be ended");
        measured
    }

    fn write_logs(&self, queues: u64, body: u64) {
        let [log, messages] = LOGS.map(|name| self.log().join(name));
        let mut sink = Box::new(LogFiles::create(Some(Path::new(&log)), Some(&messages)).expect("logs"));
        for number in 0..queues {
            let queue = queue();
            let recipient = queue.record.recipient_id;
            sink.put(Item::Queue(Box::new(queue))).expect("a disk with room");
            sink.put(Item::Message(recipient, Box::new(message(number, body)))).expect("a disk with room");
        }
        sink.finish().expect("a disk with room");
    }
}

/// Runs a command to its end: how long that takes, and the most memory it has had.
fn run_to_end(mut command: Command) -> (Duration, u64) {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("smp-server runs");
    let mut peak = 0;
    loop {
        peak = peak_kib(&child).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{command:?}: {status}");
            return (begun.elapsed(), peak);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The most resident memory that the process has had, while it runs.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

fn queue() -> NewQueue {
    let record = QueueRecord {
        recipient_id: QueueId(random()),
        sender_id: QueueId(random()),
        recipient_keys: vec![PublicAuthKey::Ed25519(random())],
        dh_secret: DhSecret(random()),
        sender_key: Some(PublicAuthKey::Ed25519(random())),
        mode: Some(QueueMode::Messaging),
        status: QueueStatus::Active,
        link_id: None,
        notifier: None,
        recipient_service: None,
        updated_at: Some(Day(20_000)),
    };
    NewQueue { record, link_data: None }
}

fn message(number: u64, body: u64) -> Message {
    let seconds = 1_900_000_000 + i64::try_from(number).unwrap_or_default();
    let body =
        Bytes::from(vec![u8::try_from(number % 251).unwrap_or_default(); usize::try_from(body).expect("a size")]);
    let content = MessageContent::Sent { flags: MessageFlags { notification: true }, body };
    Message { id: MessageId(random()), sequence: 0, timestamp: Timestamp { seconds, nanoseconds: 0 }, content }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("random bytes");
    bytes
}
