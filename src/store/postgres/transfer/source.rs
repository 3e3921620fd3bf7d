//! Reading all of a schema, as it was at one moment, page by page.

use std::collections::VecDeque;
use std::pin::Pin;

use futures_util::TryStreamExt;
use tokio_postgres::{Row, RowStream};

use super::session::Session;
use crate::protocol::QueueId;
use crate::store::postgres::columns::{self, Columns};
use crate::store::postgres::connect::Connector;
use crate::store::record::NewQueue;
use crate::store::transfer::{Damage, Item, Source, TransferError};

/// Queues read at once; some hundred bytes each, or 16 KiB with a link.
const QUEUES: i64 = 512;

/// Rows of messages taken from the stream at once, up to 16 KiB each.
const MESSAGES: usize = 64;

/// Services, and queues that are not deleted in the order of their recipient IDs, each followed by its messages.
pub struct PostgresSource {
    session: Session,
    services_read: bool,
    services: VecDeque<Row>,
    /// The recipient ID of the last queue read; empty before the first.
    last: Vec<u8>,
    queues: VecDeque<Box<NewQueue>>,
    /// The queue whose messages come.
    open: Option<QueueId>,
    /// The messages of the queues of this page, in the order of the queues.
    stream: Option<Pin<Box<RowStream>>>,
    messages: VecDeque<Row>,
    /// Queues and messages: given, and all.
    progress: (u64, u64),
}

impl PostgresSource {
    /// Connects, and from then on reads what is there at this moment.
    ///
    /// # Errors
    /// The database cannot be reached, a server runs on it, or it has no tables of this version. Each says what to do.
    pub fn open(connector: &Connector) -> Result<Self, TransferError> {
        let mut session = Session::open(connector)?;
        session.require_schema()?;
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let sql = "SELECT (SELECT count(*) FROM msg_queues WHERE deleted_at IS NULL) + (SELECT count(*) FROM messages)";
        let all: i64 = session.wait(session.client().query_one(sql, &[]))?.get(0);
        Ok(PostgresSource {
            session,
            services_read: false,
            services: VecDeque::new(),
            last: Vec::new(),
            queues: VecDeque::new(),
            open: None,
            stream: None,
            messages: VecDeque::new(),
            progress: (0, all.unsigned_abs()),
        })
    }

    /// Goes on after this queue: its messages and everything before were moved already. To be called before anything is
    /// read; services are read all the same.
    ///
    /// # Errors
    /// Those of the database.
    pub fn skip_to(&mut self, queue: &QueueId) -> Result<(), TransferError> {
        let sql = "SELECT (SELECT count(*) FROM msg_queues WHERE deleted_at IS NULL AND recipient_id <= $1) + \
                   (SELECT count(*) FROM messages WHERE recipient_id <= $1)";
        let skipped: i64 = self.session.wait(self.session.client().query_one(sql, &[queue]))?.get(0);
        self.progress.0 = skipped.unsigned_abs();
        self.last = queue.0.to_vec();
        Ok(())
    }

    /// Says which content this is: another after every change.
    ///
    /// # Errors
    /// Those of the database.
    pub fn mark(&self) -> Result<String, TransferError> {
        // PostgreSQL counts what is done to each table; which tables they are, their numbers say.
        let sql = "SELECT concat_ws(' ', 'postgres', q, pg_stat_get_tuples_inserted(q), pg_stat_get_tuples_updated(q), \
                   pg_stat_get_tuples_deleted(q), m, pg_stat_get_tuples_inserted(m), pg_stat_get_tuples_deleted(m)) \
                   FROM (SELECT 'msg_queues'::regclass::oid AS q, 'messages'::regclass::oid AS m) AS tables";
        Ok(self.session.wait(self.session.client().query_one(sql, &[]))?.get(0))
    }

    fn read_services(&mut self) -> Result<(), TransferError> {
        // Few, and of some KiB each: one a client service that has ever been here.
        let sql = format!("SELECT {} FROM services ORDER BY service_id", columns::SERVICE_COLUMNS);
        self.services = self.session.wait(self.session.client().query(&sql, &[]))?.into();
        self.services_read = true;
        Ok(())
    }

    /// Reads the next page of queues and begins to read their messages; answers whether there was one.
    fn read_queues(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<bool, TransferError> {
        let sql = format!(
            "SELECT {} FROM msg_queues WHERE deleted_at IS NULL AND recipient_id > $1 ORDER BY recipient_id LIMIT $2",
            columns::QUEUE_COLUMNS
        );
        let client = self.session.client();
        let rows = self.session.wait(client.query(&sql, &[&self.last, &QUEUES]))?;
        let Some(last) = rows.last() else { return Ok(false) };
        let (after, last): (_, Vec<u8>) = (std::mem::take(&mut self.last), last.get(0));
        let sql = "SELECT recipient_id, message_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body FROM messages \
                   WHERE recipient_id > $1 AND recipient_id <= $2 ORDER BY recipient_id, message_id";
        self.stream = Some(Box::pin(self.session.wait(client.query_raw(sql, [&after, &last]))?));
        self.last = last;
        for row in &rows {
            match queue(row) {
                Ok(queue) => {
                    if queue.record.link_id.is_none() && has_link(row) {
                        damaged(damage("msg_queues", UNUSABLE_LINK.to_owned()));
                    }
                    self.queues.push_back(Box::new(queue));
                }
                Err(error) => damaged(damage("msg_queues", format!("{error}; left out with its messages"))),
            }
        }
        Ok(true)
    }

    fn read_messages(&mut self) -> Result<(), TransferError> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let messages = &mut self.messages;
        let more = self.session.wait(async {
            while messages.len() < MESSAGES {
                match stream.try_next().await? {
                    Some(row) => messages.push_back(row),
                    None => return Ok(false),
                }
            }
            Ok(true)
        })?;
        if !more {
            self.stream = None;
        }
        Ok(())
    }

    /// The next message of the open queue. Rows before it are of queues that are deleted or could not be read.
    fn next_message(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        let Some(queue) = self.open else { return Ok(None) };
        loop {
            if self.messages.is_empty() {
                self.read_messages()?;
            }
            let Some(row) = self.messages.front() else { return Ok(None) };
            let id: &[u8] = row.get(0);
            if id > &queue.0[..] {
                return Ok(None);
            }
            let read = (id == queue.0).then(|| columns::message(&mut Columns::from(row, 1)));
            self.messages.pop_front();
            match read {
                Some(Ok(message)) => return Ok(Some(Item::Message(queue, Box::new(message)))),
                Some(Err(error)) => damaged(damage("messages", error.to_string())),
                None => {}
            }
        }
    }

    fn next_service(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        if !self.services_read {
            self.read_services()?;
        }
        while let Some(row) = self.services.pop_front() {
            match columns::service_record(&mut Columns::from(&row, 0)) {
                Ok(service) => return Ok(Some(Item::Service(Box::new(service)))),
                Err(error) => damaged(damage("services", error.to_string())),
            }
        }
        Ok(None)
    }

    fn next_queue(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        // Of a page in which no queue could be read, nothing comes; the next one may be readable.
        while self.queues.is_empty() {
            self.messages.clear();
            if !self.read_queues(damaged)? {
                return Ok(None);
            }
        }
        let queue = self.queues.pop_front();
        self.open = queue.as_ref().map(|queue| queue.record.recipient_id);
        Ok(queue.map(Item::Queue))
    }
}

impl Source for PostgresSource {
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        if let Some(service) = self.next_service(damaged)? {
            return Ok(Some(service));
        }
        let item = match self.next_message(damaged)? {
            Some(message) => Some(message),
            None => self.next_queue(damaged)?,
        };
        self.progress.0 += u64::from(item.is_some());
        Ok(item)
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some(self.progress)
    }
}

fn queue(row: &Row) -> Result<NewQueue, columns::ColumnError> {
    let mut columns = Columns::from(row, 0);
    let record = columns::queue_record(&mut columns)?;
    let data = columns::link_data(&mut columns)?;
    let link_data = record.link_id.map(|_| data);
    Ok(NewQueue { record, link_data })
}

const UNUSABLE_LINK: &str = "a link's ID is not 24 bytes long; the queue is taken without its link";

/// Whether a link stands in a queue's row.
fn has_link(row: &Row) -> bool {
    row.try_get::<_, Option<&[u8]>>("link_id").is_ok_and(|id| id.is_some())
}

/// Damage of a row of this table.
fn damage(table: &str, reason: String) -> Damage {
    Damage { file: table.into(), line: 0, reason }
}
