//! Blocks over a secure stream.
//!
//! [`SmpStream`] cuts a stream into blocks of 16384 bytes, pads and, from version 11 on, encrypts them. An idle
//! connection holds no buffer: blocks are read into and written from one scratch buffer of the thread, and only a block
//! that has arrived in part keeps a buffer of its own until the rest is there.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::block_io::{BlockIo, Incoming};
use crate::protocol::block::{BLOCK_SIZE, MAX_PAYLOAD, pad};
use crate::protocol::crypto::{BlockKeys, CryptoError, content_range};

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

/// A block of which only the beginning has arrived.
struct Partial {
    block: Vec<u8>,
    filled: usize,
}

/// Blocks over `S`.
pub struct SmpStream<S> {
    stream: S,
    keys: Option<BlockKeys>,
    partial: Option<Box<Partial>>,
}

impl<S: SecureStream> SmpStream<S> {
    /// Blocks that are only padded, as in the handshake.
    pub fn new(stream: S) -> Self {
        SmpStream { stream, keys: None, partial: None }
    }

    /// From now on blocks are encrypted with these keys.
    pub fn encrypt(&mut self, keys: BlockKeys) {
        self.keys = Some(keys);
    }

    /// Whether blocks are encrypted inside TLS.
    pub fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// The stream below.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream below, to send bytes that are not a block: for tests of the other side.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Reads the next block. Cancelling loses nothing.
    pub async fn read(&mut self) -> io::Result<Incoming> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    /// Writes a block and waits until the kernel has it. After cancelling, only [`BlockIo::poll_write`] may follow.
    pub async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        self.start_write(payload)?;
        poll_fn(|cx| self.poll_write(cx, &mut false)).await
    }

    /// Reads until the block is whole (true) or the peer has closed before its first byte (false).
    fn poll_fill(&mut self, cx: &mut Context<'_>, partial: &mut Partial) -> Poll<io::Result<bool>> {
        while partial.filled < BLOCK_SIZE {
            let space = partial.block.get_mut(partial.filled..).unwrap_or_default();
            match ready!(self.stream.poll_read(cx, space))? {
                0 if partial.filled == 0 => return Poll::Ready(Ok(false)),
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => partial.filled += read,
            }
        }
        Poll::Ready(Ok(true))
    }

    /// Decrypts a whole block where it stands and copies its payload out.
    fn open(&mut self, block: &mut [u8]) -> Incoming {
        let payload = match &mut self.keys {
            Some(keys) => keys.open_block(block).ok(),
            // Has room for 16 bytes more than anyone sends, and the reference takes them too.
            None => content_range(block).ok(),
        };
        match payload.and_then(|payload| block.get(payload)) {
            Some(payload) => Incoming::Payload(Bytes::copy_from_slice(payload)),
            None => Incoming::BadBlock,
        }
    }

    fn seal(&mut self, payload: &[u8], block: &mut Vec<u8>) -> Result<(), CryptoError> {
        match &mut self.keys {
            Some(keys) => keys.seal_block(payload, block),
            None if payload.len() > MAX_PAYLOAD => Err(CryptoError::TooLarge),
            None => pad(payload, BLOCK_SIZE, block).map_err(|_| CryptoError::TooLarge),
        }
    }
}

impl<S: SecureStream> BlockIo for SmpStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Incoming>> {
        let kept = self.partial.take();
        let was_kept = kept.is_some();
        let mut partial = match kept {
            Some(partial) => *partial,
            None => Partial { block: Scratch::take(), filled: 0 },
        };
        let polled = self.poll_fill(cx, &mut partial);
        if polled.is_pending() && partial.filled > 0 {
            self.partial = Some(Box::new(partial));
            return Poll::Pending;
        }
        let incoming = match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(false)) => Poll::Ready(Ok(Incoming::Closed)),
            Poll::Ready(Ok(true)) => Poll::Ready(Ok(self.open(&mut partial.block))),
        };
        if !was_kept {
            Scratch::give_back(partial.block);
        }
        incoming
    }

    fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    fn start_write(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut block = Scratch::take();
        block.clear();
        let written = match self.seal(payload, &mut block) {
            Ok(()) => self.stream.write(&block),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
        };
        Scratch::give_back(block);
        written
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx, progress)
    }

    fn close(&mut self) {
        self.stream.close();
    }
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The thread's buffer for the block at hand.
struct Scratch;

impl Scratch {
    /// A buffer of [`BLOCK_SIZE`] bytes with anything in them.
    fn take() -> Vec<u8> {
        let mut buffer = SCRATCH.take();
        buffer.resize(BLOCK_SIZE, 0);
        buffer
    }

    fn give_back(buffer: Vec<u8>) {
        SCRATCH.set(buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::Waker;

    use super::*;
    use crate::protocol::SessionId;
    use crate::protocol::crypto::SharedSecret;

    /// A stream that yields these pieces, then is pending or at its end, and takes a few bytes a poll.
    #[derive(Default)]
    struct Script {
        incoming: VecDeque<Vec<u8>>,
        ended: bool,
        taken: Vec<u8>,
        sent: Vec<u8>,
        takes: VecDeque<usize>,
        closed: bool,
    }

    impl SecureStream for Script {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            let Some(piece) = self.incoming.front_mut() else {
                return if self.ended { Poll::Ready(Ok(0)) } else { Poll::Pending };
            };
            let length = piece.len().min(buffer.len());
            buffer[..length].copy_from_slice(&piece[..length]);
            piece.drain(..length);
            if piece.is_empty() {
                self.incoming.pop_front();
            }
            Poll::Ready(Ok(length))
        }

        fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.taken.extend_from_slice(bytes);
            Ok(())
        }

        fn poll_flush(&mut self, _: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>> {
            let length = self.takes.pop_front().unwrap_or(usize::MAX).min(self.taken.len());
            *progress |= length > 0;
            self.sent.extend(self.taken.drain(..length));
            if self.taken.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
        }

        fn close(&mut self) {
            self.closed = true;
        }
    }

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    fn keys() -> (BlockKeys, BlockKeys) {
        let (session_id, secret) = (SessionId([1; 32]), SharedSecret::from_bytes([2; 32]));
        (BlockKeys::server(&session_id, &secret), BlockKeys::client(&session_id, &secret))
    }

    /// The blocks with these payloads as a client sends them.
    fn blocks(payloads: &[&[u8]], encrypted: bool) -> Vec<u8> {
        let mut client = SmpStream::new(Script::default());
        if encrypted {
            client.encrypt(keys().1);
        }
        for payload in payloads {
            client.start_write(payload).unwrap();
        }
        client.stream.taken
    }

    fn server(incoming: impl IntoIterator<Item = Vec<u8>>, encrypted: bool) -> SmpStream<Script> {
        let mut stream =
            SmpStream::new(Script { incoming: incoming.into_iter().collect(), ended: true, ..Script::default() });
        if encrypted {
            stream.encrypt(keys().0);
        }
        stream
    }

    fn next(stream: &mut SmpStream<Script>) -> Poll<Result<Incoming, io::ErrorKind>> {
        stream.poll_read(&mut context()).map_err(|error| error.kind())
    }

    fn payload(bytes: &'static [u8]) -> Poll<Result<Incoming, io::ErrorKind>> {
        Poll::Ready(Ok(Incoming::Payload(Bytes::from_static(bytes))))
    }

    #[test]
    fn blocks_arrive_however_the_stream_is_cut() {
        for encrypted in [false, true] {
            let sent = blocks(&[b"one", b"", b"three"], encrypted);
            assert_eq!(sent.len(), 3 * BLOCK_SIZE);
            for cut in [1000, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, usize::MAX] {
                let mut stream = server(sent.chunks(cut).map(<[u8]>::to_vec), encrypted);
                assert_eq!(next(&mut stream), payload(b"one"));
                assert_eq!(next(&mut stream), payload(b""));
                assert_eq!(next(&mut stream), payload(b"three"));
                assert_eq!(next(&mut stream), Poll::Ready(Ok(Incoming::Closed)));
            }
        }
    }

    #[test]
    fn holds_a_buffer_only_while_a_block_is_incomplete() {
        let sent = blocks(&[b"one"], false);
        let mut stream = server([], false);
        stream.stream.ended = false;
        assert_eq!(next(&mut stream), Poll::Pending);
        assert!(stream.partial.is_none());
        stream.stream.incoming.push_back(sent[..1].to_vec());
        assert_eq!(next(&mut stream), Poll::Pending);
        assert!(stream.partial.is_some());
        stream.stream.incoming.push_back(sent[1..].to_vec());
        assert_eq!(next(&mut stream), payload(b"one"));
        assert!(stream.partial.is_none());
    }

    #[test]
    fn a_block_that_does_not_decrypt_is_reported_and_the_next_one_is_read() {
        let mut sent = blocks(&[b"one", b"two"], true);
        sent[5000] ^= 1;
        let mut stream = server([sent], true);
        assert_eq!(next(&mut stream), Poll::Ready(Ok(Incoming::BadBlock)));
        assert_eq!(next(&mut stream), payload(b"two"));
    }

    #[test]
    fn a_length_past_the_block_is_a_bad_block() {
        for length in [16383, u16::MAX] {
            let mut sent = blocks(&[b""], false);
            sent[..2].copy_from_slice(&length.to_be_bytes());
            assert_eq!(next(&mut server([sent], false)), Poll::Ready(Ok(Incoming::BadBlock)));
        }
    }

    #[test]
    fn an_end_within_a_block_is_an_error() {
        let sent = blocks(&[b"one"], false)[..BLOCK_SIZE - 1].to_vec();
        assert_eq!(next(&mut server([sent], false)), Poll::Ready(Err(io::ErrorKind::UnexpectedEof)));
    }

    #[test]
    fn a_payload_that_does_not_fit_is_refused_and_nothing_is_sent() {
        for encrypted in [false, true] {
            let mut stream = server([], encrypted);
            let error = stream.start_write(&[0; MAX_PAYLOAD + 1]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(stream.stream.taken.is_empty());
            stream.start_write(&[0; MAX_PAYLOAD]).unwrap();
            assert_eq!(stream.stream.taken.len(), BLOCK_SIZE);
        }
    }

    #[test]
    fn progress_is_reported_when_the_peer_takes_some_bytes_and_only_then() {
        let mut stream = server([], false);
        stream.stream.takes = [0, 1000].into();
        stream.start_write(b"block").unwrap();
        for (expected, finished) in [(false, false), (true, false), (true, true)] {
            let mut progress = false;
            let polled = stream.poll_write(&mut context(), &mut progress);
            assert_eq!((progress, polled.is_ready()), (expected, finished));
        }
        let mut progress = false;
        assert!(stream.poll_write(&mut context(), &mut progress).is_ready());
        assert!(!progress);
        stream.close();
        assert!(stream.stream.closed);
    }
}
