//! What the commands that move queues and messages share: they show how far they are, count what they met, tell of damage,
//! and refuse to finish over it unless the operator has said so.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::Console;
use super::error::CommandError;
use crate::store::transfer::{Damage, Item, Put, Rejected, Sink, Source, TransferError};

/// Damaged places that are shown; of more there is only the number.
const SHOWN: u64 = 20;

/// Between two lines of progress where there is no terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// Where progress is shown: a bar on a terminal, or a line now and then.
pub struct Progress {
    label: String,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    /// Progress of what `label` says, on standard error if that is a terminal.
    pub fn new(label: impl Into<String>) -> Self {
        let label = label.into();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let bar = (!bar.is_hidden()).then_some(bar);
        if let Some((bar, style)) = bar.as_ref().zip(ProgressStyle::with_template(TEMPLATE).ok()) {
            bar.set_style(style);
            bar.set_message(label.clone());
        }
        Progress { label, bar, last_line: Instant::now() }
    }

    /// How far it is: parts done and parts in all.
    pub fn at(&mut self, progress: Option<(u64, u64)>, console: &mut Console<'_>) -> Result<(), CommandError> {
        let Some((done, total)) = progress else { return Ok(()) };
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        } else if self.last_line.elapsed() >= LINE_PAUSE {
            self.last_line = Instant::now();
            let percent = (done * 100).checked_div(total).unwrap_or(100);
            console.say(format_args!("{}: {percent} %", self.label))?;
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

const TEMPLATE: &str = "{msg} [{bar:40}] {percent} % {elapsed_precise} (left: {eta})";

/// What a transfer met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Services that are there now.
    pub services: u64,
    /// Queues that are there now.
    pub queues: u64,
    /// Messages that are there now.
    pub messages: u64,
    /// Items that could not be stored because one of their IDs is taken.
    pub duplicates: u64,
    /// Messages of queues that do not exist.
    pub without_queue: u64,
    /// Damaged places.
    pub damaged: u64,
}

impl Tally {
    /// Notes a damaged place, and shows it if it is one of the first.
    pub fn damaged(&mut self, damage: &Damage, console: &mut Console<'_>) -> Result<(), CommandError> {
        self.damaged += 1;
        if self.damaged <= SHOWN {
            // Under a service manager, standard output is a log.
            match std::io::stdout().is_terminal() {
                true => console.say(damage)?,
                false => console.say(damage.for_logs())?,
            }
        } else if self.damaged == SHOWN + 1 {
            console.say("(more damaged places are only counted)")?;
        }
        Ok(())
    }

    fn count(&mut self, kind: Kind, put: Put) {
        match put {
            Put::Stored | Put::Present => *self.stored(kind) += 1,
            Put::Duplicate => self.duplicates += 1,
            Put::NoQueue => self.without_queue += 1,
        }
    }

    /// Takes back what a sink has found out to be no item that it can store.
    fn reject(&mut self, rejected: Rejected) {
        self.services = self.services.saturating_sub(rejected.duplicate_services);
        self.queues = self.queues.saturating_sub(rejected.duplicate_queues);
        self.messages = self.messages.saturating_sub(rejected.messages_without_queue);
        self.duplicates += rejected.duplicate_services + rejected.duplicate_queues;
        self.without_queue += rejected.messages_without_queue;
    }

    fn stored(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Service => &mut self.services,
            Kind::Queue => &mut self.queues,
            Kind::Message => &mut self.messages,
        }
    }

    /// Refuses to go on if anything would be lost, unless the operator accepts that.
    ///
    /// # Errors
    /// What would be lost, and what to do.
    pub fn check(&self, skip_warnings: bool) -> Result<(), CommandError> {
        let losses = [
            (self.damaged, "damaged lines or files"),
            (self.without_queue, "messages of queues that do not exist"),
            (self.duplicates, "queues or services with IDs that are taken"),
        ];
        let losses: Vec<_> = losses.iter().filter(|(count, _)| *count > 0).collect();
        if losses.is_empty() || skip_warnings {
            return Ok(());
        }
        let losses: Vec<_> = losses.iter().map(|(count, what)| format!("{count} {what}")).collect();
        Err(CommandError::refused(format!(
            "{} would be left out.\nNothing was changed. Mend them, or pass --skip-warnings to go on without them.",
            losses.join(", ")
        )))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Service,
    Queue,
    Message,
}

impl Kind {
    fn of(item: &Item) -> Self {
        match item {
            Item::Service(_) => Kind::Service,
            Item::Queue(_) => Kind::Queue,
            Item::Message(..) => Kind::Message,
        }
    }
}

/// Items between two looks at the progress.
const PROGRESS_ITEMS: u64 = 1024;

/// Moves everything from `source` to `sink`, which is not finished here, and adds to `tally` what became of it.
///
/// # Errors
/// One of the two failed, or the terminal.
pub fn move_all(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    label: &str,
    tally: &mut Tally,
    console: &mut Console<'_>,
) -> Result<(), CommandError> {
    let mut progress = Progress::new(label);
    for items in 0_u64.. {
        if items.is_multiple_of(PROGRESS_ITEMS) {
            progress.at(source.progress(), console)?;
        }
        let mut told = Ok(());
        let next = source.next(&mut |damage| {
            if told.is_ok() {
                told = tally.damaged(&damage, console);
            }
        });
        told?;
        let Some(item) = next? else { break };
        let kind = Kind::of(&item);
        let put = sink.put(item)?;
        tally.count(kind, put);
    }
    tally.reject(sink.settle()?);
    Ok(())
}

impl From<TransferError> for CommandError {
    fn from(error: TransferError) -> Self {
        CommandError::Refused(error.to_string())
    }
}
