//! Fields of a line: words, numbers and Base64, as all of the reference's logs have them. Pure.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};
use crate::store::record::{Day, DhSecret, Timestamp};

/// Why a line cannot be used; says nothing of what stands in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LineError(pub(super) &'static str);

/// Padding may be there or not, but not in part; and what is left over in the last character must be zero: most cuts are
/// found so.
fn decode_base64(word: &[u8]) -> Result<Vec<u8>, base64::DecodeError> {
    if word.ends_with(b"=") { URL_SAFE.decode(word) } else { URL_SAFE_NO_PAD.decode(word) }
}

/// The rest of a line that is being read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(line: &'a [u8]) -> Self {
        Fields(line)
    }

    /// What is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Goes on after `bytes` bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    /// Takes `word` if it stands here.
    pub(super) fn take(&mut self, word: &[u8]) -> bool {
        match self.0.strip_prefix(word) {
            Some(rest) => self.0 = rest,
            None => return false,
        }
        true
    }

    /// Takes `word`, which must stand here.
    pub(super) fn expect(&mut self, word: &[u8], otherwise: &'static str) -> Result<(), LineError> {
        if self.take(word) { Ok(()) } else { Err(LineError(otherwise)) }
    }

    /// The space between two fields.
    pub(super) fn space(&mut self) -> Result<(), LineError> {
        self.expect(b" ", "a field is missing")
    }

    /// A field and the space before it.
    pub(super) fn spaced<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, LineError>) -> Result<T, LineError> {
        self.space()?;
        read(self)
    }

    /// A field, if its name stands here.
    pub(super) fn named<T>(
        &mut self,
        name: &[u8],
        read: impl FnOnce(&mut Self) -> Result<T, LineError>,
    ) -> Result<Option<T>, LineError> {
        self.take(name).then(|| read(self)).transpose()
    }

    /// The end of the line.
    pub(super) fn end(self) -> Result<(), LineError> {
        if self.0.is_empty() { Ok(()) } else { Err(LineError("more stands in the line than belongs there")) }
    }

    /// Everything before the first of `ends`, or the end of the line.
    pub(super) fn until(&mut self, ends: &[u8]) -> &'a [u8] {
        let length = self.0.iter().position(|byte| ends.contains(byte)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        word
    }

    /// One byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// `T` or `F`.
    pub(super) fn flag(&mut self, otherwise: &'static str) -> Result<bool, LineError> {
        match self.byte() {
            Some(b'T') => Ok(true),
            Some(b'F') => Ok(false),
            _ => Err(LineError(otherwise)),
        }
    }

    /// A number with an optional sign.
    pub(super) fn number(&mut self, otherwise: &'static str) -> Result<i64, LineError> {
        let word = self.until(b" ,");
        std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).ok_or(LineError(otherwise))
    }

    /// Base64, perhaps of nothing.
    pub(super) fn base64(&mut self, otherwise: &'static str) -> Result<Zeroizing<Vec<u8>>, LineError> {
        decode_base64(self.until(b" ,")).map(Zeroizing::new).map_err(|_| LineError(otherwise))
    }

    /// Base64 of exactly `N` bytes.
    fn array<const N: usize>(&mut self, otherwise: &'static str) -> Result<[u8; N], LineError> {
        self.base64(otherwise)?.as_slice().try_into().map_err(|_| LineError(otherwise))
    }

    /// An ID of a queue.
    pub(super) fn queue_id(&mut self) -> Result<QueueId, LineError> {
        self.array("a queue's ID is not 24 bytes in Base64").map(QueueId)
    }

    /// An ID of a message.
    pub(super) fn message_id(&mut self) -> Result<MessageId, LineError> {
        self.array("a message's ID is not 24 bytes in Base64").map(MessageId)
    }

    /// An ID of a service.
    pub(super) fn service_id(&mut self) -> Result<ServiceId, LineError> {
        self.array("a service's ID is not 24 bytes in Base64").map(ServiceId)
    }

    /// A public key.
    pub(super) fn key(&mut self) -> Result<PublicAuthKey, LineError> {
        let der = self.base64("a key is not in Base64")?;
        PublicAuthKey::from_der(&der).map_err(|_| LineError("a key is of no known kind"))
    }

    /// A secret agreed with the recipient.
    pub(super) fn dh_secret(&mut self) -> Result<DhSecret, LineError> {
        self.array("a secret is not 32 bytes in Base64").map(DhSecret)
    }

    /// Seconds since 1970, of which the day counts.
    pub(super) fn day(&mut self) -> Result<Day, LineError> {
        let seconds = self.number("a day is not a number of seconds")?;
        i32::try_from(seconds.div_euclid(DAY_SECONDS)).map(Day).map_err(|_| LineError("a day is out of range"))
    }

    /// Seconds since 1970.
    pub(super) fn time(&mut self) -> Result<Timestamp, LineError> {
        let seconds = self.number("a time is not a number of seconds")?;
        Ok(Timestamp { seconds, nanoseconds: 0 })
    }
}

const DAY_SECONDS: i64 = 86_400;

/// A value as it stands in a line.
pub(super) trait Put {
    /// Appends it.
    fn put(&self, line: &mut Vec<u8>);
}

/// Appends Base64 with padding.
pub(super) fn put_base64(line: &mut Vec<u8>, bytes: &[u8]) {
    let start = line.len();
    line.resize(start + bytes.len().div_ceil(3) * 4, 0);
    if let Some(space) = line.get_mut(start..) {
        // It has exactly the room that is needed.
        let _ = URL_SAFE.encode_slice(bytes, space);
    }
}

/// Appends text.
pub(super) fn put_text(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    use std::io::Write;
    // Writing to memory does not fail.
    let _ = line.write_fmt(text);
}

macro_rules! put_bytes {
    ($($name:ty),*) => { $(
        impl Put for $name {
            fn put(&self, line: &mut Vec<u8>) {
                put_base64(line, &self.0);
            }
        }
    )* };
}

put_bytes!(QueueId, MessageId, ServiceId, DhSecret);

impl Put for PublicAuthKey {
    fn put(&self, line: &mut Vec<u8>) {
        put_base64(line, &self.to_der());
    }
}

impl Put for Day {
    fn put(&self, line: &mut Vec<u8>) {
        put_text(line, format_args!("{}", i64::from(self.0) * DAY_SECONDS));
    }
}

/// Seconds: no file has more than that.
impl Put for Timestamp {
    fn put(&self, line: &mut Vec<u8>) {
        put_text(line, format_args!("{}", self.seconds));
    }
}

/// Elements with a comma between them.
pub(super) fn put_list<T>(line: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    for (index, element) in list.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        put(line, element);
    }
}

/// Appends a word and a value right after it.
pub(super) fn put_named(line: &mut Vec<u8>, name: &str, value: &(impl Put + ?Sized)) {
    line.extend_from_slice(name.as_bytes());
    value.put(line);
}
