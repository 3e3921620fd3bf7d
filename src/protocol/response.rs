//! Responses and events: what the server sends. Spec: "SMP server messages".

use bytes::Bytes;

use super::command::{LinkData, QueueMode, ServiceQueues};
use super::error::ErrorType;
use super::ids::EntityId;
use super::keys::PublicDhKey;
use super::version::VersionRange;

/// What the server sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// IDs and keys of a new queue.
    Ids(Box<QueueIds>),
    /// A link's data: sender ID and data.
    Lnk(EntityId, LinkData),
    /// Subscribed; the service ID in a service's session.
    Sok(Option<EntityId>),
    /// A service subscribed to this many queues.
    Soks(ServiceQueues),
    /// A message: its ID and body, encrypted to the recipient.
    Msg {
        /// The message ID, also the nonce.
        id: Bytes,
        /// Encrypted body.
        body: Bytes,
    },
    /// All messages of a service's queues were sent.
    Alls,
    /// Notifier ID and the server's half of the notification secret.
    Nid(EntityId, PublicDhKey),
    /// A notification: nonce and encrypted metadata.
    Nmsg {
        /// Nonce.
        nonce: [u8; 24],
        /// Encrypted metadata.
        meta: Bytes,
    },
    /// A proxy's session with a relay: session ID, versions, the relay's certificate chain and signed key.
    Pkey(Bytes, VersionRange, super::certificate::CertificateChainKey),
    /// Response to a proxy.
    Rres(Bytes),
    /// Response to a proxy's client.
    Pres(Bytes),
    /// The subscription went to another connection.
    End,
    /// A service's subscription went to another connection.
    Ends(ServiceQueues),
    /// The queue was deleted.
    Deld,
    /// The queue's state, JSON.
    Info(QueueInfo),
    /// Done.
    Ok,
    /// Refused.
    Err(ErrorType),
    /// Answer to `PING`.
    Pong,
    /// A resolved name: JSON.
    Rname(Bytes),
}

/// `IDS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueIds {
    /// The queue for its recipient.
    pub recipient_id: EntityId,
    /// The queue for its sender.
    pub sender_id: EntityId,
    /// The server's half of the delivery secret.
    pub dh_key: PublicDhKey,
    /// Mode (9+).
    pub mode: Option<QueueMode>,
    /// Link (15+).
    pub link_id: Option<EntityId>,
    /// Service (16+).
    pub service_id: Option<EntityId>,
    /// Notifier ID and the server's half of the notification secret (17+).
    pub notifier: Option<(EntityId, PublicDhKey)>,
}

/// `INFO`, sent as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueInfo {
    /// The sender's key is set.
    pub secured: bool,
    /// Notifications are enabled.
    pub notifications: bool,
    /// The asking connection's subscription.
    pub subscription: Option<SubscriptionInfo>,
    /// Messages in the queue.
    pub size: u64,
    /// The first message.
    pub message: Option<MessageInfo>,
}

/// State of a subscription in [`QueueInfo`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubscriptionInfo {
    /// What kind.
    pub kind: SubscriptionKind,
    /// ID of the delivered, not acknowledged message, base64url.
    pub delivered: Option<String>,
}

/// Kinds of subscription in [`SubscriptionInfo`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubscriptionKind {
    /// Waiting for messages.
    NoSub,
    /// A delivery waits for the outbound queue.
    SubPending,
    /// A delivery is being made.
    SubThread,
    /// Made by `GET`.
    ProhibitSub,
}

/// A message in [`QueueInfo`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageInfo {
    /// ID, base64url.
    pub id: String,
    /// Seconds since 1970.
    pub timestamp: i64,
    /// Whether it is a message or the quota marker.
    pub quota: bool,
}
