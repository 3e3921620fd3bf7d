//! SQL on services: their certificates, and which queues are associated with them. Each function is one step inside the
//! caller's transaction.
//!
//! The number of a service's queues and the hash of their IDs stand in its row and are changed with every queue that comes
//! or goes, so that telling them costs a look at one row, whatever the number of queues.

use rusqlite::{Connection, OptionalExtension, params};

use super::columns;
use super::queues::{self, QueueRow};
use crate::protocol::command::{IdsHash, ServiceQueues};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::{QueueId, ServiceId};
use crate::store::record::ServiceRecord;
use crate::store::{Audience, Enrolled, NewQueue, OpOutcome, ServiceCheck};

/// [`Store::enrol`](crate::store::Store::enrol).
pub(super) fn enrol(connection: &Connection, service: &ServiceRecord) -> rusqlite::Result<Enrolled> {
    let found: Option<(ServiceId, ServiceRole)> = connection
        .prepare_cached("SELECT service_id, role FROM services WHERE certificate_hash = ?1")?
        .query_row([&service.certificate_hash[..]], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((id, role)) if role == service.role => Ok(Enrolled::Known(id)),
        Some(_) => Ok(Enrolled::OtherRole),
        None => insert(connection, service, "INSERT").map(|_| Enrolled::New),
    }
}

/// Inserts a service by a verb of SQL; answers whether it did.
pub(super) fn insert(connection: &Connection, service: &ServiceRecord, verb: &str) -> rusqlite::Result<bool> {
    let sql = format!(
        "{verb} INTO services (service_id, role, certificate_chain, certificate_hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)"
    );
    let chain = columns::certificate_chain(&service.certificate_chain);
    let inserted = connection.prepare_cached(&sql)?.execute(params![
        service.id,
        service.role,
        chain,
        &service.certificate_hash[..],
        service.created_at
    ])?;
    Ok(inserted > 0)
}

/// [`Store::service_queues`](crate::store::Store::service_queues).
pub(super) fn queues_of(
    connection: &Connection,
    service: ServiceId,
    role: ServiceRole,
) -> rusqlite::Result<Option<ServiceQueues>> {
    connection
        .prepare_cached("SELECT queue_count, queue_ids_hash FROM services WHERE service_id = ?1 AND role = ?2")?
        .query_row(params![service, role], |row| Ok(ServiceQueues { count: row.get(0)?, hash: row.get(1)? }))
        .optional()
}

/// [`Store::waiting_queues`](crate::store::Store::waiting_queues).
pub(super) fn waiting_queues(
    connection: &Connection,
    service: ServiceId,
    after: Option<QueueId>,
    limit: usize,
) -> rusqlite::Result<Vec<QueueId>> {
    let after: &[u8] = after.as_ref().map_or(&[], |id| &id.0);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT recipient_id FROM queues WHERE recipient_service = ?1 AND recipient_id > ?2 \
             AND EXISTS (SELECT 1 FROM messages WHERE messages.queue = queues.queue) ORDER BY recipient_id LIMIT ?3",
        )?
        .query_map(params![service, after, limit], |row| row.get(0))?
        .collect()
}

/// [`Op::AssociateRecipient`](crate::store::Op::AssociateRecipient).
pub(super) fn associate_recipient(
    connection: &Connection,
    queue: QueueRow,
    id: &QueueId,
    service: Option<ServiceId>,
) -> rusqlite::Result<OpOutcome> {
    let was = connection
        .prepare_cached("SELECT recipient_service FROM queues WHERE queue = ?1")?
        .query_row([queue], |row| row.get(0))?;
    let set = "UPDATE queues SET recipient_service = ?2 WHERE queue = ?1";
    associate(connection, queue, Association { role: ServiceRole::Messaging, id: *id, was, set }, service)
}

/// [`Op::AssociateNotifier`](crate::store::Op::AssociateNotifier).
pub(super) fn associate_notifier(
    connection: &Connection,
    queue: QueueRow,
    id: &QueueId,
    service: Option<ServiceId>,
) -> rusqlite::Result<OpOutcome> {
    let found: Option<Option<ServiceId>> = connection
        .prepare_cached("SELECT notifier_service FROM queues WHERE queue = ?1 AND notifier_id = ?2")?
        .query_row(params![queue, id], |row| row.get(0))
        .optional()?;
    let Some(was) = found else { return Ok(OpOutcome::Conflict) };
    let set = "UPDATE queues SET notifier_service = ?2 WHERE queue = ?1";
    associate(connection, queue, Association { role: ServiceRole::Notifier, id: *id, was, set }, service)
}

/// One of the two associations that a queue has.
struct Association {
    role: ServiceRole,
    /// What services of the role count.
    id: QueueId,
    was: Option<ServiceId>,
    /// The statement that sets it.
    set: &'static str,
}

fn associate(
    connection: &Connection,
    queue: QueueRow,
    association: Association,
    service: Option<ServiceId>,
) -> rusqlite::Result<OpOutcome> {
    let Association { role, id, was, set } = association;
    if was != service {
        if !add(connection, service, role, &id)? {
            return Ok(OpOutcome::Conflict);
        }
        remove(connection, was, role, &id)?;
        connection.prepare_cached(set)?.execute(params![queue, service])?;
    }
    Ok(OpOutcome::Associated { was })
}

/// Counts a queue that comes to a service. Whether there is such a service, or none was named.
pub(super) fn add(
    connection: &Connection,
    service: Option<ServiceId>,
    role: ServiceRole,
    id: &QueueId,
) -> rusqlite::Result<bool> {
    count(connection, service, role, id, 1)
}

/// Counts a queue that leaves a service.
pub(super) fn remove(
    connection: &Connection,
    service: Option<ServiceId>,
    role: ServiceRole,
    id: &QueueId,
) -> rusqlite::Result<()> {
    count(connection, service, role, id, -1).map(drop)
}

fn count(
    connection: &Connection,
    service: Option<ServiceId>,
    role: ServiceRole,
    id: &QueueId,
    change: i64,
) -> rusqlite::Result<bool> {
    let Some(service) = service else { return Ok(true) };
    let Some(mut queues) = queues_of(connection, service, role)? else { return Ok(false) };
    queues.count += change;
    queues.hash.toggle(&id.0);
    keep(connection, service, queues)?;
    Ok(true)
}

fn keep(connection: &Connection, service: ServiceId, queues: ServiceQueues) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE services SET queue_count = ?2, queue_ids_hash = ?3 WHERE service_id = ?1")?
        .execute(params![service, queues.count, queues.hash])?;
    Ok(())
}

/// [`Store::check_services`](crate::store::Store::check_services).
pub(super) fn check(connection: &Connection, repair: bool) -> rusqlite::Result<Vec<ServiceCheck>> {
    let services: Vec<(ServiceId, ServiceRole, ServiceQueues)> = connection
        .prepare("SELECT service_id, role, queue_count, queue_ids_hash FROM services ORDER BY service")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, ServiceQueues { count: row.get(2)?, hash: row.get(3)? })))?
        .collect::<rusqlite::Result<_>>()?;
    let mut checks = Vec::with_capacity(services.len());
    for (service, role, kept) in services {
        let counted = counted(connection, service, role)?;
        if repair && counted != kept {
            keep(connection, service, counted)?;
        }
        checks.push(ServiceCheck { service, role, kept, counted });
    }
    Ok(checks)
}

fn counted(connection: &Connection, service: ServiceId, role: ServiceRole) -> rusqlite::Result<ServiceQueues> {
    let mut queues = ServiceQueues { count: 0, hash: IdsHash::default() };
    let sql = match role {
        ServiceRole::Messaging => "SELECT recipient_id FROM queues WHERE recipient_service = ?1",
        ServiceRole::Notifier => {
            "SELECT notifier_id FROM queues WHERE notifier_service = ?1 AND notifier_id IS NOT NULL"
        }
        ServiceRole::Proxy => return Ok(queues),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut ids = statement.query([service])?;
    while let Some(row) = ids.next()? {
        queues.count += 1;
        queues.hash.toggle(row.get_ref(0)?.as_blob()?);
    }
    Ok(queues)
}

/// Counts the queues of all services again, after rows were written without counting.
pub(super) fn recount(connection: &Connection) -> rusqlite::Result<()> {
    check(connection, true).map(drop)
}

/// The services of a queue that is deleted no longer count it.
pub(super) fn forget(connection: &Connection, id: &QueueId, audience: &Audience) -> rusqlite::Result<()> {
    remove(connection, audience.service, ServiceRole::Messaging, id)?;
    if let Some(notifier) = &audience.notifier {
        remove(connection, notifier.service, ServiceRole::Notifier, &notifier.id)?;
    }
    Ok(())
}

/// The services of a queue that was created count it.
pub(super) fn note_created(connection: &Connection, new: &NewQueue) -> rusqlite::Result<()> {
    let record = &new.record;
    add(connection, record.recipient_service, ServiceRole::Messaging, &record.recipient_id)?;
    if let Some(notifier) = &record.notifier {
        add(connection, notifier.service, ServiceRole::Notifier, &notifier.id)?;
    }
    Ok(())
}

/// Who has to do with a queue beside its recipient and sender.
pub(super) fn audience(connection: &Connection, queue: QueueRow, with_notifier: bool) -> rusqlite::Result<Audience> {
    connection
        .prepare_cached(
            "SELECT recipient_service, notifier_id, notifier_key, notifier_dh_secret, notifier_service \
             FROM queues WHERE queue = ?1",
        )?
        .query_row([queue], |row| {
            let notifier = if with_notifier { queues::read_notifier(row, 1)?.map(Box::new) } else { None };
            Ok(Audience { service: row.get(0)?, notifier })
        })
}
