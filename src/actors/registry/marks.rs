//! Marks: whether a queue that was seen empty may hold a message, or be gone, by now.
//!
//! A subscriber looks at a queue before its authorization is verified, and is registered after. What happened in between
//! found no subscriber. So whoever puts the first message into a queue, or deletes it, moves the queue's mark before it
//! asks the registry whom to tell; a subscriber whose mark has not moved when it is registered has missed nothing, and one
//! whose mark moved looks again. Queues share marks: a mark that moved for another queue costs a look.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::protocol::QueueId;

/// Marks that there are: at 1,000 messages a second to empty queues, the mark of a queue moves every 16 s without cause.
const MARKS: usize = 16 * 1024;

/// Where a mark stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(u32);

/// All marks: 64 KiB, for any number of queues.
#[derive(Debug)]
pub struct Marks {
    counts: Box<[AtomicU32]>,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { counts: (0..MARKS).map(|_| AtomicU32::new(0)).collect() }
    }
}

impl Marks {
    /// Where the mark of a queue (by recipient ID) stands. Only what happens after this moves it.
    pub fn of(&self, queue: &QueueId) -> Mark {
        Mark(self.count(queue).map_or(0, |count| count.load(Ordering::SeqCst)))
    }

    /// Moves the mark of a queue: after the change was committed, before the registry is asked.
    pub fn note(&self, queue: &QueueId) {
        if let Some(count) = self.count(queue) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Recipient IDs are random, and by the server: any of their bytes spread them evenly.
    fn count(&self, queue: &QueueId) -> Option<&AtomicU32> {
        let number = queue.0.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        self.counts.get(number as usize % MARKS)
    }
}
