//! Rows of the tables: which columns, in which order, and our records as their values.

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::{CertificateChain, ColumnError, KeyList};
use crate::protocol::command::{LinkData, MessageFlags};
use crate::protocol::{MessageId, QueueId};
use crate::store::record::{Message, MessageContent, NewQueue, Notifier, QueueRecord, ServiceRecord, Timestamp};

/// The columns of a queue in the order in which [`QueueRow`] gives and [`queue_record`] takes them; the last two, which
/// hold the link's data, are not read with a record.
pub const QUEUE_COLUMNS: &str = "recipient_id, recipient_keys, rcv_dh_secret, sender_id, sender_key, queue_mode, \
     notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id, status, updated_at, link_id, rcv_service_id, \
     fixed_data, user_data";

/// The types of [`QUEUE_COLUMNS`], for a binary `COPY`.
pub const QUEUE_TYPES: [Type; 16] = [
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::TEXT,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::TEXT,
    Type::INT8,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
    Type::BYTEA,
];

/// A queue as the values of [`QUEUE_COLUMNS`].
pub struct QueueRow<'a>([Box<dyn ToSql + Sync + Send + 'a>; 16]);

impl<'a> QueueRow<'a> {
    /// The row of a queue.
    pub fn new(new: &'a NewQueue) -> Self {
        let (record, notifier, data) = (&new.record, new.record.notifier.as_ref(), new.link_data.as_ref());
        QueueRow([
            Box::new(&record.recipient_id),
            Box::new(KeyList(record.recipient_keys.clone())),
            Box::new(&record.dh_secret),
            Box::new(&record.sender_id),
            Box::new(&record.sender_key),
            Box::new(&record.mode),
            Box::new(notifier.map(|notifier| &notifier.id)),
            Box::new(notifier.map(|notifier| &notifier.key)),
            Box::new(notifier.map(|notifier| &notifier.dh_secret)),
            Box::new(notifier.and_then(|notifier| notifier.service.as_ref())),
            Box::new(&record.status),
            Box::new(&record.updated_at),
            Box::new(&record.link_id),
            Box::new(&record.recipient_service),
            Box::new(data.map(|data| &data.fixed[..])),
            Box::new(data.map(|data| &data.user[..])),
        ])
    }

    /// Its values.
    pub fn values(&self) -> [&(dyn ToSql + Sync); 16] {
        self.0.each_ref().map(|value| &**value as &(dyn ToSql + Sync))
    }

    /// Its values, each of its own.
    pub fn into_values(self) -> Vec<Box<dyn ToSql + Sync + Send + 'a>> {
        self.0.into()
    }
}

/// The columns of a message in the order in which [`MessageRow`] gives them; its number, `message_id`, is the database's.
pub const MESSAGE_COLUMNS: &str = "recipient_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body";

/// The types of [`MESSAGE_COLUMNS`], for a binary `COPY`.
pub const MESSAGE_TYPES: [Type; 6] = [Type::BYTEA, Type::BYTEA, Type::INT8, Type::BOOL, Type::BOOL, Type::BYTEA];

/// A message as the values of [`MESSAGE_COLUMNS`].
pub struct MessageRow<'a> {
    queue: &'a QueueId,
    id: &'a MessageId,
    seconds: &'a i64,
    quota: bool,
    notification: bool,
    body: &'a [u8],
}

impl<'a> MessageRow<'a> {
    /// The row of a message in the queue with this recipient ID.
    pub fn new(queue: &'a QueueId, message: &'a Message) -> Self {
        let (quota, notification, body) = match &message.content {
            MessageContent::Sent { flags, body } => (false, flags.notification, &body[..]),
            MessageContent::Quota => (true, false, &[][..]),
        };
        MessageRow { queue, id: &message.id, seconds: &message.timestamp.seconds, quota, notification, body }
    }

    /// Its values.
    pub fn values(&self) -> [&(dyn ToSql + Sync); 6] {
        [self.queue, self.id, self.seconds, &self.quota, &self.notification, &self.body]
    }
}

/// The columns of a service in the order in which [`ServiceRow`] gives and [`service_record`] takes them.
pub const SERVICE_COLUMNS: &str = "service_id, service_role, service_cert, service_cert_hash, created_at";

/// The types of [`SERVICE_COLUMNS`], for a binary `COPY`.
pub const SERVICE_TYPES: [Type; 5] = [Type::BYTEA, Type::TEXT, Type::BYTEA, Type::BYTEA, Type::INT8];

/// A service as the values of [`SERVICE_COLUMNS`].
pub struct ServiceRow<'a> {
    service: &'a ServiceRecord,
    chain: CertificateChain,
    hash: &'a [u8],
}

impl<'a> ServiceRow<'a> {
    /// The row of a service.
    pub fn new(service: &'a ServiceRecord) -> Self {
        ServiceRow {
            service,
            chain: CertificateChain(service.certificate_chain.clone()),
            hash: &service.certificate_hash,
        }
    }

    /// Its values.
    pub fn values(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.service.id, &self.service.role, &self.chain, &self.hash, &self.service.created_at]
    }
}

/// A service as the parameters of a statement, in the order of [`SERVICE_COLUMNS`].
pub fn service_params(service: &ServiceRecord) -> Vec<Box<dyn ToSql + Sync + Send>> {
    vec![
        Box::new(service.id),
        Box::new(service.role),
        Box::new(CertificateChain(service.certificate_chain.clone())),
        Box::new(service.certificate_hash.to_vec()),
        Box::new(service.created_at),
    ]
}

/// The columns of a row, taken one after the other.
pub struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    /// Those from `first` on.
    pub fn from(row: &'a Row, first: usize) -> Self {
        Columns { row, next: first }
    }

    /// The next column.
    ///
    /// # Errors
    /// It cannot be read as a `T`.
    pub fn take<T: FromSql<'a>>(&mut self) -> Result<T, ColumnError> {
        let value = self.peek()?;
        self.next += 1;
        Ok(value)
    }

    /// The next column, which is the next again.
    ///
    /// # Errors
    /// It cannot be read as a `T`.
    pub fn peek<T: FromSql<'a>>(&self) -> Result<T, ColumnError> {
        let index = self.next;
        self.row.try_get(index).map_err(|_| {
            let name = self.row.columns().get(index).map(tokio_postgres::Column::name);
            ColumnError(name.unwrap_or("that was asked for").to_owned())
        })
    }
}

/// The record in the next 14 columns, the first of [`QUEUE_COLUMNS`]. The other server takes link IDs of any length, and even
/// an empty one; by one that has not ours nobody can find the queue, which is taken for one without a link.
///
/// # Errors
/// A column holds what is no value of it.
pub fn queue_record(columns: &mut Columns<'_>) -> Result<QueueRecord, ColumnError> {
    Ok(QueueRecord {
        recipient_id: columns.take()?,
        recipient_keys: columns.take::<KeyList>()?.0,
        dh_secret: columns.take()?,
        sender_id: columns.take()?,
        sender_key: columns.take()?,
        mode: columns.take()?,
        notifier: notifier(columns)?,
        status: columns.take()?,
        updated_at: columns.take()?,
        link_id: columns.take::<Option<&[u8]>>()?.and_then(QueueId::from_slice),
        recipient_service: columns.take()?,
    })
}

/// The notifier in the next four columns: the other server takes it for none unless ID, key and secret are all there.
///
/// # Errors
/// A column holds what is no value of it.
pub fn notifier(columns: &mut Columns<'_>) -> Result<Option<Notifier>, ColumnError> {
    let (id, key, dh_secret) = (columns.take()?, columns.take()?, columns.take()?);
    let service = columns.take()?;
    let (Some(id), Some(key), Some(dh_secret)) = (id, key, dh_secret) else { return Ok(None) };
    Ok(Some(Notifier { id, key, dh_secret, service }))
}

/// The data of a link in the next two columns. The other server takes an absent part for an empty one.
///
/// # Errors
/// A column holds what is no value of it.
pub fn link_data(columns: &mut Columns<'_>) -> Result<LinkData, ColumnError> {
    let part = |part: Option<&[u8]>| part.map_or_else(Bytes::new, Bytes::copy_from_slice);
    Ok(LinkData { fixed: part(columns.take()?), user: part(columns.take()?) })
}

/// The message in the next six columns: `message_id` and those of [`MESSAGE_COLUMNS`] without the queue.
///
/// # Errors
/// A column holds what is no value of it.
pub fn message(columns: &mut Columns<'_>) -> Result<Message, ColumnError> {
    let sequence = columns.take::<i64>()?.unsigned_abs();
    let (id, seconds, quota, notification) = (columns.take()?, columns.take()?, columns.take()?, columns.take()?);
    let body: &[u8] = columns.take()?;
    let content = match quota {
        true => MessageContent::Quota,
        false => MessageContent::Sent { flags: MessageFlags { notification }, body: Bytes::copy_from_slice(body) },
    };
    Ok(Message { id, sequence, timestamp: Timestamp { seconds, nanoseconds: 0 }, content })
}

/// The service in the next five columns, those of [`SERVICE_COLUMNS`].
///
/// # Errors
/// A column holds what is no value of it.
pub fn service_record(columns: &mut Columns<'_>) -> Result<ServiceRecord, ColumnError> {
    Ok(ServiceRecord {
        id: columns.take()?,
        role: columns.take()?,
        certificate_chain: columns.take::<CertificateChain>()?.0,
        certificate_hash: Bytes::copy_from_slice(columns.take()?),
        created_at: columns.take()?,
    })
}
