//! Writing a new store.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{failed, take_lock};
use crate::protocol::QueueId;
use crate::store::OpOutcome;
use crate::store::record::{Message, MessageContent, ServiceRecord};
use crate::store::sqlite::queues::{self, QueueRow};
use crate::store::sqlite::{StoreLock, columns, open, schema, services};
use crate::store::transfer::{Item, Put, Sink, TransferError, file};

/// Items in a transaction, and bytes of bodies.
const TRANSACTION: (u32, usize) = (20_000, 32 * 1024 * 1024);

/// What the file is called until it is whole.
const SUFFIX: &str = ".import";

/// SQLite's files beside a database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// A new store that is being filled.
///
/// Dropped before [`Sink::finish`], it leaves a file that no server looks at, and that the next transfer goes on with or
/// deletes.
pub struct SqliteSink {
    connection: Connection,
    /// The store that is to be.
    path: PathBuf,
    /// The file until then.
    import: PathBuf,
    resumable: bool,
    /// The queue of the last message, as most messages follow one of the same queue.
    queue: Option<(QueueId, QueueRow)>,
    pub(super) items: u32,
    bytes: usize,
    // After the connection.
    _lock: StoreLock,
}

impl SqliteSink {
    /// Begins a new store at `path`.
    ///
    /// # Errors
    /// There is a store, or the file cannot be made.
    pub fn create(path: &Path) -> Result<Self, TransferError> {
        let lock = lock_absent(path)?;
        Self::begin(path, lock, None)
    }

    /// Goes on with the transfer of the source with this mark that was interrupted, or begins it; answers the last queue
    /// that is there with all its messages.
    ///
    /// Queues have to come in the order of their recipient IDs, each followed by its messages.
    ///
    /// # Errors
    /// There is a store, or the file cannot be made.
    pub fn resume(path: &Path, mark: &str) -> Result<(Self, Option<QueueId>), TransferError> {
        let lock = lock_absent(path)?;
        let import = file::with_suffix(path, SUFFIX);
        if import.exists()
            && let Ok(connection) = open_again(&import, mark)
        {
            let last = last_queue(&connection).map_err(failed(&import))?;
            return Ok((Self::new(connection, path, lock, true), last));
        }
        Ok((Self::begin(path, lock, Some(mark))?, None))
    }

    fn begin(path: &Path, lock: StoreLock, mark: Option<&str>) -> Result<Self, TransferError> {
        let import = file::with_suffix(path, SUFFIX);
        file::remove(&import)?;
        remove_companions(&import)?;
        open::private_file(&import).map_err(TransferError::file(&import))?;
        let connection = open_new(&import, mark).map_err(failed(&import))?;
        Ok(Self::new(connection, path, lock, mark.is_some()))
    }

    fn new(connection: Connection, path: &Path, lock: StoreLock, resumable: bool) -> Self {
        let import = file::with_suffix(path, SUFFIX);
        let path = path.to_owned();
        SqliteSink { connection, path, import, resumable, queue: None, items: 0, bytes: 0, _lock: lock }
    }

    fn put_service(&self, service: &ServiceRecord) -> rusqlite::Result<Put> {
        if services::insert(&self.connection, service, "INSERT OR IGNORE")? {
            return Ok(Put::Stored);
        }
        let chain = columns::certificate_chain(&service.certificate_chain);
        let values = params![service.id, service.role, chain, &service.certificate_hash[..], service.created_at];
        let same = self
            .connection
            .prepare_cached(
                "SELECT 1 FROM services WHERE service_id = ?1 AND role = ?2 AND certificate_chain = ?3 \
                 AND certificate_hash = ?4 AND created_at = ?5",
            )?
            .exists(values)?;
        Ok(if same { Put::Present } else { Put::Duplicate })
    }

    fn put_message(&mut self, queue: QueueId, message: &Message) -> rusqlite::Result<Put> {
        let row = match self.queue {
            Some((last, row)) if last == queue => row,
            _ => match queues::find(&self.connection, &queue)? {
                Some((row, _)) => row,
                None => return Ok(Put::NoQueue),
            },
        };
        self.queue = Some((queue, row));
        let (marker, notification, body): (_, _, &[u8]) = match &message.content {
            MessageContent::Sent { flags, body } => (false, flags.notification, body),
            MessageContent::Quota => (true, false, &[]),
        };
        self.bytes += body.len();
        self.connection
            .prepare_cached(
                "INSERT INTO messages (queue, timestamp, marker, notification, message_id, body) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![row, message.timestamp.seconds, marker, notification, message.id, body])?;
        Ok(Put::Stored)
    }

    fn commit_if_full(&mut self, next: &Item) -> rusqlite::Result<()> {
        self.items += 1;
        // Where a transfer is resumed, a queue has to be there with all its messages.
        let may = !self.resumable || matches!(next, Item::Queue(_));
        if !may || (self.items < TRANSACTION.0 && self.bytes < TRANSACTION.1) {
            return Ok(());
        }
        (self.items, self.bytes) = (0, 0);
        self.connection.execute_batch("COMMIT; BEGIN")
    }
}

impl Sink for SqliteSink {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        self.commit_if_full(&item).map_err(failed(&self.import))?;
        let put = match item {
            Item::Service(service) => self.put_service(&service),
            Item::Message(queue, message) => self.put_message(queue, &message),
            Item::Queue(new) => match queues::create(&self.connection, &new) {
                Ok(OpOutcome::Done) => Ok(Put::Stored),
                Ok(OpOutcome::Conflict) => {
                    return Err(TransferError::Store("a queue without keys cannot be stored".to_owned()));
                }
                Ok(_) => Ok(Put::Duplicate),
                Err(error) => Err(error),
            },
        };
        put.map_err(failed(&self.import))
    }

    fn finish(self: Box<Self>) -> Result<(), TransferError> {
        let SqliteSink { connection, path, import, _lock, .. } = *self;
        // A queue may have come before its service.
        services::recount(&connection).map_err(failed(&import))?;
        connection
            .execute_batch("DROP TABLE IF EXISTS transfer; COMMIT; PRAGMA journal_mode = DELETE")
            .map_err(failed(&import))?;
        connection.close().map_err(|(_, error)| failed(&import)(error))?;
        file::sync(&import)?;
        // The log of a store that was deleted would be taken for this one's.
        remove_companions(&path)?;
        file::rename(&import, &path)
    }
}

/// Takes the lock of a store that must not be there.
fn lock_absent(path: &Path) -> Result<StoreLock, TransferError> {
    let lock = take_lock(path)?;
    if file::is_present(path) {
        return Err(TransferError::Store(format!(
            "{} exists already.\nMove it away if its queues and messages are not needed.",
            path.display()
        )));
    }
    Ok(lock)
}

fn remove_companions(path: &Path) -> Result<(), TransferError> {
    COMPANIONS.iter().try_for_each(|suffix| file::remove(&file::with_suffix(path, suffix)))
}

fn open_file(import: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(import, flags)
}

fn open_new(import: &Path, mark: Option<&str>) -> rusqlite::Result<Connection> {
    let mut connection = open_file(import)?;
    connection.execute_batch(open::NEW_FILE)?;
    connection.execute_batch(if mark.is_some() { RESUMABLE } else { NOT_RESUMABLE })?;
    connection.execute_batch(IMPORTING)?;
    schema::migrate(&mut connection, 0)?;
    connection.execute_batch("BEGIN")?;
    if let Some(mark) = mark {
        connection.execute_batch("CREATE TABLE transfer (mark TEXT)")?;
        connection.execute("INSERT INTO transfer VALUES (?1)", [this_run(mark)])?;
        connection.execute_batch("COMMIT; BEGIN")?;
    }
    Ok(connection)
}

/// Opens the file of an interrupted transfer, if it is one of the source with this mark.
fn open_again(import: &Path, mark: &str) -> rusqlite::Result<Connection> {
    let connection = open_file(import)?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found: Option<String> = connection.query_row("SELECT mark FROM transfer", [], |row| row.get(0))?;
    let found = found.unwrap_or_default();
    if this_run(mark).as_ref() != Some(&found) || version as usize != schema::VERSION {
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    connection.execute_batch(RESUMABLE)?;
    connection.execute_batch(IMPORTING)?;
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

/// The mark together with this run of the system, if that can be known. Nothing waits for the disk until the end, so what
/// a power cut has left may be damaged, and is not gone on with.
fn this_run(mark: &str) -> Option<String> {
    let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{mark} {}", run.trim()))
}

fn last_queue(connection: &Connection) -> rusqlite::Result<Option<QueueId>> {
    let sql = "SELECT recipient_id FROM queues ORDER BY recipient_id DESC LIMIT 1";
    connection.query_row(sql, [], |row| row.get(0)).optional()
}

/// After a crash the file is deleted anyway.
const NOT_RESUMABLE: &str = "PRAGMA journal_mode = OFF;";

/// A transaction that the end of the process cuts off is rolled back. (After a power cut the file may be damaged: see
/// [`this_run`].)
const RESUMABLE: &str = "PRAGMA journal_mode = TRUNCATE;";

/// - `synchronous`: nothing waits for the disk but the end.
/// - `cache_size`: in KiB; enough for the inner pages of all indexes of millions of queues.
/// - `locking_mode`: nobody else looks at the file.
const IMPORTING: &str = "
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -98304;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA temp_store = MEMORY;
";
