//! A journal directory as a sink of messages.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::state::{Position, State};
use super::{id_text, journal_path, queue_directory, state_path};
use crate::protocol::QueueId;
use crate::protocol::crypto::random_array;
use crate::store::files::message;
use crate::store::files::text::put_base64;
use crate::store::record::{Message, MessageContent};
use crate::store::transfer::file::{rename, with_suffix};
use crate::store::transfer::{Item, Put, Sink, TransferError};

/// Writes a journal directory, which appears under its name when it is finished. Services and queues are passed over.
///
/// A queue has one file of messages, however many they are, and a state of one line. A queue that holds a quota marker
/// takes no messages until it is empty.
pub struct JournalWriter {
    path: PathBuf,
    beside: PathBuf,
    queue: Option<NewJournal>,
}

impl JournalWriter {
    /// Begins a journal directory; there must be none. What an attempt before has left is deleted.
    ///
    /// # Errors
    /// There is one, or it cannot be made.
    pub fn create(path: &Path) -> Result<Self, TransferError> {
        if path.exists() {
            return Err(TransferError::file(path)(io::ErrorKind::AlreadyExists.into()));
        }
        let beside = with_suffix(path, ".tmp");
        match fs::remove_dir_all(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(TransferError::file(&beside)(error)),
            _ => {}
        }
        make_directory(&beside)?;
        Ok(JournalWriter { path: path.to_owned(), beside, queue: None })
    }

    fn put_message(&mut self, queue: &QueueId, message: &Message) -> Result<(), TransferError> {
        let open = match self.queue.take().filter(|open| open.id == *queue) {
            Some(open) => open,
            None => NewJournal::open(&self.beside, *queue)?,
        };
        self.queue.insert(open).append(message)
    }
}

impl Sink for JournalWriter {
    fn put(&mut self, item: Item) -> Result<Put, TransferError> {
        if let Item::Message(queue, message) = &item {
            if self.queue.as_ref().is_some_and(|open| open.id != *queue) {
                self.queue.take().map(NewJournal::close).transpose()?;
            }
            self.put_message(queue, message)?;
        }
        Ok(Put::Stored)
    }

    fn finish(mut self: Box<Self>) -> Result<(), TransferError> {
        self.queue.take().map(NewJournal::close).transpose()?;
        // One wait for the disk, not one for each of a million files.
        let root = File::open(&self.beside).map_err(TransferError::file(&self.beside))?;
        rustix::fs::syncfs(&root).map_err(|error| TransferError::file(&self.beside)(error.into()))?;
        rename(&self.beside, &self.path)
    }
}

/// After it was finished there is nothing under that name any more.
impl Drop for JournalWriter {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here; the next attempt deletes it.
        let _ = fs::remove_dir_all(&self.beside);
    }
}

fn make_directory(path: &Path) -> Result<(), TransferError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(TransferError::file(path))
}

/// The journal of the queue that is being written.
struct NewJournal {
    id: QueueId,
    state_path: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    state: State,
    line: Vec<u8>,
}

impl NewJournal {
    /// Goes on with a queue that had messages before, or begins one.
    fn open(root: &Path, id: QueueId) -> Result<Self, TransferError> {
        let text = id_text(&id);
        let directory = queue_directory(root, &text);
        make_directory(&directory)?;
        let state_path = state_path(&directory, &text);
        let state = match fs::read(&state_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => empty_state(),
            Err(error) => return Err(TransferError::file(&state_path)(error)),
            Ok(line) => State::read(line.trim_ascii_end())
                .map_err(|error| TransferError::file(&state_path)(io::Error::other(error)))?,
        };
        let path = journal_path(&directory, &state.write.journal);
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let file = BufWriter::new(file.map_err(TransferError::file(&path))?);
        Ok(NewJournal { id, state_path, path, file, state, line: Vec::new() })
    }

    fn append(&mut self, message: &Message) -> Result<(), TransferError> {
        self.line.clear();
        message::write(&mut self.line, message);
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(TransferError::file(&self.path))?;
        let State { write, read, can_write, size } = &mut self.state;
        write.messages += 1;
        write.bytes += self.line.len() as u64;
        (write.message_count, write.byte_count) = (write.messages, write.bytes);
        (read.message_count, read.byte_count) = (write.messages, write.bytes);
        *size = write.messages;
        *can_write &= message.content != MessageContent::Quota;
        Ok(())
    }

    /// Writes what is left, then the state.
    fn close(mut self) -> Result<(), TransferError> {
        self.file.flush().map_err(TransferError::file(&self.path))?;
        let mut line = Vec::new();
        self.state.write(&mut line);
        line.push(b'\n');
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.state_path);
        file.and_then(|mut file| file.write_all(&line)).map_err(TransferError::file(&self.state_path))
    }
}

/// A queue without messages, with a new journal.
fn empty_state() -> State {
    let mut journal = Vec::with_capacity(16);
    put_base64(&mut journal, &random_array::<12>());
    let journal = String::from_utf8(journal).unwrap_or_default();
    let position = Position { journal, messages: 0, message_count: 0, bytes: 0, byte_count: 0 };
    State { write: position.clone(), read: position, can_write: true, size: 0 }
}
