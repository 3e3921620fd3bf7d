//! What a connection is to those who use it: a source and sink of block payloads.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The payload of a block: decrypted, padding removed.
    Payload(Bytes),
    /// A block that could not be decrypted or unpadded: to be answered with `ERR BLOCK`.
    BadBlock,
    /// The peer closed.
    Closed,
}

/// A handshaken connection, polled by its owner. Holds no buffer while idle.
pub trait BlockIo: 'static {
    /// The next block. Must not be polled again after `Closed` or an error.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Incoming>>;

    /// Whether part of a block was read: memory that waits for its rest.
    fn is_partial(&self) -> bool {
        false
    }

    /// Starts writing one block with this payload (at most 16366 bytes): pads and encrypts it. Only when
    /// [`BlockIo::poll_write`] last answered `Ready`.
    fn start_write(&mut self, payload: &[u8]) -> io::Result<()>;

    /// Drives the write that was started; `Ready` when all of it is with the kernel (and at once when there is none).
    /// `progress` is set when the peer took any byte.
    fn poll_write(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>>;

    /// Says goodbye (close_notify) as far as that works without waiting. The socket closes on drop.
    fn close(&mut self);
}
