//! All SQL of the running store. Each statement does one operation, or one call of the trait, wholly: its conditions are
//! in it, and its row tells the outcome. A statement that changes a queue answers no row when there is no such queue.
//!
//! The counters of a queue (`msg_queue_size`, `msg_can_write`, `msg_queue_expire`) are kept as the Haskell server's own
//! functions keep them, so that it can go on with them. Rows whose `deleted_at` is set are not there.

mod messages;
mod queues;
mod reads;
mod services;
mod sweep;

pub(super) use messages::{ACKNOWLEDGE, SEND};
pub(super) use queues::*;
pub(super) use reads::*;
pub(super) use services::*;
pub(super) use sweep::{DUE, EXPIRE, PURGE};

/// What every connection prepares before it is used.
pub(super) const ALL: &[&str] = &[
    LOCK,
    CREATE,
    EXISTS,
    SECURE,
    SET_RECIPIENT_KEYS,
    SET_LINK,
    DELETE_LINK,
    SET_NOTIFIER,
    SET_STATUS,
    TOUCH,
    DELETE,
    MARK_DELETED,
    SEND,
    ACKNOWLEDGE,
    RECORDS_BY_RECIPIENT,
    RECORDS_BY_SENDER,
    RECORDS_BY_NOTIFIER,
    RECORDS_BY_LINK,
    FIRST_MESSAGES,
    STATES,
    LINK_DATA,
    COUNTS,
    LOCK_SERVICES,
    ASSOCIATE_RECIPIENT,
    ASSOCIATE_NOTIFIER,
    ENROL,
    SERVICE_QUEUES,
    WAITING_QUEUES,
    DUE,
    EXPIRE,
    PURGE,
];
