//! Moving bytes: reads a block when the connection may, runs its job, writes what waits.

use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::fut::ActorFuture;
use actix::{ActorContext, Context};
use tracing::debug;

use super::core::CloseReason;
use super::services::Counters;
use super::{Connection, block, doubts, fetch, notifications};
use crate::transport::block_io::{BlockIo, Incoming};

/// Rounds before neighbours on the same thread get a turn.
const ROUNDS: usize = 32;

/// Drives a connection for as long as it lives. Owns nothing: all is in the actor.
pub(super) struct Pump;

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Something: another round may do more.
    Made,
    /// Nothing: whatever is waited for will wake us.
    None,
}

impl<I: BlockIo + Unpin> ActorFuture<Connection<I>> for Pump {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        connection: &mut Connection<I>,
        ctx: &mut Context<Connection<I>>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<()> {
        connection.core.borrow_mut().register(cx);
        for _ in 0..ROUNDS {
            match connection.round(cx) {
                Ok(Progress::Made) => {}
                Ok(Progress::None) => return Poll::Pending,
                Err(reason) => {
                    connection.end(reason, cx);
                    ctx.stop();
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<I: BlockIo + Unpin> Connection<I> {
    /// One look at everything that can go on. An error ends the connection.
    fn round(&mut self, cx: &mut TaskContext<'_>) -> Result<Progress, CloseReason> {
        let closing = self.core.borrow().closing();
        if let Some(reason) = closing.filter(|reason| !reason.is_graceful()) {
            return Err(reason);
        }
        let wrote = self.write(cx).map_err(|error| broken(&error))?;
        let worked = self.work(cx);
        let fetched = self.fetch(cx);
        let notified = self.take(cx, wrote);
        let noticed = self.notice(cx);
        let read = match closing {
            None => self.read(cx)?,
            Some(reason) if self.is_done(wrote, worked) => return Err(reason),
            Some(_) => Progress::None,
        };
        let all = [wrote, worked, fetched, notified, noticed, read];
        Ok(if all.contains(&Progress::Made) { Progress::Made } else { Progress::None })
    }

    /// Writes one waiting payload.
    fn write(&mut self, cx: &mut TaskContext<'_>) -> io::Result<Progress> {
        let mut progress = false;
        let written = self.io.poll_write(cx, &mut progress)?;
        let mut core = self.core.borrow_mut();
        if progress {
            core.note_activity();
        }
        if written.is_pending() {
            core.note_waiting();
            return Ok(Progress::None);
        }
        core.note_written();
        let Some(payload) = core.outbound.pop() else { return Ok(Progress::None) };
        drop(core);
        self.io.start_write(&payload)?;
        Ok(Progress::Made)
    }

    /// Goes on with the job of executing a block.
    fn work(&mut self, cx: &mut TaskContext<'_>) -> Progress {
        if self.job.is_none() && self.core.borrow().has_doubts() {
            self.job = Some(Box::pin(doubts::settle(self.job_context())));
        }
        let Some(job) = &mut self.job else { return Progress::None };
        if job.as_mut().poll(cx).is_pending() {
            return Progress::None;
        }
        self.job = None;
        Progress::Made
    }

    /// Fetches messages for which there is room again.
    fn fetch(&mut self, cx: &mut TaskContext<'_>) -> Progress {
        if self.fetching.is_none() {
            let core = self.core.borrow();
            if !core.can_fetch() || core.outbound.room() == 0 || core.closing().is_some() {
                return Progress::None;
            }
            drop(core);
            self.fetching = Some(Box::pin(fetch::fetch(self.job_context())));
        }
        let Some(fetching) = &mut self.fetching else { return Progress::None };
        if fetching.as_mut().poll(cx).is_pending() {
            return Progress::None;
        }
        self.fetching = None;
        Progress::Made
    }

    /// Takes notifications that wait, once all that was to be written has been.
    fn take(&mut self, cx: &mut TaskContext<'_>, wrote: Progress) -> Progress {
        if self.taking.is_none() {
            let core = self.core.borrow();
            let idle = wrote == Progress::None && core.outbound.is_empty() && !core.is_waiting();
            if !core.has_notifications() || !idle || core.closing().is_some() {
                return Progress::None;
            }
            drop(core);
            self.taking = Some(Box::pin(notifications::take(self.job_context())));
        }
        let Some(taking) = &mut self.taking else { return Progress::None };
        if taking.as_mut().poll(cx).is_pending() {
            return Progress::None;
        }
        self.taking = None;
        Progress::Made
    }

    /// Sends `END`s and `DELD`s, collected for as long as the setting says.
    fn notice(&mut self, cx: &mut TaskContext<'_>) -> Progress {
        let interval = self.services.settings.end_interval;
        let mut core = self.core.borrow_mut();
        let put_off = core.take_put_off();
        if put_off > 0 {
            Counters::add(&self.services.counters.outbound_full, put_off);
        }
        if !core.has_notices() {
            self.pause = None;
            return Progress::None;
        }
        if self.job.is_some() {
            // Its answers may hold a message of a queue whose subscription has ended meanwhile: first they, then the END.
            return Progress::None;
        }
        if !interval.is_zero() {
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(interval)));
            if pause.as_mut().poll(cx).is_pending() {
                return Progress::None;
            }
        }
        match core.flush_notices() {
            true => Progress::Made,
            false => Progress::None,
        }
    }

    /// Reads a block if none is being executed and its answers have room.
    fn read(&mut self, cx: &mut TaskContext<'_>) -> Result<Progress, CloseReason> {
        if self.job.is_some() || self.core.borrow().outbound.room() == 0 {
            return Ok(Progress::None);
        }
        let Poll::Ready(read) = self.io.poll_read(cx) else {
            self.core.borrow_mut().note_partial(self.io.is_partial());
            return Ok(Progress::None);
        };
        let incoming = read.map_err(|error| broken(&error))?;
        self.core.borrow_mut().note_activity();
        match incoming {
            Incoming::Payload(payload) => self.job = Some(Box::pin(block::execute(self.job_context(), payload))),
            Incoming::BadBlock => self.job = Some(Box::pin(block::refuse(self.job_context()))),
            // It may still read what it has asked for.
            Incoming::Closed => self.core.borrow_mut().close(CloseReason::Left),
        }
        Ok(Progress::Made)
    }

    /// Whether everything that is being answered was answered and written.
    fn is_done(&self, wrote: Progress, worked: Progress) -> bool {
        let nothing_moved = wrote == Progress::None && worked == Progress::None;
        let core = self.core.borrow();
        nothing_moved && self.job.is_none() && core.outbound.is_empty() && !core.is_waiting()
    }

    fn is_all_sent(&mut self, cx: &mut TaskContext<'_>) -> bool {
        let written = self.io.poll_write(cx, &mut false);
        matches!(written, Poll::Ready(Ok(()))) && self.core.borrow().outbound.is_empty()
    }

    fn end(&mut self, reason: CloseReason, cx: &mut TaskContext<'_>) {
        self.reason = reason;
        self.all_sent = self.is_all_sent(cx);
        match reason {
            CloseReason::Stalled => Counters::count(&self.services.counters.stalled),
            CloseReason::Inactive => Counters::count(&self.services.counters.inactive),
            CloseReason::Peer | CloseReason::Left | CloseReason::Shutdown => {}
        }
    }
}

fn broken(error: &io::Error) -> CloseReason {
    debug!(%error, "connection broke");
    CloseReason::Peer
}
