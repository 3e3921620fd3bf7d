//! How our values stand in the columns of the Haskell server's tables: `msg_queues`, `messages`, `services`.
//!
//! - IDs, secrets, link data and bodies are their own bytes; a key is its DER;
//! - `recipient_keys` and `service_cert` are lists: a byte with the number, then each element after its length (one byte
//!   for a key, two for a certificate);
//! - `status`, `queue_mode` and `service_role` are the texts that stand in store logs and handshakes;
//! - times are seconds since 1970, those of `updated_at`, `deleted_at` and `created_at` of the start of a day.
//!
//! The other server must be able to read every value that is written here. What cannot be read back is an error of the
//! store, never a value made up, and an error names the column, never what stands in it.

use bytes::{Bytes, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::protocol::command::{LinkData, MessageFlags, QueueMode};
use crate::protocol::encoding::{Encode, Reader, put_large, put_list, put_short};
use crate::protocol::error::BlockingInfo;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{
    Day, DhSecret, Message, MessageContent, NewQueue, Notifier, QueueRecord, QueueStatus, ServiceRecord, Timestamp,
};

/// What a column holds that it should not.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the column {0} of the database holds a value that this server cannot read")]
pub struct ColumnError(String);

type SqlError = Box<dyn std::error::Error + Sync + Send>;

/// Why a value is no value of its column; its place is told by who reads the row.
#[derive(Debug, thiserror::Error)]
#[error("malformed")]
struct Malformed;

/// Why a list does not fit into its column.
#[derive(Debug, thiserror::Error)]
#[error("more than 255 elements")]
struct TooLong;

const SECONDS_PER_DAY: i64 = 86_400;

/// How many keys a column of keys can hold.
pub const MOST_KEYS: usize = 255;

/// The start of a day, in seconds since 1970: what stands in `updated_at`, `deleted_at` and `created_at`.
pub fn day_seconds(day: Day) -> i64 {
    i64::from(day.0) * SECONDS_PER_DAY
}

/// The day of a time in seconds since 1970.
pub fn day_of(seconds: i64) -> Option<Day> {
    i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok().map(Day)
}

macro_rules! bytes_column {
    ($($name:ident),*) => { $(
        impl ToSql for $name {
            fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, SqlError> {
                (&self.0[..]).to_sql(ty, out)
            }

            fn accepts(ty: &Type) -> bool {
                *ty == Type::BYTEA
            }

            to_sql_checked!();
        }

        impl<'a> FromSql<'a> for $name {
            fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, SqlError> {
                raw.try_into().map($name).map_err(|_| Malformed.into())
            }

            fn accepts(ty: &Type) -> bool {
                *ty == Type::BYTEA
            }
        }
    )* };
}

bytes_column!(QueueId, MessageId, ServiceId, DhSecret);

/// A column of another type: `$write` appends a value to the buffer, `$read` makes one of the column's bytes.
macro_rules! column {
    ($name:ty, $types:pat, $write:expr, $read:expr) => {
        impl ToSql for $name {
            fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, SqlError> {
                let write: fn(&$name) -> Result<Vec<u8>, SqlError> = $write;
                out.extend_from_slice(&write(self)?);
                Ok(IsNull::No)
            }

            fn accepts(ty: &Type) -> bool {
                matches!(*ty, $types)
            }

            to_sql_checked!();
        }

        impl<'a> FromSql<'a> for $name {
            fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, SqlError> {
                let read: fn(&[u8]) -> Option<$name> = $read;
                read(raw).ok_or_else(|| Malformed.into())
            }

            fn accepts(ty: &Type) -> bool {
                matches!(*ty, $types)
            }
        }
    };
}

column!(Day, Type::INT8, |day| Ok(day_seconds(*day).to_be_bytes().to_vec()), |raw| day_of(i64::from_be_bytes(
    raw.try_into().ok()?
)));
column!(PublicAuthKey, Type::BYTEA, |key| Ok(key.to_der()), |raw| PublicAuthKey::from_der(raw).ok());
column!(QueueMode, Type::TEXT, |mode| Ok(encoded(mode)), decoded);
column!(ServiceRole, Type::TEXT, |role| Ok(encoded(role)), decoded);
column!(QueueStatus, Type::TEXT, |status| Ok(status_text(status).into_bytes()), |raw| status(raw));

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut text = Vec::new();
    value.encode(&mut text);
    text
}

fn decoded<T: crate::protocol::encoding::Decode>(raw: &[u8]) -> Option<T> {
    T::decode_all(&Bytes::copy_from_slice(raw)).ok()
}

/// The text of a status.
pub fn status_text(status: &QueueStatus) -> String {
    match status {
        QueueStatus::Active => ACTIVE.into(),
        QueueStatus::Off => "off".into(),
        QueueStatus::Blocked(info) => format!("blocked,{}", String::from_utf8_lossy(&encoded(info))),
    }
}

/// The status of a queue that takes messages.
pub const ACTIVE: &str = "active";

fn status(raw: &[u8]) -> Option<QueueStatus> {
    match raw {
        b"active" => Some(QueueStatus::Active),
        b"off" => Some(QueueStatus::Off),
        _ => decoded::<BlockingInfo>(raw.strip_prefix(b"blocked,")?).map(QueueStatus::Blocked),
    }
}

/// `recipient_keys`: 1 to 255 keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyList(pub Vec<PublicAuthKey>);

column!(KeyList, Type::BYTEA, |keys| list(&keys.0, |out, key| put_short(out, &key.to_der())), |raw| list_of(
    raw,
    |reader| reader.get()
)
.map(KeyList));

/// `service_cert`: 1 to 255 certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateChain(pub Vec<Bytes>);

column!(CertificateChain, Type::BYTEA, |chain| list(&chain.0, |out, certificate| put_large(out, certificate)), |raw| {
    list_of(raw, |reader| reader.large()).map(CertificateChain)
});

fn list<T>(elements: &[T], put: impl FnMut(&mut Vec<u8>, &T)) -> Result<Vec<u8>, SqlError> {
    if elements.len() > MOST_KEYS {
        return Err(TooLong.into());
    }
    let mut out = Vec::with_capacity(1 + elements.len() * 48);
    put_list(&mut out, elements, put);
    Ok(out)
}

fn list_of<T>(
    raw: &[u8],
    read: impl FnMut(&mut Reader<'_>) -> Result<T, crate::protocol::encoding::DecodeError>,
) -> Option<Vec<T>> {
    Reader::read_all(&Bytes::copy_from_slice(raw), |reader| reader.list(read)).ok()
}

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
#[derive(Debug)]
pub struct QueueRow<'a> {
    record: &'a QueueRecord,
    recipient_keys: KeyList,
    notifier_id: Option<&'a QueueId>,
    notifier_key: Option<&'a PublicAuthKey>,
    notifier_secret: Option<&'a DhSecret>,
    notifier_service: Option<&'a ServiceId>,
    fixed_data: Option<&'a [u8]>,
    user_data: Option<&'a [u8]>,
}

impl<'a> QueueRow<'a> {
    /// The row of a queue.
    pub fn new(new: &'a NewQueue) -> Self {
        let (record, notifier) = (&new.record, new.record.notifier.as_ref());
        QueueRow {
            record,
            recipient_keys: KeyList(record.recipient_keys.clone()),
            notifier_id: notifier.map(|notifier| &notifier.id),
            notifier_key: notifier.map(|notifier| &notifier.key),
            notifier_secret: notifier.map(|notifier| &notifier.dh_secret),
            notifier_service: notifier.and_then(|notifier| notifier.service.as_ref()),
            fixed_data: new.link_data.as_ref().map(|data| &data.fixed[..]),
            user_data: new.link_data.as_ref().map(|data| &data.user[..]),
        }
    }

    /// Its values.
    pub fn values(&self) -> [&(dyn ToSql + Sync); 16] {
        let record = self.record;
        [
            &record.recipient_id,
            &self.recipient_keys,
            &record.dh_secret,
            &record.sender_id,
            &record.sender_key,
            &record.mode,
            &self.notifier_id,
            &self.notifier_key,
            &self.notifier_secret,
            &self.notifier_service,
            &record.status,
            &record.updated_at,
            &record.link_id,
            &record.recipient_service,
            &self.fixed_data,
            &self.user_data,
        ]
    }
}

/// The columns of a message in the order in which [`MessageRow`] gives them; its number, `message_id`, is the database's.
pub const MESSAGE_COLUMNS: &str = "recipient_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body";

/// The types of [`MESSAGE_COLUMNS`], for a binary `COPY`.
pub const MESSAGE_TYPES: [Type; 6] = [Type::BYTEA, Type::BYTEA, Type::INT8, Type::BOOL, Type::BOOL, Type::BYTEA];

/// A message as the values of [`MESSAGE_COLUMNS`].
#[derive(Debug)]
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
#[derive(Debug)]
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
        let index = self.next;
        self.next += 1;
        self.row.try_get(index).map_err(|_| {
            let name = self.row.columns().get(index).map(tokio_postgres::Column::name);
            ColumnError(name.unwrap_or("that was asked for").to_owned())
        })
    }
}

/// The record in the next 14 columns, the first of [`QUEUE_COLUMNS`].
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
        link_id: columns.take()?,
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
