//! Loading the queues of a block, all at once.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::actors::connection::services::JobContext;
use crate::protocol::QueueId;
use crate::protocol::command::Command;
use crate::protocol::error::ErrorType;
use crate::protocol::transmission::ClientTransmission;
use crate::store::{Party, QueueRecord};

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
}

impl Records {
    /// Loads the queues of `commands` that are not loaded yet: one call of the store a party.
    pub async fn load(&mut self, cx: &JobContext, commands: &VecDeque<ClientTransmission>) -> Result<(), ErrorType> {
        for party in [Party::Recipient, Party::Sender, Party::Link, Party::Notifier] {
            let missing = self.missing(party, commands);
            if missing.is_empty() {
                continue;
            }
            let loaded = cx.services.store.queues(party, &missing).await.map_err(|e| super::store_error(cx, &e))?;
            self.records.extend(missing.into_iter().map(|id| (party, id)).zip(loaded));
        }
        Ok(())
    }

    fn missing(&self, party: Party, commands: &VecDeque<ClientTransmission>) -> Vec<QueueId> {
        let wanted: HashSet<QueueId> = commands
            .iter()
            .filter_map(|t| key(t).filter(|key| key.0 == party && !self.records.contains_key(key)))
            .map(|key| key.1)
            .collect();
        wanted.into_iter().collect()
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
