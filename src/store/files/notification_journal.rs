//! The notifications journal: what came and what went since the last orderly stop, so that a server that is killed loses
//! little of what waited.
//!
//! Lines are only appended, each with the number of a notification: `+NUMBER v1 ...` as in the notifications log, or
//! `-NUMBER`. When most of the file is of the past, it is written anew.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::new_file::NewFile;
use super::notification::Notification;
use super::text::{LineError, put_text};
use crate::store::transfer::{Damage, TransferError};

/// Lines of the past that are not worth writing the file anew.
const SLACK: u64 = 10_000;

/// A journal that is being written. Its file always ends with a whole line, but for a crash in the middle of a write.
pub struct NotificationJournal {
    path: PathBuf,
    file: File,
    /// Bytes that are whole lines.
    length: u64,
    lines: u64,
    live: HashSet<u64>,
}

impl NotificationJournal {
    /// Begins a journal with what waits; one that is there is replaced, at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create<'a>(
        path: &Path,
        waiting: impl IntoIterator<Item = (u64, &'a Notification)>,
    ) -> Result<Self, TransferError> {
        let mut new = NewFile::create(path)?;
        let mut live = HashSet::new();
        for (number, notification) in waiting {
            new.line(|line| put_added(line, number, notification))?;
            live.insert(number);
        }
        new.finish()?;
        Self::open(path, live)
    }

    fn open(path: &Path, live: HashSet<u64>) -> Result<Self, TransferError> {
        let file = OpenOptions::new().append(true).open(path).map_err(TransferError::file(path))?;
        let length = file.metadata().map_err(TransferError::file(path))?.len();
        Ok(NotificationJournal { path: path.to_owned(), file, length, lines: live.len() as u64, live })
    }

    /// Appends what came and what went. It is with the system then, and survives the end of the process.
    ///
    /// # Errors
    /// It cannot be written: nothing of it is there then, and it can be tried again.
    pub fn append(&mut self, added: &[(u64, Notification)], removed: &[u64]) -> Result<(), TransferError> {
        let mut text = Vec::new();
        for (number, notification) in added {
            put_added(&mut text, *number, notification);
            text.push(b'\n');
        }
        removed.iter().for_each(|number| put_text(&mut text, format_args!("-{number}\n")));
        if let Err(error) = self.file.write_all(&text) {
            // A part of it would make the next line one with it.
            let _ = self.file.set_len(self.length);
            return Err(TransferError::file(&self.path)(error));
        }
        self.length += text.len() as u64;
        self.lines += (added.len() + removed.len()) as u64;
        self.live.extend(added.iter().map(|(number, _)| *number));
        for number in removed {
            self.live.remove(number);
        }
        self.compact()
    }

    /// Writes the file anew, without what has gone, if that is most of it.
    fn compact(&mut self) -> Result<(), TransferError> {
        if self.lines <= SLACK + 4 * self.live.len() as u64 {
            return Ok(());
        }
        let (mut lines, mut new) = (Lines::open(&self.path)?, NewFile::create(&self.path)?);
        while let Some(line) = lines.next()? {
            let Ok(line) = line.whole() else { continue };
            if let Ok(Record::Added(number, _)) = Record::read(line)
                && self.live.contains(&number)
            {
                new.line(|copy| copy.extend_from_slice(line))?;
            }
        }
        new.finish()?;
        *self = Self::open(&self.path, std::mem::take(&mut self.live))?;
        Ok(())
    }

    /// Lines in the file.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// What a journal says that waits, in the order in which it came. What cannot be used is told to `damaged`.
///
/// # Errors
/// It cannot be read.
pub fn read_notification_journal(
    path: &Path,
    damaged: &mut dyn FnMut(Damage),
) -> Result<Vec<Notification>, TransferError> {
    let (mut lines, mut waiting) = (Lines::open(path)?, BTreeMap::new());
    loop {
        let record = match lines.next()? {
            None => return Ok(waiting.into_values().collect()),
            Some(line) => line.whole().and_then(Record::read),
        };
        match record {
            Ok(Record::Added(number, notification)) => drop(waiting.insert(number, notification)),
            Ok(Record::Removed(number)) => drop(waiting.remove(&number)),
            Err(reason) => damaged(lines.damage(reason)),
        }
    }
}

enum Record {
    Added(u64, Notification),
    Removed(u64),
}

impl Record {
    fn read(line: &[u8]) -> Result<Self, LineError> {
        const WRONG: LineError = LineError("not a line of a notifications journal");
        let (sign, rest) = line.split_first().ok_or(WRONG)?;
        let digits = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (number, rest) = rest.split_at(digits);
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).ok_or(WRONG)?;
        match (sign, rest.split_first()) {
            (b'+', Some((b' ', notification))) => Ok(Record::Added(number, Notification::read(notification)?)),
            (b'-', None) => Ok(Record::Removed(number)),
            _ => Err(WRONG),
        }
    }
}

fn put_added(line: &mut Vec<u8>, number: u64, notification: &Notification) {
    put_text(line, format_args!("+{number} "));
    notification.write(line);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::crypto::Nonce;
    use crate::protocol::{MessageId, QueueId};
    use crate::store::record::Timestamp;

    fn notification(n: u8) -> Notification {
        Notification {
            notifier: QueueId([n; 24]),
            message: MessageId([n; 24]),
            timestamp: Timestamp { seconds: 1_700_000_000 + i64::from(n), nanoseconds: 0 },
            nonce: Nonce([n; 24]),
            metadata: Bytes::from(vec![n; 144]),
        }
    }

    fn read(path: &Path) -> (Vec<Notification>, usize) {
        let mut damaged = 0;
        let found = read_notification_journal(path, &mut |_| damaged += 1).unwrap();
        (found, damaged)
    }

    #[test]
    fn what_was_added_and_not_removed_is_read_in_its_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = NotificationJournal::create(&path, [(3, &notification(3))]).unwrap();
        journal.append(&[(7, notification(7)), (5, notification(5))], &[]).unwrap();
        journal.append(&[(8, notification(8))], &[5, 3]).unwrap();
        assert_eq!(read(&path), (vec![notification(7), notification(8)], 0));
    }

    #[test]
    fn a_line_that_was_cut_or_is_none_is_damage_and_the_others_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = NotificationJournal::create(&path, []).unwrap();
        journal.append(&[(1, notification(1)), (2, notification(2))], &[]).unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.truncate(text.len() - 5);
        std::fs::write(&path, [b"-x\n+1\n\n-3 \n".as_slice(), &text].concat()).unwrap();
        assert_eq!(read(&path), (vec![notification(1)], 5));
    }

    #[test]
    fn a_journal_of_the_past_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = NotificationJournal::create(&path, [(0, &notification(1))]).unwrap();
        for round in 0..12 {
            let numbers = (1..=500).map(|n| round * 1000 + n);
            let added: Vec<_> = numbers.clone().map(|number| (number, notification(2))).collect();
            journal.append(&added, &[]).unwrap();
            journal.append(&[], &numbers.collect::<Vec<_>>()).unwrap();
        }
        assert!(journal.lines() < SLACK, "{}", journal.lines());
        journal.append(&[(99_999, notification(3))], &[]).unwrap();
        assert_eq!(read(&path), (vec![notification(1), notification(3)], 0));
    }
}
