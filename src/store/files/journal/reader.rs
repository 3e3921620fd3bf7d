//! A journal directory as a source of messages.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::state::{Position, State};
use super::walk::{Found, Walk};
use super::{journal_path, state_path};
use crate::protocol::QueueId;
use crate::store::files::lines::Lines;
use crate::store::files::message;
use crate::store::transfer::file::with_suffix;
use crate::store::transfer::{Damage, Item, Source, TransferError};

/// The messages of a journal directory that are not read, queue by queue in the order of the directories' names.
///
/// Damage of a message is told with its file and line, damage of a state or a missing file with the file alone. The names
/// have the queue's recipient ID in them: they are for the operator's terminal, and not for a log.
pub struct JournalDirectory {
    walk: Walk,
    queue: Option<OpenQueue>,
}

impl JournalDirectory {
    /// Opens a directory.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        Ok(JournalDirectory { walk: Walk::of(path)?, queue: None })
    }
}

impl Source for JournalDirectory {
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        loop {
            if let Some(queue) = &mut self.queue
                && let Some(item) = queue.next(damaged)?
            {
                return Ok(Some(item));
            }
            match self.walk.next(damaged)? {
                None => return Ok(None),
                Some(found) => self.queue = OpenQueue::open(found, damaged)?,
            }
        }
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some(self.walk.progress())
    }
}

/// A queue whose messages are being read.
struct OpenQueue {
    id: QueueId,
    /// Parts of files that are to be read after this.
    ranges: VecDeque<Range>,
    reading: Option<Reading>,
}

impl OpenQueue {
    /// `None` if it has no messages or cannot be read.
    fn open(found: Found, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Self>, TransferError> {
        let path = state_path(&found.path, &found.id);
        let (state, wrong) = match read_state(&path)? {
            Some(tail) => last_state(&tail),
            None if has_messages(&found.path)? => {
                (None, Some("the file is missing, the queue's messages cannot be found"))
            }
            None => (None, None),
        };
        wrong.into_iter().for_each(|reason| damaged(Damage { file: path.clone(), line: 0, reason: reason.to_owned() }));
        let state = state.filter(|state| state.size > 0);
        Ok(state.map(|state| OpenQueue { id: found.queue, ranges: ranges(&found.path, &state), reading: None }))
    }

    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        loop {
            if let Some(reading) = &mut self.reading
                && let Some(message) = reading.next(damaged)?
            {
                return Ok(Some(Item::Message(self.id, Box::new(message))));
            }
            match self.ranges.pop_front() {
                None => return Ok(None),
                Some(range) => self.reading = range.open(damaged)?,
            }
        }
    }
}

/// Part of a file of messages.
struct Range {
    path: PathBuf,
    /// Messages before it.
    before: u64,
    messages: u64,
    /// The first byte, and the one after the last.
    bytes: (u64, u64),
}

/// Where a queue's messages are: behind what is read, and in the file that is written if that is another.
fn ranges(directory: &Path, state: &State) -> VecDeque<Range> {
    let State { read, write, .. } = state;
    let range = |position: &Position, before, from| Range {
        path: journal_path(directory, &position.journal),
        before,
        messages: position.message_count - before,
        bytes: (from, position.byte_count),
    };
    let mut ranges = VecDeque::from([range(read, read.messages, read.bytes)]);
    if read.journal != write.journal {
        ranges.push_back(range(write, 0, 0));
    }
    ranges.retain(|range| range.messages > 0);
    ranges
}

impl Range {
    /// `None` if the file is missing.
    fn open(self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Reading>, TransferError> {
        let Range { path, before, messages, bytes: (from, to) } = self;
        let failed = TransferError::file(&path);
        let whole_file = |reason: &str| Damage { file: path.clone(), line: 0, reason: reason.to_owned() };
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                damaged(whole_file(&format!("the file is missing, with {messages} messages in it")));
                return Ok(None);
            }
            other => other.map_err(failed)?,
        };
        if file.metadata().map_err(TransferError::file(&path))?.len() < to {
            damaged(whole_file("the file is shorter than the queue's state says"));
        }
        file.seek(SeekFrom::Start(from)).map_err(TransferError::file(&path))?;
        Ok(Some(Reading { lines: Lines::part(&path, file, to - from, before), left: messages }))
    }
}

/// A part of a file of messages that is being read.
struct Reading {
    lines: Lines,
    /// Messages that should still come.
    left: u64,
}

impl Reading {
    fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<crate::store::Message>, TransferError> {
        loop {
            let parsed = match self.lines.next()? {
                None => {
                    if std::mem::take(&mut self.left) > 0 {
                        damaged(self.lines.damage("messages that the queue's state counts are missing"));
                    }
                    return Ok(None);
                }
                Some(line) => line.whole().and_then(message::read),
            };
            self.left = self.left.saturating_sub(1);
            match parsed {
                Ok(message) => return Ok(Some(message)),
                Err(reason) => damaged(self.lines.damage(reason)),
            }
        }
    }
}

/// Two lines of a state are much shorter.
const STATE_TAIL_BYTES: u64 = 4096;

/// Whether there is a file of messages in a queue's directory with anything in it. Before the first message, the state is
/// there.
fn has_messages(directory: &Path) -> Result<bool, TransferError> {
    let failed = || TransferError::file(directory);
    for entry in fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_name().to_string_lossy().starts_with("messages.") && entry.metadata().map_err(failed())?.len() > 0
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The end of a queue's state; `None` if there is none. A state that is being replaced lies under another name until its
/// successor is written.
fn read_state(path: &Path) -> Result<Option<Vec<u8>>, TransferError> {
    for path in [&with_suffix(path, ".bak"), path] {
        match read_tail(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other.map(Some).map_err(TransferError::file(path)),
        }
    }
    Ok(None)
}

fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(STATE_TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(STATE_TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

/// The state in the last line, and what is wrong with the file. A last line that was cut counts for nothing: no message was
/// acknowledged by it. If a whole one is wrong, the line before it counts.
fn last_state(tail: &[u8]) -> (Option<State>, Option<&'static str>) {
    let usable = |line: &[u8]| State::read(line).ok().filter(State::is_valid);
    let (whole, cut) = match tail.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => (tail.get(..end).unwrap_or_default(), tail.get(end + 1..).unwrap_or_default()),
        None => (&[][..], tail),
    };
    if let Some(state) = usable(cut) {
        return (Some(state), None);
    }
    let mut lines = whole.rsplit(|byte| *byte == b'\n');
    let (last, before) = (lines.next().unwrap_or_default(), lines.next());
    match (usable(last), before.and_then(usable)) {
        (Some(state), _) => (Some(state), None),
        (None, None) if last.is_empty() => (None, None),
        (None, None) => (None, Some("the last line is not the state of a queue, its messages cannot be found")),
        (None, before) => (before, Some("the last line is not the state of a queue, the one before it was taken")),
    }
}
