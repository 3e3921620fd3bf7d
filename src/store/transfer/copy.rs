//! The loop that moves items, and what it counts. It decides nothing: whether losses are accepted is for the caller, who
//! looks at the [`Tally`] before it finishes the sink.

use super::{Damage, Item, Put, Rejected, Sink, Source, TransferError};

/// Damages that are kept to be shown; all are counted.
pub const SHOWN_DAMAGES: usize = 20;

/// What came of a transfer, or of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Services that were stored (or read, in a check).
    pub services: u64,
    /// Queues that were stored.
    pub queues: u64,
    /// Messages that were stored.
    pub messages: u64,
    /// Items that were there already from an interrupted transfer.
    pub present: u64,
    /// Queues and services of which an ID was taken.
    pub duplicates: u64,
    /// Messages whose queue is not there.
    pub messages_without_queue: u64,
    /// What could not be read.
    pub damaged: u64,
    /// The first [`SHOWN_DAMAGES`] of these.
    pub damages: Vec<Damage>,
}

impl Tally {
    /// Items looked at so far.
    pub fn items(&self) -> u64 {
        self.services + self.queues + self.messages + self.present + self.duplicates + self.messages_without_queue
    }

    /// What did not arrive.
    pub fn losses(&self) -> u64 {
        self.duplicates + self.messages_without_queue + self.damaged
    }

    fn damage(&mut self, damage: Damage) {
        self.damaged += 1;
        if self.damages.len() < SHOWN_DAMAGES {
            self.damages.push(damage);
        }
    }

    fn count(&mut self, kind: Kind, put: Put) {
        let counter = match (put, kind) {
            (Put::Stored, Kind::Service) => &mut self.services,
            (Put::Stored, Kind::Queue) => &mut self.queues,
            (Put::Stored, Kind::Message) => &mut self.messages,
            (Put::Present, _) => &mut self.present,
            (Put::Duplicate, _) => &mut self.duplicates,
            (Put::NoQueue, _) => &mut self.messages_without_queue,
        };
        *counter += 1;
    }

    fn reject(&mut self, rejected: Rejected) {
        self.services = self.services.saturating_sub(rejected.duplicate_services);
        self.queues = self.queues.saturating_sub(rejected.duplicate_queues);
        self.messages = self.messages.saturating_sub(rejected.messages_without_queue);
        self.duplicates += rejected.duplicate_services + rejected.duplicate_queues;
        self.messages_without_queue += rejected.messages_without_queue;
    }
}

/// What an item is.
#[derive(Clone, Copy)]
enum Kind {
    Service,
    Queue,
    Message,
}

impl Kind {
    fn of(item: &Item) -> Kind {
        match item {
            Item::Service(_) => Kind::Service,
            Item::Queue(_) => Kind::Queue,
            Item::Message(..) => Kind::Message,
        }
    }
}

/// Told after each item how it goes: what was counted, and the source's [`Source::progress`].
pub type Watch<'a> = &'a mut dyn FnMut(&Tally, Option<(u64, u64)>);

/// Moves everything that `source` has to `sink` and adds it to `tally`. The sink is settled, not finished: more may follow
/// from another source.
///
/// # Errors
/// Those of the source and the sink; the transfer is over then.
pub fn copy(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    tally: &mut Tally,
    watch: Watch<'_>,
) -> Result<(), TransferError> {
    while let Some(item) = source.next(&mut |damage| tally.damage(damage))? {
        let kind = Kind::of(&item);
        let put = sink.put(item)?;
        tally.count(kind, put);
        watch(tally, source.progress());
    }
    tally.reject(sink.settle()?);
    Ok(())
}

/// Reads everything that `source` has and only counts it.
///
/// # Errors
/// Those of the source.
pub fn check(source: &mut dyn Source, tally: &mut Tally, watch: Watch<'_>) -> Result<(), TransferError> {
    while let Some(item) = source.next(&mut |damage| tally.damage(damage))? {
        tally.count(Kind::of(&item), Put::Stored);
        watch(tally, source.progress());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::fixtures;

    /// Damages before each queue.
    struct Damaged(u8);

    impl Source for Damaged {
        fn next(&mut self, damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
            let Some(left) = self.0.checked_sub(1) else { return Ok(None) };
            self.0 = left;
            damaged(Damage { file: "x.log".into(), line: left.into(), reason: "cut".into() });
            Ok(Some(Item::Queue(Box::new(fixtures::queue(left)))))
        }

        fn progress(&self) -> Option<(u64, u64)> {
            None
        }
    }

    /// Takes everything, and finds out at the end that two queues were there.
    struct Late;

    impl Sink for Late {
        fn put(&mut self, _: Item) -> Result<Put, TransferError> {
            Ok(Put::Stored)
        }

        fn settle(&mut self) -> Result<Rejected, TransferError> {
            Ok(Rejected { duplicate_queues: 2, ..Rejected::default() })
        }

        fn finish(self: Box<Self>) -> Result<(), TransferError> {
            Ok(())
        }
    }

    #[test]
    fn all_damages_are_counted_and_the_first_are_kept() {
        let (mut tally, mut seen) = (Tally::default(), 0);
        check(&mut Damaged(30), &mut tally, &mut |_, _| seen += 1).unwrap();
        assert_eq!((tally.queues, tally.damaged, tally.damages.len(), seen), (30, 30, SHOWN_DAMAGES, 30));
        assert_eq!(tally.damages[0].to_string(), "x.log:29: cut");
    }

    #[test]
    fn what_a_sink_rejects_late_is_not_counted_as_stored() {
        let mut tally = Tally::default();
        copy(&mut Damaged(5), &mut Late, &mut tally, &mut |_, _| {}).unwrap();
        assert_eq!((tally.queues, tally.duplicates, tally.losses(), tally.items()), (3, 2, 7, 5));
    }
}
