//! From records to lines, byte for byte as the reference writes them.

use super::{ServiceParty, StoreLogRecord};
use crate::protocol::QueueId;
use crate::protocol::command::{LinkData, QueueMode};
use crate::protocol::encoding::Encode;
use crate::protocol::error::BlockingInfo;
use crate::protocol::keys::PublicAuthKey;
use crate::store::files::text::{Put, put_base64, put_list, put_named};
use crate::store::record::{NewQueue, Notifier, QueueStatus, ServiceRecord};

type Line = Vec<u8>;

/// Appends the record.
pub(super) fn record(record: &StoreLogRecord, line: &mut Line) {
    use StoreLogRecord as Record;
    match record {
        Record::CreateQueue(new) | Record::CreateQueueWithoutLink(new) => create(line, new),
        Record::SetLink { queue, link_id, data } => {
            about(line, "LINK ", queue);
            put_named(line, " ", link_id);
            put_named(line, " ", data);
        }
        Record::SetUnusableLink { queue } => about(line, "LINK ", queue),
        Record::DeleteLink { queue } => about(line, "LDELETE ", queue),
        Record::SecureQueue { queue, key } => {
            about(line, "SECURE ", queue);
            put_named(line, " ", key);
        }
        Record::SetRecipientKeys { queue, keys } => {
            about(line, "KEYS ", queue);
            put_named(line, " ", &keys[..]);
        }
        Record::SetNotifier { queue, notifier } => {
            about(line, "NOTIFIER ", queue);
            put_named(line, " ", &**notifier);
        }
        Record::DeleteNotifier { queue } => about(line, "NDELETE ", queue),
        Record::SuspendQueue { queue } => about(line, "SUSPEND ", queue),
        Record::BlockQueue { queue, info } => {
            about(line, "BLOCK ", queue);
            put_named(line, " ", info);
        }
        Record::UnblockQueue { queue } => about(line, "UNBLOCK ", queue),
        Record::DeleteQueue { queue } => about(line, "DELETE ", queue),
        Record::Touch { queue, day } => {
            about(line, "TIME ", queue);
            put_named(line, " ", day);
        }
        Record::NewService(service) => new_service(line, service),
        Record::SetQueueService { queue, party, service } => {
            about(line, "QUEUE_SERVICE ", queue);
            line.extend_from_slice(match party {
                ServiceParty::Recipient => b" R ",
                ServiceParty::Notifier => b" N ",
            });
            service.iter().for_each(|service| service.put(line));
        }
    }
}

/// A record's word and its queue.
fn about(line: &mut Line, word: &str, queue: &QueueId) {
    put_named(line, word, queue);
}

/// A field that may be absent.
fn put_optional(line: &mut Line, name: &str, value: Option<&impl Put>) {
    value.iter().for_each(|value| put_named(line, name, *value));
}

fn create(line: &mut Line, new: &NewQueue) {
    let record = &new.record;
    put_named(line, "CREATE rid=", &record.recipient_id);
    put_named(line, " rk=", &record.recipient_keys[..]);
    put_named(line, " rdh=", &record.dh_secret);
    put_named(line, " sid=", &record.sender_id);
    line.extend_from_slice(b" sk=");
    record.sender_key.iter().for_each(|key| key.put(line));
    line.extend_from_slice(match record.mode {
        None => b"",
        Some(QueueMode::Messaging) => b" queue_mode=M",
        Some(QueueMode::Contact) => b" queue_mode=C",
    });
    if let (Some(link_id), Some(data)) = (&record.link_id, &new.link_data) {
        put_named(line, " link_id=", link_id);
        put_named(line, " queue_data=", data);
    }
    put_optional(line, " notifier=", record.notifier.as_ref());
    put_optional(line, " updated_at=", record.updated_at.as_ref());
    match &record.status {
        QueueStatus::Active => {}
        QueueStatus::Off => line.extend_from_slice(b" status=off"),
        QueueStatus::Blocked(info) => put_named(line, " status=blocked,", info),
    }
    put_optional(line, " rsrv=", record.recipient_service.as_ref());
}

fn new_service(line: &mut Line, service: &ServiceRecord) {
    put_named(line, "NEW_SERVICE service_id=", &service.id);
    line.extend_from_slice(b" role=");
    service.role.encode(line);
    line.extend_from_slice(b" cert=");
    put_list(line, &service.certificate_chain, |line, der| put_base64(line, der));
    line.extend_from_slice(b" cert_hash=");
    put_base64(line, &service.certificate_hash);
    put_named(line, " created_at=", &service.created_at);
}

impl Put for [PublicAuthKey] {
    fn put(&self, line: &mut Line) {
        put_list(line, self, |line, key| key.put(line));
    }
}

impl Put for LinkData {
    fn put(&self, line: &mut Line) {
        put_base64(line, &self.fixed);
        line.push(b' ');
        put_base64(line, &self.user);
    }
}

impl Put for Notifier {
    fn put(&self, line: &mut Line) {
        self.id.put(line);
        put_named(line, " ", &self.key);
        put_named(line, " ", &self.dh_secret);
        put_optional(line, " nsrv=", self.service.as_ref());
    }
}

impl Put for BlockingInfo {
    fn put(&self, line: &mut Line) {
        self.encode(line);
    }
}
