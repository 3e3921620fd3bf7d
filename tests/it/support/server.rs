//! A server in a process of its own: initialised in a temporary directory, on a free port, killed when dropped.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use smp_server::store::postgres::connect::DatabaseOptions;
use smp_server::store::postgres::schema::{Create, Preparation, UnfinishedImport};
use smp_server::store::postgres::{PostgresOptions, PostgresStore};
use smp_server::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use super::cluster::Schema;

/// How long a server may take to say where it listens, or to stop. Generous: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `start` prints before the address of each socket on which it accepts, the real port in it when the INI says 0.
const LISTENING: &str = "Listening on ";

/// Connections of a server to its database: so many that writers and readers meet, and few enough for many servers.
const POOL_SIZE: u32 = 4;

/// Lines of output kept until a test asks for them; more are dropped, so that a chatty server does not block.
const OUTPUT_LINES: usize = 10_000;

/// Directories of a server, and its schema if it keeps everything in a database: removed when dropped.
pub struct Installation {
    directory: TempDir,
    schema: Option<Schema>,
}

impl Installation {
    /// Empty directories.
    pub fn empty() -> Self {
        Installation { directory: tempfile::tempdir().expect("a temporary directory"), schema: None }
    }

    /// Directories in which `init -y` was run, with the INI changed to listen on a free port of the loopback.
    pub fn new() -> Self {
        let installation = Installation::empty();
        installation.run(&["init", "-y", "--fqdn", "localhost", "--no-password", "--disable-web"]);
        installation.set("TRANSPORT", "host", "127.0.0.1");
        installation.set("TRANSPORT", "port", "0");
        installation
    }

    /// Keeps everything in `schema`, which is this installation's from now on.
    pub fn keep_in(&mut self, schema: Schema) {
        self.use_database(&schema.cluster().connection(), schema.name());
        self.schema = Some(schema);
    }

    /// Keeps everything in a database.
    pub fn use_database(&self, connection: &str, schema: &str) {
        for key in ["store_queues", "store_messages"] {
            self.set("STORE_LOG", key, "database");
        }
        self.set("STORE_LOG", "db_connection", connection);
        self.set("STORE_LOG", "db_schema", schema);
        self.set("STORE_LOG", "db_pool_size", &POOL_SIZE.to_string());
    }

    /// Its store, while no server has it.
    pub fn open_store(&self) -> Box<dyn smp_server::store::Store> {
        let Some(schema) = &self.schema else {
            let path = Some(self.log().join(smp_server::store::sqlite::FILE_NAME));
            return Box::new(SqliteStore::open(&SqliteOptions { path, ..SqliteOptions::default() }).expect("a store"));
        };
        let connection = schema.cluster().connection().as_str().into();
        let database = DatabaseOptions { connection, schema: schema.name().parse().expect("a schema's name") };
        let options = PostgresOptions { pool_size: 2, ..PostgresOptions::new(database) };
        let how =
            Preparation { create: Create::Never, unfinished_import: UnfinishedImport::Refuse, confirm: &mut |_| false };
        Box::new(PostgresStore::open(&options, how).expect("a store"))
    }

    /// Its schema, if it has one of its own.
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// Where configuration and keys are.
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("etc")
    }

    /// Where the store is.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("var")
    }

    /// `smp-server` with these arguments and these directories.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smp-server"));
        command.args(arguments).env("SMP_SERVER_CFG_PATH", self.config()).env("SMP_SERVER_LOG_PATH", self.log());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `smp-server` with these arguments to its end, which has to be a success.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("smp-server runs");
        assert!(output.status.success(), "smp-server {arguments:?}: {output:?}");
        output
    }

    /// Sets a key of the INI: in place where it stands (or stands commented out), else right below its section's head.
    pub fn set(&self, section: &str, key: &str, value: &str) {
        let path = self.config().join("smp-server.ini");
        let text = fs::read_to_string(&path).expect("smp-server.ini");
        fs::write(path, with_key(&text, section, key, value)).expect("smp-server.ini can be written");
    }

    /// The certificate's fingerprint, as `init` wrote it.
    pub fn fingerprint(&self) -> String {
        fs::read_to_string(self.config().join("fingerprint")).expect("fingerprint").trim().to_owned()
    }
}

/// The INI `text` with `key` of `section` set to `value`.
fn with_key(text: &str, section: &str, key: &str, value: &str) -> String {
    let line = format!("{key} = {value}");
    let head = format!("[{section}]");
    let mut inside = false;
    let mut lines: Vec<String> = Vec::new();
    let mut place = None;
    for old in text.lines() {
        if old.starts_with('[') {
            inside = old.trim() == head;
        }
        lines.push(old.to_owned());
        let name = old.trim_start_matches(['#', ' ']).split(['=', ':']).next().unwrap_or_default().trim();
        if inside && name == key {
            place = Some(lines.len() - 1);
        }
    }
    match (place, lines.iter().position(|old| old.trim() == head)) {
        (Some(index), _) => lines[index] = line,
        (None, Some(index)) => lines.insert(index + 1, line),
        (None, None) => lines.extend([head, line]),
    }
    lines.join("\n") + "\n"
}

/// A running server. Dropping it kills the process and removes its directories.
pub struct Server {
    process: Process,
    output: Mutex<Receiver<String>>,
    /// What it said until it listened and was not asked for yet.
    said: Mutex<Vec<String>>,
    address: SocketAddr,
    // Last: dropped after the process that works in it.
    installation: Installation,
}

impl Server {
    /// A fresh server: initialised, started, listening.
    pub fn start() -> Self {
        Server::start_in(Installation::new())
    }

    /// Starts a server in `installation` and waits until it listens.
    pub fn start_in(installation: Installation) -> Self {
        let command = installation.command(&["start"]);
        Server::start_by(command, installation)
    }

    /// Starts a server in `installation` by this command and waits until it listens.
    pub fn start_by(mut command: Command, installation: Installation) -> Self {
        let mut process = Process(command.spawn().expect("smp-server starts"));
        let output = lines_of(&mut process.0);
        let (address, said) = first_address(&output)
            .unwrap_or_else(|said| panic!("smp-server did not say where it listens; it said:\n{}", said.join("\n")));
        Server { process, output: Mutex::new(output), said: Mutex::new(said), address, installation }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as clients know it: `smp://FINGERPRINT@HOST:PORT`.
    pub fn smp_address(&self) -> String {
        format!("smp://{}@{}", self.installation.fingerprint(), self.address)
    }

    /// Its directories.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The ID of its process.
    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    /// What it has written to standard output and error and was not asked for yet.
    pub fn output(&self) -> Vec<String> {
        let mut said = std::mem::take(&mut *self.said.lock().expect("no test failed here"));
        said.extend(self.output.lock().expect("no test failed here").try_iter());
        said
    }

    /// Asks it to stop (SIGTERM) and waits for it.
    pub fn stop(self) -> Stopped {
        self.end_by(Signal::TERM)
    }

    /// Kills it (SIGKILL), as a crash would, and waits for its end.
    pub fn kill(self) -> Stopped {
        self.end_by(Signal::KILL)
    }

    /// Kills it and starts another on the same directories. The port may be another.
    pub fn crash_and_restart(self) -> Self {
        Server::start_in(self.kill().installation)
    }

    /// Sends it a signal and goes on.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).expect("the process is there");
    }

    /// Waits for its end, which has to come in time.
    pub fn wait(self) -> Stopped {
        let Server { mut process, output, said, installation, .. } = self;
        let mut said = said.into_inner().expect("no test failed here");
        said.extend(rest_of(&output.into_inner().expect("no test failed here")));
        let status = process.0.wait().expect("the process can be waited for");
        Stopped { status, output: said, installation }
    }

    fn end_by(self, signal: Signal) -> Stopped {
        self.signal(signal);
        self.wait()
    }
}

/// What a stopped server leaves.
pub struct Stopped {
    /// How it ended.
    pub status: ExitStatus,
    /// What it has written and was not asked for before.
    pub output: Vec<String>,
    /// Its directories.
    pub installation: Installation,
}

/// A process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process writes until it ends, which it has to do in time.
fn rest_of(output: &Receiver<String>) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => seen.push(line),
            // The readers end when the process has closed its output.
            Err(RecvTimeoutError::Disconnected) => return seen,
            Err(RecvTimeoutError::Timeout) => panic!("smp-server did not stop; it said:\n{}", seen.join("\n")),
        }
    }
}

/// Lines of standard output and error of `child`, read by threads that end with the process.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = sync_channel(OUTPUT_LINES);
    let streams: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().expect("stdout")), Box::new(child.stderr.take().expect("stderr"))];
    for stream in streams {
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // Full: the line is lost, the server goes on.
                let _ = sender.try_send(line);
            }
        });
    }
    receiver
}

/// The first address that the server says it listens on, and what it said before, or all that it said instead.
fn first_address(output: &Receiver<String>) -> Result<(SocketAddr, Vec<String>), Vec<String>> {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    loop {
        match output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => match listening(&line) {
                Some(address) => return Ok((address, seen)),
                None => seen.push(line),
            },
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(seen),
        }
    }
}

/// The address to connect to, from a line that says where the server listens. Who listens everywhere does so on the same
/// port of both families.
fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let address: SocketAddr = rest.split([' ', ',']).next()?.parse().ok()?;
    let everywhere = address.ip().is_unspecified();
    Some(if everywhere { (Ipv4Addr::LOCALHOST, address.port()).into() } else { address })
}

#[test]
fn a_key_is_set_where_it_stands() {
    let text = "[A]\nport: 1\n[B]\n# port = 2\nhost = x\n";
    assert_eq!(with_key(text, "B", "port", "0"), "[A]\nport: 1\n[B]\nport = 0\nhost = x\n");
    assert_eq!(with_key(text, "A", "port", "0"), "[A]\nport = 0\n[B]\n# port = 2\nhost = x\n");
    assert_eq!(with_key(text, "A", "log", "on"), "[A]\nlog = on\nport: 1\n[B]\n# port = 2\nhost = x\n");
    assert_eq!(with_key("", "C", "log", "on"), "[C]\nlog = on\n");
}

#[test]
fn the_address_is_found_in_a_line_of_the_log() {
    assert_eq!(listening("INFO Listening on 127.0.0.1:4711"), "127.0.0.1:4711".parse().ok());
    assert_eq!(listening("2026 INFO: Listening on [::1]:5223 (TLS)"), "[::1]:5223".parse().ok());
    assert_eq!(listening("Listening on [::]:5223"), "127.0.0.1:5223".parse().ok());
    assert_eq!(listening("INFO Stopping"), None);
}
