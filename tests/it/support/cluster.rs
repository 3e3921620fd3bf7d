//! A PostgreSQL of the tests' own: initialised in a temporary directory by the installed programs, reachable by a socket
//! there, stopped and removed when the test process ends in whatever way. A server that runs already is never touched.
//!
//! Also compiled into the unit tests of `store::postgres`.

#![allow(dead_code, reason = "each crate of tests uses its part")]

use std::fmt::Display;
use std::fs::Permissions;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The user and database of the tests.
pub const USER: &str = "smp";

/// Names the socket, nothing else, of a cluster that listens there only.
const PORT: u16 = 5432;

/// Durability is not for tests that only end processes; a small memory, and connections for all tests at once.
const SETTINGS: &[&str] = &[
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=400",
    "autovacuum_naptime=60",
    "log_min_messages=fatal",
    "listen_addresses=",
];

/// Stops the cluster and removes its directory once standard input ends: when the test process, which holds the other end,
/// is gone.
const GUARD: &str = r#"
read -r _ || true
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
n=0; while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
rm -rf "$1"
"#;

/// A cluster in a directory of its own.
pub struct Cluster {
    directory: PathBuf,
    port: u16,
    settings: Vec<String>,
    guard: Child,
    schemas: AtomicU32,
}

/// The cluster that the tests of this process share.
static SHARED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(&[]));

/// A schema name for one test, dropped with its content at the end.
pub struct Schema {
    cluster: &'static Cluster,
    name: String,
}

impl Cluster {
    /// The one for tests that do not end, slow or reconfigure it.
    pub fn shared() -> &'static Cluster {
        &SHARED
    }

    /// One of the test's own, with these settings (`name=value`) beside the usual ones.
    pub fn start(settings: &[&str]) -> Cluster {
        let cluster = Cluster::initialize(settings);
        cluster.run();
        cluster.fill();
        cluster
    }

    /// One that listens also on a TCP port of 127.0.0.1, with these files in its data directory.
    pub fn start_on_tcp(settings: &[&str], files: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::initialize(settings);
        cluster.settings.push("listen_addresses=127.0.0.1".to_owned());
        files.iter().for_each(|(name, content)| cluster.write(name, content));
        // Between our look and its start somebody else may take the port.
        for _ in 0..20 {
            cluster.port = free_port();
            if cluster.try_run() {
                cluster.fill();
                return cluster;
            }
        }
        panic!("no port for PostgreSQL: {}", std::fs::read_to_string(cluster.directory.join("log")).unwrap_or_default())
    }

    fn initialize(settings: &[&str]) -> Cluster {
        let directory = TempDir::new().expect("a temporary directory").keep();
        own(&directory);
        let guard = Command::new("sh").args(["-c", GUARD, "guard"]).arg(&directory).stdin(Stdio::piped()).spawn();
        let cluster = Cluster {
            guard: guard.expect("sh runs"),
            settings: SETTINGS.iter().chain(settings).map(|setting| (*setting).to_owned()).collect(),
            directory,
            port: PORT,
            schemas: AtomicU32::new(0),
        };
        let data = cluster.data();
        succeed(
            program("initdb")
                .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--username", USER, "-D"])
                .arg(data),
        );
        cluster
    }

    fn fill(&self) {
        self.sql_in("postgres", "CREATE DATABASE smp");
        self.sql("CREATE EXTENSION pgcrypto");
    }

    /// Writes a file that only PostgreSQL may read, as it wants its keys.
    fn write(&self, name: &str, content: &str) {
        let path = self.data().join(name);
        std::fs::write(&path, content).expect("a file in the data directory");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("our file");
        own(&path);
    }

    /// Starts the server, and returns when it accepts connections.
    pub fn run(&self) {
        assert!(self.try_run(), "{}", std::fs::read_to_string(self.directory.join("log")).unwrap_or_default());
    }

    fn try_run(&self) -> bool {
        let mut options = format!("-k {} -p {}", self.directory.display(), self.port);
        for setting in &self.settings {
            options.push_str(&format!(" -c '{setting}'"));
        }
        let log = self.directory.join("log");
        let mut command = program("pg_ctl");
        command.arg("-D").arg(self.data()).arg("-l").arg(log).args(["-w", "-t", "60", "-o", &options, "start"]);
        // It goes on in the background, and must not hold our end of a pipe.
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("pg_ctl runs").success()
    }

    /// Ends all of the server's processes by SIGKILL. [`Self::run`] recovers what it had committed.
    pub fn kill(&self) {
        let postmaster = self.postmaster();
        let mut processes = children(postmaster);
        processes.push(postmaster);
        for process in &processes {
            // A process may have ended by itself.
            let _ = kill_process(*process, Signal::KILL);
        }
        while processes.iter().any(|process| runs(*process)) {
            std::thread::yield_now();
        }
        // They name a process that some systems keep on their list until somebody waits for it.
        let socket_lock = self.directory.join(format!(".s.PGSQL.{PORT}.lock"));
        for lock in [self.pid_file(), socket_lock] {
            std::fs::remove_file(lock).expect("the lock of a PostgreSQL that was killed");
        }
    }

    /// Stops the server in an orderly way; its clients are cut off.
    pub fn stop(&self) {
        succeed(program("pg_ctl").arg("-D").arg(self.data()).args(["-w", "-m", "fast", "stop"]));
    }

    /// What to connect to, for libpq and whoever reads its connection strings.
    pub fn connection(&self) -> String {
        format!("postgresql://{USER}@/{USER}?host={}&port={}", self.directory.display(), self.port)
    }

    /// The TCP port of one that has one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket's path.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Where the server's files are.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// A schema name that no other test has; nothing is made.
    pub fn schema(&'static self) -> Schema {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        Schema { cluster: self, name: format!("smp_test_{number}") }
    }

    /// Runs SQL; answers its rows as text, columns separated by `|`.
    pub fn sql(&self, sql: impl Display) -> String {
        self.sql_in(USER, sql)
    }

    /// Runs statements one after the other, each in a transaction of its own; answers the rows of all.
    pub fn sql_each(&self, statements: &[&str]) -> String {
        self.psql(USER, statements)
    }

    fn sql_in(&self, database: &str, sql: impl Display) -> String {
        self.psql(database, &[&sql.to_string()])
    }

    fn psql(&self, database: &str, statements: &[&str]) -> String {
        let mut command = Command::new(binaries().join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database, "-p"]);
        command.arg(self.port.to_string()).arg("-h").arg(&self.directory);
        command.args(statements.iter().flat_map(|statement| ["-c", statement]));
        let output = succeed(&mut command);
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn pid_file(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }

    fn postmaster(&self) -> Pid {
        let file = std::fs::read_to_string(self.pid_file()).expect("a running PostgreSQL");
        let pid = file.lines().next().and_then(|line| line.trim().parse().ok());
        pid.and_then(Pid::from_raw).expect("a pid")
    }
}

/// State and parent of a process, if it is there.
fn state_and_parent(process: Pid) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
    // The name before may have spaces and parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Whether it has not ended, if perhaps nobody has waited for it yet.
fn runs(process: Pid) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| state != "Z")
}

fn children(of: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    processes
        .filter(|process| state_and_parent(*process).is_some_and(|(_, parent)| parent == of.as_raw_pid()))
        .collect()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut input) = self.guard.stdin.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.guard.wait();
    }
}

impl Schema {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its cluster.
    pub fn cluster(&self) -> &'static Cluster {
        self.cluster
    }

    /// Runs SQL in it; answers its rows as text.
    pub fn sql(&self, sql: impl Display) -> String {
        self.cluster.sql(format!("SET search_path TO {}, public; {sql}", self.name))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.cluster.sql(format!("SET client_min_messages = warning; DROP SCHEMA IF EXISTS {} CASCADE", self.name));
    }
}

/// One of PostgreSQL's programs, as a user that it accepts: it refuses to run as root.
fn program(name: &str) -> Command {
    let path = binaries().join(name);
    let mut command = match unprivileged() {
        None => Command::new(path),
        Some((user, group)) => {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={user}"), format!("--regid={group}")]).arg("--clear-groups").arg(path);
            command
        }
    };
    command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
    command
}

/// Where PostgreSQL's programs are: `SMP_TEST_POSTGRES`, or the newest of Debian's, or beside `pg_config`.
fn binaries() -> &'static Path {
    static BINARIES: LazyLock<PathBuf> = LazyLock::new(|| {
        if let Some(path) = std::env::var_os("SMP_TEST_POSTGRES") {
            return path.into();
        }
        let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let installed = installed.map(|entry| entry.path().join("bin")).filter(|path| path.join("initdb").exists());
        let newest = installed.max_by_key(|path| {
            let version = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
            version.unwrap_or(0)
        });
        newest.unwrap_or_else(|| {
            let output = Command::new("pg_config").arg("--bindir").output();
            let output = output.expect("PostgreSQL is not installed: run `make test`, or `scripts/packages test`");
            String::from_utf8(output.stdout).expect("a path").trim().into()
        })
    });
    &BINARIES
}

/// User and group for PostgreSQL when the tests run as root.
fn unprivileged() -> Option<(u32, u32)> {
    static USER: LazyLock<Option<(u32, u32)>> = LazyLock::new(|| {
        let number = |arguments: &[&str]| {
            let output = Command::new("id").args(arguments).stderr(Stdio::null()).output().expect("id runs");
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        let user = |name| Some((number(&["-u", name])?, number(&["-g", name])?));
        if number(&["-u"]) == Some(0) { user("postgres").or_else(|| user("nobody")) } else { None }
    });
    *USER
}

fn own(directory: &Path) {
    if let Some((user, group)) = unprivileged() {
        chown(directory, Some(user), Some(group)).expect("root may change owners");
    }
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// A TCP port that nobody listens on now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound socket").port()
}
