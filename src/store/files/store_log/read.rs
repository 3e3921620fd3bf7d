//! From lines to records.

use bytes::Bytes;

use super::{ServiceParty, StoreLogRecord};
use crate::protocol::command::{LinkData, QueueMode};
use crate::protocol::error::{BlockingInfo, BlockingReason, ClientNotice};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{QueueId, ServiceId};
use crate::store::files::text::{Fields, LineError};
use crate::store::record::{NewQueue, Notifier, QueueRecord, QueueStatus, ServiceRecord};

type Read<T> = Result<T, LineError>;

/// The record of a whole line.
pub(super) fn record(line: &[u8]) -> Read<StoreLogRecord> {
    let mut fields = Fields::of(line);
    let word = fields.until(b" ");
    fields.space()?;
    let fields = &mut fields;
    let record = match word {
        b"CREATE" => create(fields),
        b"NEW_SERVICE" => service(fields),
        _ => {
            let queue = queue_operation(word)?;
            let id = fields.queue_id()?;
            queue(id, fields)
        }
    }?;
    fields.end()?;
    Ok(record)
}

/// Reads what follows a queue's ID.
type Operation = fn(QueueId, &mut Fields<'_>) -> Read<StoreLogRecord>;

fn queue_operation(word: &[u8]) -> Read<Operation> {
    Ok(match word {
        b"LINK" => link,
        b"LDELETE" => |queue, _| Ok(StoreLogRecord::DeleteLink { queue }),
        b"SECURE" => |queue, fields| Ok(StoreLogRecord::SecureQueue { queue, key: fields.spaced(Fields::key)? }),
        b"KEYS" => |queue, fields| Ok(StoreLogRecord::SetRecipientKeys { queue, keys: fields.spaced(keys)? }),
        b"NOTIFIER" => |queue, fields| {
            let notifier = fields.spaced(notifier).map(Box::new)?;
            Ok(StoreLogRecord::SetNotifier { queue, notifier })
        },
        b"NDELETE" => |queue, _| Ok(StoreLogRecord::DeleteNotifier { queue }),
        b"SUSPEND" => |queue, _| Ok(StoreLogRecord::SuspendQueue { queue }),
        b"BLOCK" => |queue, fields| Ok(StoreLogRecord::BlockQueue { queue, info: fields.spaced(blocking)? }),
        b"UNBLOCK" => |queue, _| Ok(StoreLogRecord::UnblockQueue { queue }),
        b"DELETE" => |queue, _| Ok(StoreLogRecord::DeleteQueue { queue }),
        b"TIME" => |queue, fields| Ok(StoreLogRecord::Touch { queue, day: fields.spaced(Fields::day)? }),
        b"QUEUE_SERVICE" => queue_service,
        _ => return Err(LineError("not a record of a known kind")),
    })
}

fn create(fields: &mut Fields<'_>) -> Read<StoreLogRecord> {
    fields.expect(b"rid=", "rid= is missing")?;
    let recipient_id = fields.queue_id()?;
    fields.expect(b" rk=", "rk= is missing")?;
    let recipient_keys = keys(fields)?;
    fields.expect(b" rdh=", "rdh= is missing")?;
    let dh_secret = fields.dh_secret()?;
    fields.expect(b" sid=", "sid= is missing")?;
    let sender_id = fields.queue_id()?;
    fields.expect(b" sk=", "sk= is missing")?;
    let sender_key = if at_end_of_field(*fields) { None } else { Some(fields.key()?) };
    let mode = mode(fields)?;
    let link = fields.named(b" link_id=", create_link)?;
    let notifier = fields.named(b" notifier=", notifier)?;
    let updated_at = fields.named(b" updated_at=", Fields::day)?;
    let status = fields.named(b" status=", status)?.unwrap_or(QueueStatus::Active);
    let recipient_service = fields.named(b" rsrv=", Fields::service_id)?;
    let without_link = matches!(link, Some((None, _)));
    let (link_id, link_data) = match link {
        Some((Some(id), data)) => (Some(id), Some(data)),
        _ => (None, None),
    };
    let record = QueueRecord {
        recipient_id,
        sender_id,
        recipient_keys,
        dh_secret,
        sender_key,
        mode,
        status,
        link_id,
        notifier,
        recipient_service,
        updated_at,
    };
    let queue = Box::new(NewQueue { record, link_data });
    Ok(if without_link { StoreLogRecord::CreateQueueWithoutLink(queue) } else { StoreLogRecord::CreateQueue(queue) })
}

fn at_end_of_field(fields: Fields<'_>) -> bool {
    fields.rest().first().is_none_or(|byte| *byte == b' ')
}

/// Older versions only knew whether the sender may secure the queue, and before that not even that.
fn mode(fields: &mut Fields<'_>) -> Read<Option<QueueMode>> {
    if fields.take(b" sndSecure=") {
        let secured_by_sender = fields.flag("sndSecure is neither T nor F")?;
        return Ok(Some(if secured_by_sender { QueueMode::Messaging } else { QueueMode::Contact }));
    }
    fields.named(b" queue_mode=", |fields| match fields.byte() {
        Some(b'M') => Ok(QueueMode::Messaging),
        Some(b'C') => Ok(QueueMode::Contact),
        _ => Err(LineError("queue_mode is neither M nor C")),
    })
}

fn create_link(fields: &mut Fields<'_>) -> Read<(Option<QueueId>, LinkData)> {
    let id = link_id(fields)?;
    fields.expect(b" queue_data=", "queue_data= is missing")?;
    Ok((id, link_data(fields)?))
}

fn link(queue: QueueId, fields: &mut Fields<'_>) -> Read<StoreLogRecord> {
    let link_id = fields.spaced(link_id)?;
    let data = fields.spaced(link_data)?;
    Ok(match link_id {
        Some(link_id) => StoreLogRecord::SetLink { queue, link_id, data },
        None => StoreLogRecord::SetUnusableLink { queue },
    })
}

/// The reference takes IDs of any length from clients, and even an empty one.
fn link_id(fields: &mut Fields<'_>) -> Read<Option<QueueId>> {
    fields.base64("a link's ID is not in Base64").map(|id| QueueId::from_slice(&id))
}

fn link_data(fields: &mut Fields<'_>) -> Read<LinkData> {
    let part = |fields: &mut Fields<'_>| {
        fields.base64("a link's data is not in Base64").map(|part| Bytes::copy_from_slice(&part))
    };
    Ok(LinkData { fixed: part(fields)?, user: fields.spaced(part)? })
}

/// Keys with commas between them, one at least.
fn keys(fields: &mut Fields<'_>) -> Read<Vec<PublicAuthKey>> {
    let mut keys = vec![fields.key()?];
    while fields.take(b",") {
        keys.push(fields.key()?);
    }
    Ok(keys)
}

fn notifier(fields: &mut Fields<'_>) -> Read<Notifier> {
    let id = fields.queue_id()?;
    let key = fields.spaced(Fields::key)?;
    let dh_secret = fields.spaced(Fields::dh_secret)?;
    let service = fields.named(b" nsrv=", Fields::service_id)?;
    Ok(Notifier { id, key, dh_secret, service })
}

fn status(fields: &mut Fields<'_>) -> Read<QueueStatus> {
    if fields.take(b"blocked,") {
        return blocking(fields).map(QueueStatus::Blocked);
    }
    match fields.until(b" ") {
        b"active" => Ok(QueueStatus::Active),
        b"off" => Ok(QueueStatus::Off),
        _ => Err(LineError("status is neither active, off nor blocked")),
    }
}

fn blocking(fields: &mut Fields<'_>) -> Read<BlockingInfo> {
    fields.expect(b"reason=", "reason= is missing")?;
    let reason = match fields.until(b" ,") {
        b"spam" => BlockingReason::Spam,
        b"content" => BlockingReason::Content,
        _ => return Err(LineError("the reason is neither spam nor content")),
    };
    Ok(BlockingInfo { reason, notice: fields.named(b",notice=", notice)? })
}

/// JSON, which ends where its brackets close: a queue's service may follow.
fn notice(fields: &mut Fields<'_>) -> Read<ClientNotice> {
    let mut json = serde_json::Deserializer::from_slice(fields.rest()).into_iter();
    let notice = json.next().and_then(Result::ok).ok_or(LineError("the notice is not the JSON that it should be"))?;
    let length = json.byte_offset();
    fields.skip(length);
    Ok(notice)
}

fn queue_service(queue: QueueId, fields: &mut Fields<'_>) -> Read<StoreLogRecord> {
    let party = fields.spaced(|fields| match fields.byte() {
        Some(b'R') => Ok(ServiceParty::Recipient),
        Some(b'N') => Ok(ServiceParty::Notifier),
        _ => Err(LineError("the party is neither R nor N")),
    })?;
    let service = fields.spaced(optional_service)?;
    Ok(StoreLogRecord::SetQueueService { queue, party, service })
}

fn optional_service(fields: &mut Fields<'_>) -> Read<Option<ServiceId>> {
    (!at_end_of_field(*fields)).then(|| fields.service_id()).transpose()
}

fn service(fields: &mut Fields<'_>) -> Read<StoreLogRecord> {
    fields.expect(b"service_id=", "service_id= is missing")?;
    let id = fields.service_id()?;
    fields.expect(b" role=", "role= is missing")?;
    let role = match fields.byte() {
        Some(b'M') => ServiceRole::Messaging,
        Some(b'N') => ServiceRole::Notifier,
        Some(b'P') => ServiceRole::Proxy,
        _ => return Err(LineError("the role is none of M, N and P")),
    };
    fields.expect(b" cert=", "cert= is missing")?;
    let certificate_chain = certificates(fields)?;
    fields.expect(b" cert_hash=", "cert_hash= is missing")?;
    let certificate_hash = Bytes::copy_from_slice(&fields.base64("cert_hash is not in Base64")?);
    fields.expect(b" created_at=", "created_at= is missing")?;
    let created_at = fields.day()?;
    let service = ServiceRecord { id, role, certificate_chain, certificate_hash, created_at };
    Ok(StoreLogRecord::NewService(Box::new(service)))
}

/// DER with commas between, or nothing.
fn certificates(fields: &mut Fields<'_>) -> Read<Vec<Bytes>> {
    let mut certificates = Vec::new();
    if at_end_of_field(*fields) {
        return Ok(certificates);
    }
    loop {
        let der = fields.base64("a certificate is not in Base64")?;
        certificates.push(Bytes::copy_from_slice(&der));
        if !fields.take(b",") {
            return Ok(certificates);
        }
    }
}
