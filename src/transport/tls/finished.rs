//! The session identifier: the client's TLS 1.3 Finished value, which rustls does not give away.
//!
//! A cipher suite brings its own HKDF, and rustls asks it for an HMAC of a message only to make or to check a Finished
//! (and for binders, which need tickets: there are none here). In both roles the client's Finished is the last of them.
//! [`RecordingHkdf`] remembers the last HMAC of the thread, [`RecordFinished`] moves it to the connection that asked
//! for it: the thread's memory is cleared before a connection is driven and collected right after, with no await between,
//! so connections of one thread cannot mix. Nothing else may read it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock};

use crate::protocol::SessionId;

thread_local! {
    static LAST_FINISHED: Cell<Option<SessionId>> = const { Cell::new(None) };
}

/// An HKDF that remembers the last HMAC it made.
pub(super) struct RecordingHkdf(pub &'static dyn Hkdf);

impl Hkdf for RecordingHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        self.0.extract_from_secret(salt, secret)
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.0.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        let tag = self.0.hmac_sign(key, message);
        LAST_FINISHED.set(SessionId::from_slice(tag.as_ref()));
        tag
    }
}

/// Drives a TLS handshake and adds the session identifier to what it yields.
pub(super) struct RecordFinished<F> {
    handshake: F,
    finished: Option<SessionId>,
}

impl<F> RecordFinished<F> {
    /// `handshake` must be the only thing that drives its connection.
    pub(super) fn new(handshake: F) -> Self {
        RecordFinished { handshake, finished: None }
    }
}

impl<F: Future + Unpin> Future for RecordFinished<F> {
    type Output = (F::Output, Option<SessionId>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        LAST_FINISHED.take();
        let polled = Pin::new(&mut self.handshake).poll(cx);
        self.finished = LAST_FINISHED.take().or(self.finished);
        polled.map(|output| (output, self.finished))
    }
}
