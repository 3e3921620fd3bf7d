//! Blocks: all that goes over a connection has the same size. Spec: "Transport protocol", "SMP transmission structure".
//!
//! A block's payload is a batch: a count, then that many transmissions, each with its length. This module packs and
//! unpacks payloads; encryption (11+) is `crypto`'s, and what is in a transmission is `transmission`'s.

use bytes::Bytes;
use thiserror::Error;

use super::crypto::pad_with;
use super::encoding::{DecodeError, Reader, put_u16};

/// Size of every block in bytes.
pub const BLOCK_SIZE: usize = 16_384;
/// Most bytes of payload in a block, in every version: 2 are for its length and 16 for the tag of encryption (11+).
pub const MAX_PAYLOAD: usize = BLOCK_SIZE - 18;
/// Most transmissions in a block: their count is one byte.
pub const MAX_TRANSMISSIONS: usize = 255;
/// Most bytes of one transmission: 1 of the payload is for the count, 2 are for the transmission's length.
pub const MAX_TRANSMISSION: usize = MAX_PAYLOAD - 3;

/// What was to be sent does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("too large to send")]
pub struct TooLarge;

/// Appends `content` with its length and padding: `length` bytes in all.
pub fn pad(content: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    pad_with(out, length, |out| out.extend_from_slice(content)).map_err(|_| TooLarge)
}

/// Splits a payload into transmissions, sharing its memory. A wrong count or length or a byte too many costs the whole
/// payload; there is at least one transmission.
pub fn split_batch(payload: &Bytes) -> Result<Vec<Bytes>, DecodeError> {
    Reader::read_all(payload, |reader| reader.list(Reader::large))
}

/// Packs transmissions into payloads in their order, each payload filled as far as it goes.
///
/// Transmissions are written straight into the payload, without a buffer of their own.
#[derive(Debug, Default)]
pub struct BatchWriter {
    full: Vec<Vec<u8>>,
    /// The payload being filled, count byte included; empty as long as it has no transmission.
    current: Vec<u8>,
    count: usize,
}

impl BatchWriter {
    /// A writer without transmissions. Allocates nothing.
    pub fn new() -> Self {
        BatchWriter::default()
    }

    /// Adds the transmission that `write` appends to the buffer it gets. One that fits no block is left out, and those
    /// around it are not affected.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
        if self.count == MAX_TRANSMISSIONS {
            self.finish_payload();
        }
        if self.count == 0 {
            self.current.push(0);
        }
        let start = self.current.len();
        put_u16(&mut self.current, 0);
        write(&mut self.current);
        let result = self.place(start);
        if self.count == 0 {
            self.current.clear();
        }
        result
    }

    /// Keeps what was written from `start` on in this payload, moves it to the next, or drops it.
    fn place(&mut self, start: usize) -> Result<(), TooLarge> {
        let length = self.current.len().saturating_sub(start + 2);
        let prefix = u16::try_from(length).ok().filter(|_| length <= MAX_TRANSMISSION).map(u16::to_be_bytes);
        let (Some(prefix), Some(place)) = (prefix, self.current.get_mut(start..start + 2)) else {
            self.current.truncate(start);
            return Err(TooLarge);
        };
        place.copy_from_slice(&prefix);
        if self.current.len() > MAX_PAYLOAD {
            let transmission = self.current.split_off(start);
            self.finish_payload();
            self.current.push(0);
            self.current.extend_from_slice(&transmission);
        }
        self.count += 1;
        Ok(())
    }

    /// Whether no transmission has been added.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.count == 0
    }

    /// How many bytes the next transmission may have to go into the payload being filled; 0 if none goes in.
    pub fn room(&self) -> usize {
        if self.count == MAX_TRANSMISSIONS {
            return 0;
        }
        MAX_PAYLOAD.saturating_sub(self.current.len().max(1) + 2)
    }

    /// Closes the payload being filled: the next transmission begins another.
    pub fn finish_payload(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut payload = std::mem::take(&mut self.current);
        if let Some(first) = payload.first_mut() {
            *first = u8::try_from(self.count).unwrap_or(u8::MAX);
        }
        self.full.push(payload);
        self.count = 0;
    }

    /// The payloads, each at most [`MAX_PAYLOAD`] bytes.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.finish_payload();
        self.full
    }
}
