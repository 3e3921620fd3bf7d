//! A store log as a source of services and queues.
//!
//! The log says how queues came to be what they are, so it has to be read to its end before the first queue is known; and it
//! may be larger than memory. Its records are done to a [`Scratch`] store, by the rules of the server that wrote them.

use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::store_log::{ServiceParty, StoreLogRecord};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};
use crate::store::record::{NewQueue, ServiceRecord};
use crate::store::sqlite::scratch::{self, Scratch, ServicePut};
use crate::store::transfer::{Damage, Item, Source, TransferError, file};
use crate::store::{Op, OpOutcome};

/// What is told while a log is replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replay {
    /// A line that cannot be used.
    Damaged(Damage),
    /// A line that is a record, and changes nothing; the reference only logs it.
    Ineffective {
        /// The line, from 1; 0 for what is found at the end of the log.
        line: u64,
        /// Why it changes nothing.
        why: Ineffective,
    },
    /// Bytes read, and bytes in all; after each `PROGRESS_LINES` lines.
    Progress(u64, u64),
}

/// Lines between two reports of progress.
pub const PROGRESS_LINES: u64 = 4096;

/// Why a record changes nothing, or not all that it says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Ineffective {
    /// There is or was such a queue, or one of its IDs belongs to another.
    #[error("a queue or one of its IDs is there already")]
    Duplicate,
    /// There was never such a queue.
    #[error("there is no such queue")]
    UnknownQueue,
    /// The queue was deleted before.
    #[error("the queue was deleted before")]
    DeletedQueue,
    /// The queue's state does not allow it: another sender key or link is set, or there is no notifier.
    #[error("the queue is not in a state for it")]
    Conflict,
    /// A service that is there already with another ID, certificate or role.
    #[error("a service is there already with another ID, certificate or role")]
    ServiceConflict,
    /// A queue's link ID cannot be one: the queue is taken without its link.
    #[error("a link's ID is not 24 bytes long")]
    UnusableLink,
    /// A queue belongs to a service that is not there: it is taken without it.
    #[error("there is no such service")]
    UnknownService,
}

/// The services and queues of a store log.
pub struct QueueLog {
    scratch: Scratch,
    /// Where the scratch file is, for errors.
    path: PathBuf,
    services: u64,
    queues: u64,
    yielded: u64,
    position: Position,
}

/// How far the source is.
enum Position {
    Services(Option<ServiceId>),
    Queues(Option<QueueId>, std::vec::IntoIter<NewQueue>),
}

/// Queues that are read at once: with the largest link data they have some megabytes.
const PAGE: u32 = 128;

impl QueueLog {
    /// Reads a log and does what its records say, in a scratch file beside it (the same name and `.replay.tmp`). If the
    /// reference was interrupted while it rewrote the log, the whole one is put back in its place first.
    ///
    /// # Errors
    /// The log cannot be read, or the scratch file not be written.
    pub fn replay(log: &Path, tell: &mut dyn FnMut(Replay)) -> Result<Self, TransferError> {
        put_back_interrupted(log)?;
        let mut lines = Lines::open(log)?;
        let path = file::with_suffix(log, ".replay.tmp");
        let scratch = Scratch::create(&path)?;
        let failed = scratch::failed(&path);
        replay_lines(&scratch, &mut lines, tell, &failed)?;
        for _ in 0..scratch.drop_unknown_services().map_err(&failed)? {
            tell(Replay::Ineffective { line: 0, why: Ineffective::UnknownService });
        }
        let (services, queues) = scratch.counts().map_err(&failed)?;
        Ok(QueueLog { scratch, path, services, queues, yielded: 0, position: Position::Services(None) })
    }

    /// Whether there is a queue with this recipient ID.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn contains(&self, recipient_id: &QueueId) -> Result<bool, TransferError> {
        self.scratch.has_queue(recipient_id).map_err(scratch::failed(&self.path))
    }

    /// Services and queues that the log has led to.
    pub fn counts(&self) -> (u64, u64) {
        (self.services, self.queues)
    }

    fn next_item(&mut self) -> rusqlite::Result<Option<Item>> {
        loop {
            match &mut self.position {
                Position::Services(after) => match self.scratch.service_after(*after)? {
                    None => self.position = Position::Queues(None, Vec::new().into_iter()),
                    Some((id, line)) => {
                        *after = Some(id);
                        if let Ok(StoreLogRecord::NewService(service)) = StoreLogRecord::read(&line) {
                            return Ok(Some(Item::Service(service)));
                        }
                    }
                },
                Position::Queues(after, page) => {
                    if let Some(queue) = page.next() {
                        return Ok(Some(Item::Queue(Box::new(queue))));
                    }
                    let next = self.scratch.queues_after(*after, PAGE)?;
                    let Some(last) = next.last() else { return Ok(None) };
                    *after = Some(last.record.recipient_id);
                    *page = next.into_iter();
                }
            }
        }
    }
}

/// Yields services, then queues in the order of their recipient IDs; damage was told while the log was replayed.
impl Source for QueueLog {
    fn next(&mut self, _damaged: &mut dyn FnMut(Damage)) -> Result<Option<Item>, TransferError> {
        let item = self.next_item().map_err(scratch::failed(&self.path))?;
        self.yielded += u64::from(item.is_some());
        Ok(item)
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.yielded, self.services + self.queues))
    }
}

/// Where the reference keeps a store log while it writes it anew: as long as that is there, what has the log's own name is
/// not whole.
pub(super) fn rewritten_from(log: &Path) -> PathBuf {
    file::with_suffix(log, ".start")
}

/// Whether there is a store log, be it one that the reference was interrupted in beginning to rewrite: then nothing has the
/// log's own name.
pub fn is_store_log_present(log: &Path) -> bool {
    file::is_present(log) || file::is_present(&rewritten_from(log))
}

/// Does what the reference does at its next start: the part that was written is kept as a backup, the whole log gets its
/// name back.
fn put_back_interrupted(log: &Path) -> Result<(), TransferError> {
    let whole = rewritten_from(log);
    if !file::is_present(&whole) {
        return Ok(());
    }
    if file::is_present(log) {
        file::back_up(log)?;
    }
    file::rename(&whole, log)
}

fn replay_lines(
    scratch: &Scratch,
    lines: &mut Lines,
    tell: &mut dyn FnMut(Replay),
    failed: &dyn Fn(rusqlite::Error) -> TransferError,
) -> Result<(), TransferError> {
    loop {
        let record = match lines.next()? {
            None => break,
            Some(line) => line.whole().and_then(StoreLogRecord::read),
        };
        match record {
            Err(reason) => tell(Replay::Damaged(lines.damage(reason))),
            Ok(record) => {
                let line = lines.number();
                let why = do_record(scratch, record).map_err(failed)?;
                why.into_iter().for_each(|why| tell(Replay::Ineffective { line, why }));
            }
        }
        if lines.number().is_multiple_of(PROGRESS_LINES) {
            let (done, total) = lines.progress();
            tell(Replay::Progress(done, total));
        }
    }
    Ok(())
}

type Effect = rusqlite::Result<Option<Ineffective>>;

/// Does what a record says; what it does not do is answered.
fn do_record(scratch: &Scratch, record: StoreLogRecord) -> Effect {
    use StoreLogRecord as Record;
    let op = match record {
        Record::CreateQueue(new) => return create(scratch, new),
        Record::CreateQueueWithoutLink(new) => {
            return create(scratch, new).map(|why| why.or(Some(Ineffective::UnusableLink)));
        }
        Record::SetUnusableLink { .. } => return Ok(Some(Ineffective::UnusableLink)),
        Record::NewService(service) => return new_service(scratch, service),
        Record::SetQueueService { queue, party, service } => return set_service(scratch, &queue, party, service),
        // Here a notifier ID is taken even if it is this queue's own.
        Record::SetNotifier { notifier, .. } if scratch.has_notifier(&notifier.id)? => {
            return Ok(Some(Ineffective::Duplicate));
        }
        Record::SetLink { queue, link_id, data } => Op::SetLink { queue, link_id, data },
        Record::DeleteLink { queue } => Op::DeleteLink { queue },
        Record::SecureQueue { queue, key } => Op::SecureQueue { queue, key },
        Record::SetRecipientKeys { queue, keys } => Op::SetRecipientKeys { queue, keys },
        Record::SetNotifier { queue, notifier } => Op::SetNotifier { queue, notifier },
        Record::DeleteNotifier { queue } => Op::DeleteNotifier { queue },
        Record::SuspendQueue { queue } => Op::SuspendQueue { queue },
        Record::BlockQueue { queue, info } => Op::BlockQueue { queue, info },
        Record::UnblockQueue { queue } => Op::UnblockQueue { queue },
        Record::DeleteQueue { queue } => Op::DeleteQueue { queue },
        Record::Touch { queue, day } => Op::Touch { queue, day },
    };
    change(scratch, &op)
}

/// The IDs of a deleted queue stay taken for the rest of the log: a log that holds something twice must not bring it back.
fn create(scratch: &Scratch, new: Box<NewQueue>) -> Effect {
    if scratch.was_deleted(&new.record.recipient_id)? {
        return Ok(Some(Ineffective::Duplicate));
    }
    match scratch.apply(&Op::CreateQueue(new))? {
        OpOutcome::Done => Ok(None),
        _ => Ok(Some(Ineffective::Duplicate)),
    }
}

fn change(scratch: &Scratch, op: &Op) -> Effect {
    match scratch.apply(op)? {
        OpOutcome::NoQueue => without_queue(scratch, op.queue()).map(Some),
        OpOutcome::Duplicate => Ok(Some(Ineffective::Duplicate)),
        OpOutcome::Conflict => Ok(Some(Ineffective::Conflict)),
        _ => {
            if let Op::DeleteQueue { queue } = op {
                scratch.remember_deleted(queue)?;
            }
            Ok(None)
        }
    }
}

fn without_queue(scratch: &Scratch, id: &QueueId) -> rusqlite::Result<Ineffective> {
    let deleted = scratch.was_deleted(id)?;
    Ok(if deleted { Ineffective::DeletedQueue } else { Ineffective::UnknownQueue })
}

fn set_service(scratch: &Scratch, queue: &QueueId, party: ServiceParty, service: Option<ServiceId>) -> Effect {
    let set = match party {
        ServiceParty::Recipient => scratch.set_recipient_service(queue, service)?,
        ServiceParty::Notifier => scratch.set_notifier_service(queue, service)?,
    };
    match set {
        true => Ok(None),
        false if scratch.has_queue(queue)? => Ok(Some(Ineffective::Conflict)),
        false => without_queue(scratch, queue).map(Some),
    }
}

/// A service stands in the scratch store as its own line.
fn new_service(scratch: &Scratch, service: Box<ServiceRecord>) -> Effect {
    let (id, hash) = (service.id, service.certificate_hash.clone());
    let role = match service.role {
        ServiceRole::Messaging => "M",
        ServiceRole::Notifier => "N",
        ServiceRole::Proxy => "P",
    };
    let mut line = Vec::new();
    StoreLogRecord::NewService(service).write(&mut line);
    let put = scratch.put_service(id, &hash, role, &line)?;
    Ok((put == ServicePut::Conflict).then_some(Ineffective::ServiceConflict))
}
