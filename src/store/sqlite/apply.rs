//! One operation inside the writer's transaction: finds its queue and does its one step.

use rusqlite::Connection;

use super::queues::QueueRow;
use super::{messages, queues, services};
use crate::store::record::QueueStatus;
use crate::store::{Op, OpOutcome};

/// Does all of `ops` in their order, with an outcome for each.
pub(super) fn apply_all(connection: &Connection, ops: &[Op], quota: u32) -> rusqlite::Result<Vec<OpOutcome>> {
    ops.iter().map(|op| apply(connection, op, quota)).collect()
}

/// Does one operation.
pub(super) fn apply(connection: &Connection, op: &Op, quota: u32) -> rusqlite::Result<OpOutcome> {
    if let Op::CreateQueue(new) = op {
        return queues::create(connection, new);
    }
    match queues::find(connection, op.queue())? {
        None => Ok(OpOutcome::NoQueue),
        Some((queue, active)) => apply_to(connection, op, queue, active, quota),
    }
}

fn apply_to(
    connection: &Connection,
    op: &Op,
    queue: QueueRow,
    active: bool,
    quota: u32,
) -> rusqlite::Result<OpOutcome> {
    match op {
        Op::CreateQueue(_) => Ok(OpOutcome::Duplicate),
        Op::SecureQueue { key, .. } => queues::secure(connection, queue, key),
        Op::SetRecipientKeys { keys, .. } => queues::set_recipient_keys(connection, queue, keys),
        Op::SetLink { link_id, data, .. } => queues::set_link(connection, queue, *link_id, data),
        Op::DeleteLink { .. } => queues::delete_link(connection, queue),
        Op::AssociateRecipient { queue: id, service } => services::associate_recipient(connection, queue, id, *service),
        Op::AssociateNotifier { notifier, service, .. } => {
            services::associate_notifier(connection, queue, notifier, *service)
        }
        Op::SetNotifier { notifier, .. } => queues::set_notifier(connection, queue, Some(notifier)),
        Op::DeleteNotifier { .. } => queues::set_notifier(connection, queue, None),
        Op::SuspendQueue { .. } => queues::set_status(connection, queue, &QueueStatus::Off),
        Op::BlockQueue { info, .. } => queues::set_status(connection, queue, &QueueStatus::Blocked(info.clone())),
        Op::UnblockQueue { .. } => queues::set_status(connection, queue, &QueueStatus::Active),
        Op::DeleteQueue { queue: id } => queues::delete(connection, queue, id),
        Op::Touch { day, .. } => queues::touch(connection, queue, *day),
        Op::Send(_) if !active => Ok(OpOutcome::Conflict),
        Op::Send(message) => messages::send(connection, queue, message, quota),
        Op::Acknowledge { message, with_next, .. } => messages::acknowledge(connection, queue, *message, *with_next),
    }
}
