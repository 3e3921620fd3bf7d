//! The line that says where a queue stands in its journals. Pure.

use crate::store::files::text::{Fields, LineError, put_text};

/// A place in a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store::files) struct Position {
    /// What names the file: 16 characters of the URL alphabet of Base64, if it is not older.
    pub(in crate::store::files) journal: String,
    /// Messages before this place.
    pub(in crate::store::files) messages: u64,
    /// Messages in the file.
    pub(in crate::store::files) message_count: u64,
    /// Bytes before this place.
    pub(in crate::store::files) bytes: u64,
    /// Bytes in the file.
    pub(in crate::store::files) byte_count: u64,
}

/// Where a queue is read and written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store::files) struct State {
    pub(in crate::store::files) write: Position,
    pub(in crate::store::files) read: Position,
    /// Whether it takes messages: it is not full, or was emptied after it was.
    pub(in crate::store::files) can_write: bool,
    /// Messages that are not read.
    pub(in crate::store::files) size: u64,
}

impl State {
    /// Reads a line.
    pub(in crate::store::files) fn read(line: &[u8]) -> Result<Self, LineError> {
        let mut fields = Fields::of(line);
        fields.expect(b"write=", "write= is missing")?;
        let write = position(&mut fields)?;
        fields.expect(b" read=", "read= is missing")?;
        let read = position(&mut fields)?;
        fields.expect(b" canWrite=", "canWrite= is missing")?;
        let can_write = fields.flag("canWrite is neither T nor F")?;
        fields.expect(b" size=", "size= is missing")?;
        let size = count(&mut fields)?;
        fields.end()?;
        Ok(State { write, read, can_write, size })
    }

    /// Appends the line, without its end.
    pub(in crate::store::files) fn write(&self, line: &mut Vec<u8>) {
        let (write, read) = (PositionText(&self.write), PositionText(&self.read));
        let can_write = if self.can_write { 'T' } else { 'F' };
        put_text(line, format_args!("write={write} read={read} canWrite={can_write} size={}", self.size));
    }

    /// Whether its numbers fit each other.
    pub(in crate::store::files) fn is_valid(&self) -> bool {
        let (read, write) = (&self.read, &self.write);
        let unread = read.message_count.checked_sub(read.messages);
        let always = unread.is_some()
            && read.bytes <= read.byte_count
            && write.messages == write.message_count
            && write.bytes == write.byte_count;
        let size = if read.journal == write.journal {
            let same = read.message_count == write.message_count && read.byte_count == write.byte_count;
            unread.filter(|_| same)
        } else {
            unread.and_then(|unread| unread.checked_add(write.message_count))
        };
        always && size == Some(self.size)
    }
}

fn position(fields: &mut Fields<'_>) -> Result<Position, LineError> {
    let journal = journal(fields.until(b","))?;
    let mut next = || {
        fields.expect(b",", "a position has five parts")?;
        count(fields)
    };
    let (messages, message_count, bytes, byte_count) = (next()?, next()?, next()?, next()?);
    Ok(Position { journal, messages, message_count, bytes, byte_count })
}

/// It becomes part of a file's name, so nothing else may stand in it.
fn journal(word: &[u8]) -> Result<String, LineError> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=');
    match std::str::from_utf8(word) {
        Ok(name) if (1..=64).contains(&word.len()) && word.iter().all(allowed) => Ok(name.to_owned()),
        _ => Err(LineError("a journal's name is not in Base64")),
    }
}

fn count(fields: &mut Fields<'_>) -> Result<u64, LineError> {
    const WRONG: &str = "a count is not a whole number";
    u64::try_from(fields.number(WRONG)?).map_err(|_| LineError(WRONG))
}

struct PositionText<'a>(&'a Position);

impl std::fmt::Display for PositionText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { journal, messages, message_count, bytes, byte_count } = self.0;
        write!(f, "{journal},{messages},{message_count},{bytes},{byte_count}")
    }
}
