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

mod rows;
#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

pub use rows::*;

use crate::protocol::command::{IdsHash, QueueMode};
use crate::protocol::encoding::{Decode, DecodeError, Encode, Reader, put_large, put_list, put_short};
use crate::protocol::error::BlockingInfo;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{Day, DhSecret, QueueStatus};

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

bytes_column!(QueueId, MessageId, ServiceId, DhSecret, IdsHash);

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

fn decoded<T: Decode>(raw: &[u8]) -> Option<T> {
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

fn list_of<T>(raw: &[u8], read: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>) -> Option<Vec<T>> {
    Reader::read_all(&Bytes::copy_from_slice(raw), |reader| reader.list(read)).ok()
}
