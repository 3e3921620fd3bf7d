//! Blocks over a secure stream.

use std::io;
use std::task::{Context, Poll};

/// What blocks are read from and written to: the stream inside TLS, polled by one owner.
pub trait SecureStream: 'static {
    /// Reads some bytes; 0 when the peer closed.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Takes all of `bytes` (at most one block) to be sent by [`SecureStream::poll_flush`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Sends what was taken; `Ready` when all of it is with the kernel. Sets `progress` when the kernel took any byte.
    fn poll_flush(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>>;

    /// Says goodbye as far as that works without waiting.
    fn close(&mut self);
}
