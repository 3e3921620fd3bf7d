//! Opening a store: the lock, the file and what it may be, the connections and their settings.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

use super::schema::{self, Kind};
use super::{SqliteOptions, Sync};

/// A connection of one thread, or the one connection of a store in memory.
pub(super) type SharedConnection = Arc<Mutex<Connection>>;

/// Why a store cannot be opened. Each names the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, has it open.
    #[error("{0}: the store is in use by another server")]
    InUse(PathBuf),
    /// It was written by a later version of this program.
    #[error("{path}: the store was made by a newer version (its schema is {found}, this version knows {known})")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema's version.
        found: usize,
        /// The latest that is known.
        known: usize,
    },
    /// It is no database, or not ours.
    #[error("{0}: the file is not a store of this server")]
    Foreign(PathBuf),
    /// The file system cannot share memory between connections, as a network file system.
    #[error("{0}: the file system does not support a write-ahead log")]
    NoWriteAheadLog(PathBuf),
    /// The file cannot be opened, made or locked; or a thread cannot be started.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite finds it damaged or cannot work with it.
    #[error("{path}: {source}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

/// An open database.
pub(super) struct Database {
    pub(super) writer: SharedConnection,
    pub(super) readers: Vec<SharedConnection>,
    /// The write-ahead log's file; absent in memory.
    pub(super) wal: Option<PathBuf>,
    /// Held as long as a connection is open; absent in memory.
    pub(super) lock: Option<Arc<StoreLock>>,
}

/// Opens, makes or upgrades the database.
pub(super) fn open(options: &SqliteOptions) -> Result<Database, OpenError> {
    match &options.path {
        Some(path) => open_file(path, options),
        None => open_memory(options.sync).map_err(|source| OpenError::Database { path: PathBuf::from(MEMORY), source }),
    }
}

/// SQLite's name of a database in memory.
const MEMORY: &str = ":memory:";

/// In memory there is one connection for all threads: connections that share a cache lock each other's tables, which fails
/// at once instead of waiting.
fn open_memory(sync: Sync) -> rusqlite::Result<Database> {
    let mut connection = Connection::open_in_memory()?;
    connection.execute_batch(NEW_IN_MEMORY)?;
    prepare_writer(&mut connection, 0, sync)?;
    let writer = share(connection);
    Ok(Database { readers: vec![writer.clone()], writer, wal: None, lock: None })
}

fn open_file(path: &Path, options: &SqliteOptions) -> Result<Database, OpenError> {
    let lock = StoreLock::take(path)?;
    // It holds secrets of queues: for the server's user only. SQLite gives its other files the same permissions.
    private_file(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    let writer = open_writer(path, options.sync)?;
    let readers = (0..options.readers.max(1)).map(|_| open_reader(path)).collect::<rusqlite::Result<Vec<_>>>();
    let readers = readers.map_err(|error| database_error(path, error))?;
    Ok(Database {
        writer: share(writer),
        readers: readers.into_iter().map(share).collect(),
        wal: Some(with_suffix(path, "-wal")),
        lock: Some(Arc::new(lock)),
    })
}

/// Keeps others from the store in this file, as a server that runs on it does, until it is dropped; the system lets them in
/// when the process dies.
///
/// It is a lock of `<file>.lock`. SQLite's own exclusive mode would lock our readers out, and a lock on the database itself
/// would meet SQLite's locks, which a process loses whenever it closes any handle of the file. The lock's file stays: to
/// delete it would let two servers lock two files of one name.
#[derive(Debug)]
pub struct StoreLock(File);

impl StoreLock {
    /// Locks the store.
    ///
    /// # Errors
    /// [`OpenError::InUse`] while a server runs on it, and those of the file system.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        let io_error = |source| OpenError::Io { path: path.to_owned(), source };
        let file = private_file(&with_suffix(path, ".lock")).map_err(io_error)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StoreLock(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse(path.to_owned())),
            Err(error) => Err(io_error(error.into())),
        }
    }
}

impl Drop for StoreLock {
    /// Closing the file is not enough: a child process that is just being started has it open, too, until it runs its
    /// program.
    fn drop(&mut self) {
        // Fails for no lock that was taken; else closing the file is what is left.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

pub(super) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn open_writer(path: &Path, sync: Sync) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(|error| database_error(path, error))?;
    // Nothing is set before it is known to be ours: settings change the file.
    let version = own_version(&connection, path)?;
    let write_ahead = prepare_writer(&mut connection, version, sync).map_err(|error| database_error(path, error))?;
    match write_ahead {
        true => Ok(connection),
        false => Err(OpenError::NoWriteAheadLog(path.to_owned())),
    }
}

/// The version of the file's schema, if the file is ours and not newer than this program.
fn own_version(connection: &Connection, path: &Path) -> Result<usize, OpenError> {
    let known = schema::VERSION;
    match schema::kind(connection).map_err(|error| database_error(path, error))? {
        Kind::Ours(found) if found > known => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        Kind::Ours(version) => Ok(version),
        Kind::Foreign => Err(OpenError::Foreign(path.to_owned())),
    }
}

/// Settings and migrations; answers whether a write-ahead log is used.
fn prepare_writer(connection: &mut Connection, version: usize, sync: Sync) -> rusqlite::Result<bool> {
    if version == 0 {
        connection.execute_batch(NEW_FILE)?;
    }
    connection.execute_batch(WRITER)?;
    connection.execute_batch(sync.pragma())?;
    connection.execute_batch(EVERY_CONNECTION)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    schema::migrate(connection, version)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    Ok(mode == "wal")
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(READER)?;
    connection.execute_batch(EVERY_CONNECTION)?;
    Ok(connection)
}

/// SQLite makes it an error of its own when a file is no database at all.
fn database_error(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => OpenError::Foreign(path.to_owned()),
        _ => OpenError::Database { path: path.to_owned(), source },
    }
}

fn share(connection: Connection) -> SharedConnection {
    Arc::new(Mutex::new(connection))
}

/// The connection, for this thread. A thread that panicked has rolled its transaction back while unwinding.
pub(super) fn lock(connection: &SharedConnection) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a connection waits for another's lock; it stands in the pragmas too.
pub(super) const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The size to which the write-ahead log is cut when it was larger, in bytes; it stands in [`WRITER`] too.
pub(super) const WAL_BYTES: u64 = 4 * 1024 * 1024;

/// All statements of the writer stay prepared.
const STATEMENTS: usize = 48;

/// - `page_size`: the largest message with its row fits one page, which makes writing it 1.5 times as fast as in 4 KiB
///   pages.
pub(super) const NEW_FILE: &str = "PRAGMA page_size = 16384;";

/// - `auto_vacuum`: pages that are free after a commit are given back. A file keeps them for what comes next instead, which
///   saves moving others into their place.
const NEW_IN_MEMORY: &str = "PRAGMA auto_vacuum = FULL;";

/// - `journal_mode`: a write-ahead log lets readers read while the writer writes, and costs one sync a commit.
/// - `wal_autocheckpoint`: in pages: copy the log into the file whenever it has 4 MiB.
/// - `journal_size_limit`: in bytes: cut the log's file back to 4 MiB when a burst has made it larger.
/// - `cache_size`: in KiB, the most memory for pages. The system's own page cache does the rest.
/// - `secure_delete`: overwrites what is deleted where the page is written anyway: secrets of deleted queues do not stay.
/// - `foreign_keys`: there are none; off saves looking for them.
const WRITER: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA wal_autocheckpoint = 256;
    PRAGMA journal_size_limit = 4194304;
    PRAGMA cache_size = -2048;
    PRAGMA secure_delete = FAST;
    PRAGMA foreign_keys = OFF;
";

/// - `cache_size`: in KiB. Readers look up single rows: the inner pages of the indexes are all they come back to.
/// - `query_only`: nothing here writes.
const READER: &str = "
    PRAGMA cache_size = -512;
    PRAGMA query_only = ON;
";

/// - `mmap_size`: a mapped file counts as the process's memory, and an error of the disk would kill the process.
/// - `temp_store`: no files beside ours.
/// - `busy_timeout`: in ms. Only an operator's own tool on the file, or a checkpoint, can make a connection wait.
const EVERY_CONNECTION: &str = "
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA busy_timeout = 5000;
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_dropped_is_free_also_while_a_new_process_has_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let lock = StoreLock::take(&path).unwrap();
        let of_a_child = lock.0.try_clone().unwrap();
        assert!(matches!(StoreLock::take(&path), Err(OpenError::InUse(_))));
        drop(lock);
        StoreLock::take(&path).unwrap();
        drop(of_a_child);
    }
}
