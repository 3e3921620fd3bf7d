//! How our values stand in SQLite's columns.
//!
//! IDs and secrets are blobs of their own bytes; keys are a tag byte and the raw key, which is a third of their DER. What
//! cannot be read back is an error of the store, never a value made up. Errors carry no content.

use bytes::Bytes;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};

use crate::protocol::command::{IdsHash, QueueMode};
use crate::protocol::error::{BlockingInfo, BlockingReason, ClientNotice};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{Day, DhSecret, QueueStatus};

macro_rules! blob_column {
    ($($name:ident),*) => { $(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                FromSql::column_result(value).map($name)
            }
        }
    )* };
}

blob_column!(QueueId, MessageId, ServiceId, DhSecret, IdsHash);

impl ToSql for Day {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for Day {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        FromSql::column_result(value).map(Day)
    }
}

impl ToSql for QueueMode {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self {
            QueueMode::Messaging => "M",
            QueueMode::Contact => "C",
        }))
    }
}

impl FromSql for QueueMode {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "M" => Ok(QueueMode::Messaging),
            "C" => Ok(QueueMode::Contact),
            _ => Err(malformed("queue mode")),
        }
    }
}

impl ToSql for ServiceRole {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self {
            ServiceRole::Messaging => "M",
            ServiceRole::Notifier => "N",
            ServiceRole::Proxy => "P",
        }))
    }
}

impl FromSql for ServiceRole {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "M" => Ok(ServiceRole::Messaging),
            "N" => Ok(ServiceRole::Notifier),
            "P" => Ok(ServiceRole::Proxy),
            _ => Err(malformed("service role")),
        }
    }
}

impl ToSql for PublicAuthKey {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let mut blob = Vec::with_capacity(58);
        write_key(self, &mut blob);
        Ok(ToSqlOutput::Owned(Value::Blob(blob)))
    }
}

impl FromSql for PublicAuthKey {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match read_key(value.as_blob()?) {
            Some((key, [])) => Ok(key),
            _ => Err(malformed("key")),
        }
    }
}

/// A queue's recipient keys in one column, one after the other.
pub(super) struct KeyList(pub(super) Vec<PublicAuthKey>);

/// The column of these recipient keys.
pub(super) fn key_list(keys: &[PublicAuthKey]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(keys.len() * 33);
    keys.iter().for_each(|key| write_key(key, &mut blob));
    blob
}

impl FromSql for KeyList {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let (mut rest, mut keys) = (value.as_blob()?, Vec::with_capacity(1));
        while !rest.is_empty() {
            let (key, after) = read_key(rest).ok_or_else(|| malformed("recipient key"))?;
            keys.push(key);
            rest = after;
        }
        Ok(KeyList(keys))
    }
}

const TAG_ED25519: u8 = 1;
const TAG_ED448: u8 = 2;
const TAG_X25519: u8 = 3;

fn write_key(key: &PublicAuthKey, blob: &mut Vec<u8>) {
    let (tag, raw): (u8, &[u8]) = match key {
        PublicAuthKey::Ed25519(raw) => (TAG_ED25519, raw),
        PublicAuthKey::Ed448(raw) => (TAG_ED448, raw.as_slice()),
        PublicAuthKey::X25519(PublicDhKey(raw)) => (TAG_X25519, raw),
    };
    blob.push(tag);
    blob.extend_from_slice(raw);
}

fn read_key(blob: &[u8]) -> Option<(PublicAuthKey, &[u8])> {
    let (&tag, rest) = blob.split_first()?;
    match tag {
        TAG_ED25519 => rest.split_first_chunk().map(|(raw, rest)| (PublicAuthKey::Ed25519(*raw), rest)),
        TAG_ED448 => rest.split_first_chunk().map(|(raw, rest)| (PublicAuthKey::Ed448(Box::new(*raw)), rest)),
        TAG_X25519 => rest.split_first_chunk().map(|(raw, rest)| (PublicAuthKey::X25519(PublicDhKey(*raw)), rest)),
        _ => None,
    }
}

/// A service's certificates in one column: of each its length in 4 bytes, then its DER.
pub(super) struct CertificateChain(pub(super) Vec<Bytes>);

/// The column of these certificates.
pub(super) fn certificate_chain(chain: &[Bytes]) -> Vec<u8> {
    let mut blob = Vec::with_capacity(chain.iter().map(|der| 4 + der.len()).sum());
    for der in chain {
        blob.extend_from_slice(&u32::try_from(der.len()).unwrap_or(u32::MAX).to_be_bytes());
        blob.extend_from_slice(der);
    }
    blob
}

impl FromSql for CertificateChain {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let (mut rest, mut chain) = (value.as_blob()?, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk() {
            let der = after.split_at_checked(u32::from_be_bytes(*length) as usize);
            let (der, after) = der.ok_or_else(|| malformed("certificate"))?;
            chain.push(Bytes::copy_from_slice(der));
            rest = after;
        }
        if rest.is_empty() { Ok(CertificateChain(chain)) } else { Err(malformed("certificate")) }
    }
}

/// The two columns of a status: its number, and the notice of a blocking.
pub(super) fn status_columns(status: &QueueStatus) -> (i64, Option<String>) {
    match status {
        QueueStatus::Active => (0, None),
        QueueStatus::Off => (1, None),
        QueueStatus::Blocked(info) => {
            let number = match info.reason {
                BlockingReason::Spam => 2,
                BlockingReason::Content => 3,
            };
            (number, info.notice.map(ClientNotice::to_json))
        }
    }
}

/// The status in its two columns.
pub(super) fn status(number: i64, notice: Option<String>) -> FromSqlResult<QueueStatus> {
    let notice = notice.map(|json| ClientNotice::from_json(json.as_bytes())).transpose();
    let notice = notice.map_err(|_| malformed("blocking notice"))?;
    let blocked = |reason| QueueStatus::Blocked(BlockingInfo { reason, notice });
    match number {
        0 => Ok(QueueStatus::Active),
        1 => Ok(QueueStatus::Off),
        2 => Ok(blocked(BlockingReason::Spam)),
        3 => Ok(blocked(BlockingReason::Content)),
        _ => Err(malformed("queue status")),
    }
}

/// What a column holds that it should not.
#[derive(Debug, thiserror::Error)]
#[error("a stored {0} is malformed")]
struct Malformed(&'static str);

fn malformed(what: &'static str) -> FromSqlError {
    FromSqlError::other(Malformed(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_kind_are_read_back() {
        let keys = vec![
            PublicAuthKey::Ed25519([1; 32]),
            PublicAuthKey::Ed448(Box::new([2; 57])),
            PublicAuthKey::X25519(PublicDhKey([3; 32])),
        ];
        let blob = key_list(&keys);
        assert_eq!(KeyList::column_result(ValueRef::Blob(&blob)).unwrap().0, keys);
    }

    #[test]
    fn a_cut_or_unknown_key_is_an_error() {
        let blob = key_list(&[PublicAuthKey::Ed25519([1; 32])]);
        assert!(KeyList::column_result(ValueRef::Blob(&blob[..32])).is_err());
        assert!(PublicAuthKey::column_result(ValueRef::Blob(&[blob.as_slice(), b"x"].concat())).is_err());
        assert!(PublicAuthKey::column_result(ValueRef::Blob(&[9; 33])).is_err());
        assert!(PublicAuthKey::column_result(ValueRef::Blob(b"")).is_err());
    }

    #[test]
    fn certificates_are_read_back_and_cut_ones_refused() {
        let chain = vec![Bytes::from_static(b"leaf"), Bytes::new(), Bytes::from_static(b"authority")];
        let blob = certificate_chain(&chain);
        assert_eq!(CertificateChain::column_result(ValueRef::Blob(&blob)).unwrap().0, chain);
        assert!(CertificateChain::column_result(ValueRef::Blob(&blob[..blob.len() - 1])).is_err());
        assert!(CertificateChain::column_result(ValueRef::Blob(&blob[..10])).is_err());
    }

    #[test]
    fn statuses_are_read_back() {
        let info = BlockingInfo { reason: BlockingReason::Content, notice: Some(ClientNotice { ttl: None }) };
        for expected in [QueueStatus::Active, QueueStatus::Off, QueueStatus::Blocked(info)] {
            let (number, notice) = status_columns(&expected);
            assert_eq!(status(number, notice).unwrap(), expected);
        }
        assert!(status(4, None).is_err());
    }
}
