//! Writing into a schema.

use tokio_postgres::Client;

use super::page::Page;
use super::postponed::Postponed;
use super::session::{Session, failed};
use crate::protocol::QueueId;
use crate::store::postgres::columns::{self, ServiceRow};
use crate::store::postgres::connect::Connector;
use crate::store::record::ServiceRecord;
use crate::store::transfer::{Item, Put, Rejected, Sink, TransferError};

/// A schema that is being filled. What is put is written in pages, so that [`Put::Stored`] may be taken back by
/// [`Sink::settle`]. Dropped before [`Sink::finish`], it leaves nothing, or a schema that is marked as unfinished.
pub struct PostgresSink {
    session: Session,
    page: Page,
    rejected: Rejected,
    kind: Kind,
    postponed: Postponed,
    /// Whether a page was written in this transaction.
    pub(super) uncommitted: bool,
    /// Pages written in all.
    pages: u32,
}

/// How a sink came about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All in one transaction, the schema's creation too.
    AllAtOnce,
    /// A transaction a page: can be gone on with.
    Resumable,
}

/// The planner, of our statements and of the server's, knows nothing about a table that was just filled.
const ANALYZE: &str = "ANALYZE services, msg_queues, messages";

/// After so many pages it is told how large the tables have become.
const ANALYZED: [u32; 4] = [1, 10, 100, 1_000];

/// What is not good for us here: to look through the whole table for each page, as the planner would, who takes a table
/// that is being filled for small.
const PLAN: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";

/// For what is done to whole tables.
const PLAN_FREELY: &str = "RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin";

/// The columns of a queue that follow from its messages, as the other server makes them after an import; then the number
/// of queues of each service.
const COUNT: &str = "
    UPDATE msg_queues SET msg_queue_size = 0, msg_can_write = TRUE, msg_queue_expire = FALSE
    WHERE (msg_queue_size <> 0 OR NOT msg_can_write OR msg_queue_expire)
        AND NOT EXISTS (SELECT FROM messages WHERE messages.recipient_id = msg_queues.recipient_id);
    UPDATE msg_queues
    SET msg_queue_size = held.size, msg_can_write = held.markers = 0, msg_queue_expire = held.size > held.markers
    FROM (
        SELECT recipient_id, count(*) AS size, count(*) FILTER (WHERE msg_quota) AS markers
        FROM messages GROUP BY recipient_id
    ) AS held
    WHERE msg_queues.recipient_id = held.recipient_id;
    SELECT update_all_aggregates();
";

impl PostgresSink {
    /// Begins a new schema. It comes into being, with everything in it, when the sink is finished.
    ///
    /// # Errors
    /// The schema exists, or the database cannot be used. Each says what to do.
    pub fn create(connector: &Connector) -> Result<Self, TransferError> {
        let session = Session::open(connector)?;
        session.begin_new_schema()?;
        let mut sink = Self::new(session, Kind::AllAtOnce)?;
        // What they count of each service is counted in the end.
        sink.session.run("ALTER TABLE msg_queues DISABLE TRIGGER USER")?;
        sink.postpone()?;
        Ok(sink)
    }

    /// Begins to put messages into a schema that has the queues. If there are messages, they are replaced.
    ///
    /// # Errors
    /// The schema does not exist or is not whole, or the database cannot be used. Each says what to do.
    pub fn messages(connector: &Connector) -> Result<Self, TransferError> {
        let mut session = Session::open(connector)?;
        session.require_schema()?;
        session.run("BEGIN; TRUNCATE messages")?;
        let mut sink = Self::new(session, Kind::AllAtOnce)?;
        sink.postpone()?;
        Ok(sink)
    }

    fn postpone(&mut self) -> Result<(), TransferError> {
        let PostgresSink { session, postponed, .. } = self;
        session.wait(postponed.while_filling(session.client()))
    }

    /// Goes on with the transfer of the source with this mark that was interrupted, or begins it in a new schema; answers
    /// the last queue that is there with all its messages.
    ///
    /// Queues have to come in the order of their recipient IDs, each followed by its messages.
    ///
    /// # Errors
    /// The schema exists, and is not an unfinished transfer of this source; the database cannot be used.
    pub fn resume(connector: &Connector, mark: &str) -> Result<(Self, Option<QueueId>), TransferError> {
        let session = Session::open(connector)?;
        let last = match session.unfinished()? {
            Some(found) if found == mark => last_queue(&session)?,
            Some(_) => return Err(another_transfer(&session)),
            None => {
                session.begin_new_schema()?;
                session.mark_unfinished(mark)?;
                session.run("COMMIT")?;
                None
            }
        };
        session.run("BEGIN")?;
        Ok((Self::new(session, Kind::Resumable)?, last))
    }

    fn new(session: Session, kind: Kind) -> Result<Self, TransferError> {
        session.run(PLAN)?;
        Ok(PostgresSink {
            session,
            page: Page::default(),
            rejected: Rejected::default(),
            kind,
            postponed: Postponed::default(),
            uncommitted: false,
            pages: 0,
        })
    }

    /// Services are few: each is written at once.
    fn put_service(&self, service: &ServiceRecord) -> Result<Put, TransferError> {
        self.session.wait(insert_service(self.session.client(), service))
    }

    pub(super) fn write_page(&mut self) -> Result<(), TransferError> {
        let PostgresSink { session, page, .. } = self;
        let rejected = session.wait(page.write(session.client()))?;
        self.rejected.duplicate_queues += rejected.duplicate_queues;
        self.rejected.messages_without_queue += rejected.messages_without_queue;
        self.uncommitted = true;
        self.pages += 1;
        if ANALYZED.contains(&self.pages) {
            self.session.run(ANALYZE)?;
        }
        Ok(())
    }

    /// Where transfers are resumed, a queue has to be there with all its messages: commits before the next one.
    fn commit_before_queue(&mut self) -> Result<(), TransferError> {
        if self.kind == Kind::Resumable && (self.uncommitted || self.page.is_full()) {
            self.write_page()?;
            self.session.run("COMMIT; BEGIN")?;
            self.uncommitted = false;
        }
        Ok(())
    }
}

impl Sink for PostgresSink {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        match item {
            Item::Service(service) => return self.put_service(&service),
            Item::Queue(queue) => {
                self.commit_before_queue()?;
                self.page.queue(*queue);
            }
            Item::Message(queue, message) => self.page.message(queue, message),
        }
        if self.page.is_full() {
            self.write_page()?;
        }
        Ok(Put::Stored)
    }

    fn settle(&mut self) -> Result<Rejected, TransferError> {
        self.write_page()?;
        Ok(std::mem::take(&mut self.rejected))
    }

    fn finish(mut self: Box<Self>) -> Result<(), TransferError> {
        self.write_page()?;
        let PostgresSink { session, mut postponed, .. } = *self;
        session.run(PLAN_FREELY)?;
        session.run(ANALYZE)?;
        session.wait(postponed.while_counting(session.client()))?;
        session.run(COUNT)?;
        session.wait(postponed.restore(session.client()))?;
        session.run("ALTER TABLE msg_queues ENABLE TRIGGER USER")?;
        session.mark_finished()?;
        session.run("COMMIT")?;
        session.run(ANALYZE)
    }
}

async fn insert_service(client: &Client, service: &ServiceRecord) -> Result<Put, tokio_postgres::Error> {
    let row = ServiceRow::new(service);
    let values = row.values();
    let columns = columns::SERVICE_COLUMNS;
    let sql = format!("INSERT INTO services ({columns}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING");
    if client.execute(&sql, &values).await? > 0 {
        return Ok(Put::Stored);
    }
    let sql = format!("SELECT FROM services WHERE ({columns}) = ($1, $2, $3, $4, $5)");
    let same = client.query_opt(&sql, &values).await?.is_some();
    Ok(if same { Put::Present } else { Put::Duplicate })
}

fn last_queue(session: &Session) -> Result<Option<QueueId>, TransferError> {
    let sql = "SELECT recipient_id FROM msg_queues ORDER BY recipient_id DESC LIMIT 1";
    let row = session.wait(session.client().query_opt(sql, &[]))?;
    row.map(|row| row.try_get(0)).transpose().map_err(failed)
}

fn another_transfer(session: &Session) -> TransferError {
    let schema = session.schema();
    TransferError::Store(format!(
        "the schema \"{schema}\" is incomplete: an import into it was interrupted, and it was of another content.\n\
         Delete it to begin anew: `smp-server database delete` says how."
    ))
}
