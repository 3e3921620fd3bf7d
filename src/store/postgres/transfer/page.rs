//! What is written at once: two `COPY`s, of queues and of messages, and before each a question which of them cannot be
//! taken.
//!
//! The questions look each ID up by a subquery that has one row. As a join the planner would do them by looking through the
//! whole table, or a whole index, for each page.

use std::collections::HashSet;
use std::pin::pin;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

use crate::protocol::QueueId;
use crate::store::postgres::columns::{self, MessageRow, QueueRow};
use crate::store::record::{Message, MessageContent, NewQueue};
use crate::store::transfer::Rejected;

/// Items in a page, and bytes of bodies and link data.
const FULL: (usize, usize) = (2_000, 4 * 1024 * 1024);

/// Items that wait to be written.
#[derive(Default)]
pub struct Page {
    queues: Vec<NewQueue>,
    messages: Vec<(QueueId, Box<Message>)>,
    bytes: usize,
}

impl Page {
    /// Adds a queue.
    pub fn queue(&mut self, queue: NewQueue) {
        self.bytes += queue.link_data.as_ref().map_or(0, |data| data.fixed.len() + data.user.len());
        self.queues.push(queue);
    }

    /// Adds a message.
    pub fn message(&mut self, queue: QueueId, message: Box<Message>) {
        if let MessageContent::Sent { body, .. } = &message.content {
            self.bytes += body.len();
        }
        self.messages.push((queue, message));
    }

    /// Whether it should be written now.
    pub fn is_full(&self) -> bool {
        self.queues.len() + self.messages.len() >= FULL.0 || self.bytes >= FULL.1
    }

    /// Writes it in the current transaction and empties it; answers what was left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn write(&mut self, client: &Client) -> Result<Rejected, Error> {
        let mut rejected = Rejected::default();
        if !self.queues.is_empty() {
            let all = self.queues.len();
            let mut taken = Taken::read(client, &self.queues).await?;
            self.queues.retain(|queue| taken.take(queue));
            rejected.duplicate_queues = (all - self.queues.len()) as u64;
            self.copy_queues(client).await?;
        }
        if !self.messages.is_empty() {
            let all = self.messages.len();
            let unknown = unknown_queues(client, &self.messages).await?;
            self.messages.retain(|(queue, _)| !unknown.contains(queue));
            rejected.messages_without_queue = (all - self.messages.len()) as u64;
            self.copy_messages(client).await?;
        }
        *self = Page::default();
        Ok(rejected)
    }

    async fn copy_queues(&self, client: &Client) -> Result<(), Error> {
        let mut writer = pin!(copy(client, "msg_queues", columns::QUEUE_COLUMNS, &columns::QUEUE_TYPES).await?);
        for queue in &self.queues {
            writer.as_mut().write(&QueueRow::new(queue).values()).await?;
        }
        writer.finish().await.map(|_| ())
    }

    async fn copy_messages(&self, client: &Client) -> Result<(), Error> {
        let mut writer = pin!(copy(client, "messages", columns::MESSAGE_COLUMNS, &columns::MESSAGE_TYPES).await?);
        for (queue, message) in &self.messages {
            writer.as_mut().write(&MessageRow::new(queue, message).values()).await?;
        }
        writer.finish().await.map(|_| ())
    }
}

async fn copy(client: &Client, table: &str, columns: &str, types: &[Type]) -> Result<BinaryCopyInWriter, Error> {
    let sink = client.copy_in(&format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)")).await?;
    Ok(BinaryCopyInWriter::new(sink, types))
}

/// IDs that are taken, by role: recipient, sender, link, notifier.
struct Taken([HashSet<QueueId>; 4]);

/// The columns in the order of [`Taken`].
const ROLES: [&str; 4] = ["recipient_id", "sender_id", "link_id", "notifier_id"];

fn ids(queue: &NewQueue) -> [Option<QueueId>; 4] {
    let record = &queue.record;
    let notifier = record.notifier.as_ref().map(|notifier| notifier.id);
    [Some(record.recipient_id), Some(record.sender_id), record.link_id, notifier]
}

impl Taken {
    /// Those of the IDs of these queues that are in the table.
    async fn read(client: &Client, queues: &[NewQueue]) -> Result<Self, Error> {
        let mut asked = [const { Vec::new() }; 4];
        for queue in queues {
            asked.iter_mut().zip(ids(queue)).for_each(|(asked, id)| asked.extend(id));
        }
        let select = |(number, column): (usize, &&str)| {
            format!(
                "SELECT {number}, id FROM unnest(${}::bytea[]) AS id \
                 WHERE (SELECT TRUE FROM msg_queues WHERE {column} = id)",
                number + 1
            )
        };
        let sql = ROLES.iter().enumerate().map(select).collect::<Vec<_>>().join(" UNION ALL ");
        let values = asked.each_ref().map(|ids| ids as &(dyn ToSql + Sync));
        let mut taken = Taken(Default::default());
        for row in client.query(&sql, &values).await? {
            let role: i32 = row.try_get(0)?;
            if let Some(ids) = taken.0.get_mut(role as usize) {
                ids.insert(row.try_get(1)?);
            }
        }
        Ok(taken)
    }

    /// Whether all IDs of this queue are free; they are taken then.
    fn take(&mut self, queue: &NewQueue) -> bool {
        let ids = ids(queue);
        let pairs = || ids.into_iter().enumerate().filter_map(|(role, id)| Some((role, id?)));
        if pairs().any(|(role, id)| self.0[role].contains(&id)) {
            return false;
        }
        pairs().for_each(|(role, id)| {
            self.0[role].insert(id);
        });
        true
    }
}

/// The queues of these messages that are not there.
async fn unknown_queues(client: &Client, messages: &[(QueueId, Box<Message>)]) -> Result<HashSet<QueueId>, Error> {
    let queues: HashSet<QueueId> = messages.iter().map(|(queue, _)| *queue).collect();
    let queues: Vec<QueueId> = queues.into_iter().collect();
    let sql = "SELECT id FROM unnest($1::bytea[]) AS id \
               WHERE (SELECT deleted_at IS NULL FROM msg_queues WHERE recipient_id = id) IS NOT TRUE";
    client.query(sql, &[&queues]).await?.iter().map(|row| row.try_get(0)).collect()
}
