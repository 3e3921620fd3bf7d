//! Loading the queues of a block, all at once.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::actors::connection::services::JobContext;
use crate::actors::registry::Mark;
use crate::protocol::QueueId;
use crate::protocol::command::Command;
use crate::protocol::error::ErrorType;
use crate::protocol::transmission::ClientTransmission;
use crate::store::{Contents, Party, QueueRecord, StoreError};

/// By whose ID a command names its queue; `None` for commands without a queue.
pub fn party(command: &Command) -> Option<Party> {
    use Command as C;
    match command {
        C::Sub
        | C::Key(_)
        | C::Rkey(_)
        | C::Lset(..)
        | C::Ldel
        | C::Nkey(..)
        | C::Ndel
        | C::Get
        | C::Ack(_)
        | C::Off
        | C::Del
        | C::Que => Some(Party::Recipient),
        C::Skey(_) | C::Send(..) => Some(Party::Sender),
        C::Lkey(_) | C::Lget => Some(Party::Link),
        C::Nsub => Some(Party::Notifier),
        C::New(_) | C::Subs(_) | C::Nsubs(_) | C::Ping | C::Prxy(..) | C::Pfwd(..) | C::Rfwd(_) | C::Rslv(_) => None,
    }
}

/// The queues of a block. A block has at most 255 commands, and so this has at most 255 records.
#[derive(Debug, Default)]
pub struct Records {
    records: HashMap<(Party, QueueId), Option<QueueRecord>>,
    /// Those that are there and cannot be read, and what is answered to their commands.
    unreadable: HashMap<(Party, QueueId), ErrorType>,
    /// Queues to be subscribed that were empty when their marks stood here.
    empty: HashMap<QueueId, Mark>,
}

impl Records {
    /// Loads the queues of `commands` that are not loaded yet: one call of the store a party.
    pub async fn load(&mut self, cx: &JobContext, commands: &VecDeque<ClientTransmission>) -> Result<(), ErrorType> {
        for party in [Party::Recipient, Party::Sender, Party::Link, Party::Notifier] {
            let mut missing = self.missing(party, commands);
            if missing.is_empty() {
                continue;
            }
            let subscribes = party == Party::Recipient && commands.iter().any(|t| t.command == Command::Sub);
            let mut loaded = self.ask(cx, party, &missing, subscribes).await;
            if let Err(failure @ StoreError::Unreadable { places, .. }) = &loaded {
                let answer = super::store_error(cx, failure);
                let unreadable = places.iter().filter_map(|place| missing.get(*place));
                self.unreadable.extend(unreadable.map(|id| ((party, *id), answer.clone())));
                missing.retain(|id| !self.unreadable.contains_key(&(party, *id)));
                loaded = self.ask(cx, party, &missing, subscribes).await;
            }
            let loaded = loaded.map_err(|failure| super::store_error(cx, &failure))?;
            self.records.extend(missing.into_iter().map(|id| (party, id)).zip(loaded));
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        cx: &JobContext,
        party: Party,
        ids: &[QueueId],
        subscribes: bool,
    ) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        match subscribes {
            _ if ids.is_empty() => Ok(Vec::new()),
            true => self.load_to_subscribe(cx, ids).await,
            false => cx.services.store.queues(party, ids).await,
        }
    }

    /// The queues, remembering which are empty: they need not be looked at once they are subscribed.
    async fn load_to_subscribe(
        &mut self,
        cx: &JobContext,
        ids: &[QueueId],
    ) -> Result<Vec<Option<QueueRecord>>, StoreError> {
        let marks: Vec<Mark> = ids.iter().map(|id| cx.services.registry.mark(id)).collect();
        let loaded = cx.services.store.queues_to_subscribe(ids).await?;
        let mut records = Vec::with_capacity(loaded.len());
        for (loaded, mark) in loaded.into_iter().zip(marks) {
            records.push(loaded.map(|(record, contents)| {
                match contents {
                    Contents::Empty => self.empty.insert(record.recipient_id, mark),
                    Contents::Unknown => self.empty.remove(&record.recipient_id),
                };
                record
            }));
        }
        Ok(records)
    }

    /// What to answer to a command whose queue cannot be read.
    pub fn failure(&self, transmission: &ClientTransmission) -> Option<ErrorType> {
        self.unreadable.get(&key(transmission)?).cloned()
    }

    /// Since when the queue that a command subscribes to is known to be empty.
    pub fn empty_since(&self, transmission: &ClientTransmission) -> Option<Mark> {
        self.empty.get(&key(transmission)?.1).copied()
    }

    fn missing(&self, party: Party, commands: &VecDeque<ClientTransmission>) -> Vec<QueueId> {
        let wanted: HashSet<QueueId> = commands
            .iter()
            .filter_map(|t| key(t).filter(|key| key.0 == party && !self.knows(key)))
            .map(|key| key.1)
            .collect();
        wanted.into_iter().collect()
    }

    fn knows(&self, key: &(Party, QueueId)) -> bool {
        self.records.contains_key(key) || self.unreadable.contains_key(key)
    }

    /// The queue that a command names, if there is one.
    pub fn of(&self, transmission: &ClientTransmission) -> Option<&QueueRecord> {
        self.records.get(&key(transmission)?)?.as_ref()
    }

    /// Forgets queues that are being changed, and the absent ones if some are created.
    pub fn forget(&mut self, changed: &HashSet<QueueId>, creates: bool) {
        self.records.retain(|_, record| match record {
            Some(record) => !changed.contains(&record.recipient_id),
            None => !creates,
        });
    }
}

fn key(transmission: &ClientTransmission) -> Option<(Party, QueueId)> {
    Some((party(&transmission.command)?, transmission.entity_id.queue()?))
}
