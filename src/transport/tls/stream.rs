//! The stream inside TLS: what blocks are written to and read from.

use std::fmt;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use rustls::CommonState;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::transport::block_stream::SecureStream;

/// A TLS stream over TCP, of either side.
pub struct TlsStream(tokio_rustls::TlsStream<CountingSocket>);

impl TlsStream {
    pub(super) fn new(stream: impl Into<tokio_rustls::TlsStream<CountingSocket>>) -> Self {
        TlsStream(stream.into())
    }

    pub(super) fn state(&self) -> &CommonState {
        self.0.get_ref().1
    }

    /// The socket, to ask it for addresses.
    pub fn socket(&self) -> &TcpStream {
        &self.0.get_ref().0.socket
    }

    /// Hands plain bytes to rustls, which encrypts and keeps them until they are flushed.
    fn writer(&mut self) -> rustls::Writer<'_> {
        match &mut self.0 {
            tokio_rustls::TlsStream::Client(stream) => stream.get_mut().1.writer(),
            tokio_rustls::TlsStream::Server(stream) => stream.get_mut().1.writer(),
        }
    }

    fn send_close_notify(&mut self) {
        match &mut self.0 {
            tokio_rustls::TlsStream::Client(stream) => stream.get_mut().1.send_close_notify(),
            tokio_rustls::TlsStream::Server(stream) => stream.get_mut().1.send_close_notify(),
        }
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsStream(..)")
    }
}

impl SecureStream for TlsStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut self.0).poll_read(cx, &mut buffer) {
            // Closed without a goodbye, as phones do. Blocks have a fixed size, so nothing can be cut off unnoticed.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(0)),
            polled => polled.map_ok(|()| buffer.filled().len()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer().write_all(bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, progress: &mut bool) -> Poll<io::Result<()>> {
        let before = self.0.get_ref().0.written;
        let polled = Pin::new(&mut self.0).poll_flush(cx);
        *progress |= self.0.get_ref().0.written != before;
        polled
    }

    fn close(&mut self) {
        self.send_close_notify();
        // What the kernel does not take now is lost: the peer then sees the socket close without a goodbye.
        let _ = Pin::new(&mut self.0).poll_flush(&mut Context::from_waker(Waker::noop()));
    }
}

/// A socket that counts what the kernel took, because rustls buffers and only the socket knows whether the peer reads.
pub(super) struct CountingSocket {
    socket: TcpStream,
    /// Bytes taken so far; wraps.
    written: u64,
}

impl CountingSocket {
    pub(super) fn new(socket: TcpStream) -> Self {
        CountingSocket { socket, written: 0 }
    }

    fn count(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(taken)) = polled {
            self.written = self.written.wrapping_add(taken as u64);
        }
        polled
    }
}

impl AsyncRead for CountingSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CountingSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.count(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.count(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
