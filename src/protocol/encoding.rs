//! Encodings of basic types: words, strings with a length, optional values, lists. Spec: "SMP syntax" and "Encoding".
//!
//! Reading never copies a field of variable length: it is a slice of the block that it came in, so whoever keeps it
//! longer than the block must copy it. Reading never allocates more than the input has bytes and never panics.
//! Writing appends to a buffer of the caller.

use bytes::Bytes;
use thiserror::Error;

/// The input does not have the form that is asked for. Carries no detail: the peer gets only a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("malformed encoding")]
pub struct DecodeError;

/// What has one encoding in all versions.
pub trait Encode {
    /// Appends the encoding to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding alone.
    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// What can be read in the same way in all versions.
pub trait Decode: Sized {
    /// Reads one value and leaves the reader behind it.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads one value that takes all of `source`.
    fn decode_all(source: &Bytes) -> Result<Self, DecodeError> {
        Reader::read_all(source, Self::decode)
    }
}

/// A position in bytes that are being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    source: &'a Bytes,
    position: usize,
}

impl<'a> Reader<'a> {
    /// Reads `source` from its start.
    pub fn new(source: &'a Bytes) -> Self {
        Reader { source, position: 0 }
    }

    /// Reads a value that takes all of `source`: bytes after it are an error.
    pub fn read_all<T>(
        source: &'a Bytes,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut reader = Reader::new(source);
        let value = read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        // The position never passes the end, but a wrong one must not panic either.
        self.source.get(self.position..).unwrap_or_default()
    }

    /// How many bytes are not read yet.
    pub fn remaining(&self) -> usize {
        self.source.len() - self.position
    }

    /// Fails if anything is left.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.remaining() == 0 { Ok(()) } else { Err(DecodeError) }
    }

    /// The next `length` bytes, borrowed.
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let slice = self.rest().get(..length).ok_or(DecodeError)?;
        self.position += length;
        Ok(slice)
    }

    /// The next `length` bytes, sharing the source's memory.
    pub fn bytes(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        let start = self.position;
        self.slice(length)?;
        Ok(self.source.slice(start..self.position))
    }

    /// The next `N` bytes, copied.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.slice(N)?.try_into().map_err(|_| DecodeError)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, big endian.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Eight bytes, big endian, two's complement.
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    /// `T` or `F`.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            b'T' => Ok(true),
            b'F' => Ok(false),
            _ => Err(DecodeError),
        }
    }

    /// One space.
    pub fn space(&mut self) -> Result<(), DecodeError> {
        self.literal(b" ")
    }

    /// One space and what `read` reads after it.
    pub fn spaced<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        self.space()?;
        read(self)
    }

    /// Exactly these bytes.
    pub fn literal(&mut self, expected: &[u8]) -> Result<(), DecodeError> {
        if self.slice(expected.len())? == expected { Ok(()) } else { Err(DecodeError) }
    }

    /// What comes before the next space or the end; the space itself is not read.
    pub fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    /// Bytes after a one-byte length, borrowed.
    pub fn short_slice(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u8()?;
        self.slice(usize::from(length))
    }

    /// Bytes after a one-byte length.
    pub fn short(&mut self) -> Result<Bytes, DecodeError> {
        let length = self.u8()?;
        self.bytes(usize::from(length))
    }

    /// UTF-8 text after a one-byte length.
    pub fn short_text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.short_slice()?).map_err(|_| DecodeError)
    }

    /// Text after a one-byte length, one byte a character (ISO 8859-1), as the reference sends diagnostics and ports.
    pub fn short_latin1(&mut self) -> Result<String, DecodeError> {
        Ok(self.short_slice()?.iter().copied().map(char::from).collect())
    }

    /// Bytes after a two-byte length.
    pub fn large(&mut self) -> Result<Bytes, DecodeError> {
        let length = self.u16()?;
        self.bytes(usize::from(length))
    }

    /// All that is left, sharing the source's memory.
    pub fn tail(&mut self) -> Bytes {
        let tail = self.source.slice(self.position..);
        self.position = self.source.len();
        tail
    }

    /// `0`, or `1` and a value.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.u8()? {
            b'0' => Ok(None),
            b'1' => read(self).map(Some),
            _ => Err(DecodeError),
        }
    }

    /// A one-byte count, not zero, and as many values.
    pub fn list<T>(&mut self, read: impl FnMut(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        match self.list_or_empty(read)? {
            list if list.is_empty() => Err(DecodeError),
            list => Ok(list),
        }
    }

    /// A one-byte count and as many values.
    pub fn list_or_empty<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.u8()?;
        // Grows as values are found: a count alone must not allocate.
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// Reads a value of type `T`.
    pub fn get<T: Decode>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }

    /// Reads a value that takes all of the next string with a one-byte length.
    pub fn nested<T: Decode>(&mut self) -> Result<T, DecodeError> {
        T::decode_all(&self.short()?)
    }
}

/// Two bytes, big endian.
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Eight bytes, big endian, two's complement.
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// `T` or `F`.
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { b'T' } else { b'F' });
}

/// Bytes after a one-byte length. More than 255 bytes do not fit: they are cut, never given a wrong length.
pub fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    out.push(length);
    out.extend_from_slice(&bytes[..usize::from(length)]);
}

/// Text after a one-byte length, cut at the last character that ends within 255 bytes.
pub fn put_short_text(out: &mut Vec<u8>, text: &str) {
    let longest = text.len().min(usize::from(u8::MAX));
    let end = (0..=longest).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
    put_short(out, &text.as_bytes()[..end]);
}

/// Text after a one-byte length, one byte a character: `?` for what has no such byte, cut at 255 characters.
pub fn put_short_latin1(out: &mut Vec<u8>, text: &str) {
    let bytes: Vec<u8> = text.chars().take(usize::from(u8::MAX)).map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
    put_short(out, &bytes);
}

/// Bytes after a two-byte length. More than 65535 bytes do not fit: they are cut; nothing that large fits a block.
pub fn put_large(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    put_u16(out, length);
    out.extend_from_slice(&bytes[..usize::from(length)]);
}

/// `0`, or `1` and the value.
pub fn put_optional<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        None => out.push(b'0'),
        Some(value) => {
            out.push(b'1');
            put(out, value);
        }
    }
}

/// A one-byte count and the values. Past 255 values the rest is left out.
pub fn put_list<T>(out: &mut Vec<u8>, values: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
    out.push(count);
    for value in &values[..usize::from(count)] {
        put(out, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reader_of(bytes: &'static [u8]) -> Bytes {
        Bytes::from_static(bytes)
    }

    #[test]
    fn words_are_big_endian() {
        let source = reader_of(&[1, 2, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
        let mut reader = Reader::new(&source);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(0x0203));
        assert_eq!(reader.i64(), Ok(-2));
        assert_eq!(reader.end(), Ok(()));
        assert_eq!(reader.u8(), Err(DecodeError));
    }

    #[test]
    fn strings_that_run_past_the_end_are_refused_and_read_nothing_beyond() {
        assert_eq!(Reader::new(&reader_of(b"\x04abc")).short(), Err(DecodeError));
        assert_eq!(Reader::new(&reader_of(b"\x00\x04abc")).large(), Err(DecodeError));
        assert_eq!(Reader::new(&reader_of(b"\x00")).large(), Err(DecodeError));
        assert_eq!(Reader::new(&reader_of(b"")).short(), Err(DecodeError));
    }

    #[test]
    fn strings_share_the_memory_of_their_source() {
        let source = reader_of(b"\x03abcd");
        let text = Reader::new(&source).short().expect("a string");
        assert_eq!(text.as_ptr(), source[1..].as_ptr());
    }

    #[test]
    fn optional_values_and_booleans_know_no_other_tags() {
        assert_eq!(Reader::new(&reader_of(b"0")).optional(Reader::u8), Ok(None));
        assert_eq!(Reader::new(&reader_of(b"1a")).optional(Reader::u8), Ok(Some(b'a')));
        assert_eq!(Reader::new(&reader_of(b"2a")).optional(Reader::u8), Err(DecodeError));
        assert_eq!(Reader::new(&reader_of(b"t")).bool(), Err(DecodeError));
    }

    #[test]
    fn a_list_is_not_empty() {
        assert_eq!(Reader::new(&reader_of(b"\x00")).list(Reader::u8), Err(DecodeError));
        assert_eq!(Reader::new(&reader_of(b"\x00")).list_or_empty(Reader::u8), Ok(vec![]));
        assert_eq!(Reader::new(&reader_of(b"\x02ab")).list(Reader::u8), Ok(vec![b'a', b'b']));
        assert_eq!(Reader::new(&reader_of(b"\x03ab")).list(Reader::u8), Err(DecodeError));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut out = Vec::new();
        put_short_text(&mut out, &"é".repeat(200));
        assert_eq!(out[0], 254);
        assert_eq!(out.len(), 255);
        let mut out = Vec::new();
        put_short(&mut out, &[b'x'; 300]);
        assert_eq!((out[0], out.len()), (255, 256));
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(
            short in prop::collection::vec(any::<u8>(), 0..256),
            large in prop::collection::vec(any::<u8>(), 0..2000),
            number: i64,
            flag: bool,
            optional: Option<u16>,
        ) {
            let mut out = Vec::new();
            put_short(&mut out, &short);
            put_i64(&mut out, number);
            put_bool(&mut out, flag);
            put_optional(&mut out, optional, put_u16);
            put_list(&mut out, &short[..short.len().min(3)], |out, byte| out.push(*byte));
            put_large(&mut out, &large);
            out.extend_from_slice(&large);
            let source = Bytes::from(out);
            let mut reader = Reader::new(&source);
            prop_assert_eq!(reader.short()?, &short);
            prop_assert_eq!(reader.i64()?, number);
            prop_assert_eq!(reader.bool()?, flag);
            prop_assert_eq!(reader.optional(Reader::u16)?, optional);
            prop_assert_eq!(reader.list_or_empty(Reader::u8)?, &short[..short.len().min(3)]);
            prop_assert_eq!(reader.large()?, &large);
            prop_assert_eq!(reader.tail(), &large);
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
