//! What a connection is told by others.

use actix::Message;
use bytes::Bytes;

use super::subscription::Delivered;
use crate::actors::registry::Epoch;
use crate::protocol::QueueId;

/// Something happened to a queue that the connection is subscribed to.
#[derive(Message)]
#[rtype(result = "()")]
pub enum ConnectionEvent {
    /// A message was sent to it.
    Deliver(Delivery),
    /// A message was perhaps sent to it, or it was perhaps deleted: the store failed and cannot tell. It is to be asked
    /// again.
    Doubt {
        /// The queue.
        queue: QueueId,
    },
    /// Another connection subscribed to it.
    Ended {
        /// The queue.
        queue: QueueId,
        /// Which of this connection's subscriptions ended.
        epoch: Epoch,
    },
    /// It was deleted.
    Deleted {
        /// The queue.
        queue: QueueId,
    },
    /// It was released from the service whose connection this is, or has gone to another one. The store knows whether it
    /// has come back since.
    Released {
        /// The queue.
        queue: QueueId,
    },
    /// Notifications wait for this connection.
    NotificationsWait,
    /// Another connection has perhaps subscribed to a notifier, or its service has.
    NotifierEnded {
        /// The notifier's ID of the queue.
        notifier: QueueId,
    },
    /// A notifier was replaced or removed, or its queue deleted.
    NotifierDeleted {
        /// The notifier's ID of the queue.
        notifier: QueueId,
    },
    /// Another connection of the service has taken over.
    ServiceEnded {
        /// Which of this connection's subscriptions ended.
        epoch: Epoch,
    },
}

impl std::fmt::Debug for ConnectionEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ConnectionEvent::Deliver(_) => "Deliver",
            ConnectionEvent::Doubt { .. } => "Doubt",
            ConnectionEvent::Ended { .. } => "Ended",
            ConnectionEvent::Deleted { .. } => "Deleted",
            ConnectionEvent::Released { .. } => "Released",
            ConnectionEvent::NotificationsWait => "NotificationsWait",
            ConnectionEvent::NotifierEnded { .. } => "NotifierEnded",
            ConnectionEvent::NotifierDeleted { .. } => "NotifierDeleted",
            ConnectionEvent::ServiceEnded { .. } => "ServiceEnded",
        })
    }
}

/// A message for a subscribed queue.
pub struct Delivery {
    /// The queue, by recipient ID.
    pub queue: QueueId,
    /// Which message.
    pub message: Delivered,
    /// Its body, encrypted to the recipient: 16122 bytes.
    pub body: Bytes,
}
