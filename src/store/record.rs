//! Records: queues and messages as they are kept.

use bytes::Bytes;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::protocol::command::{LinkData, MessageFlags, QueueMode};
use crate::protocol::error::BlockingInfo;
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::{MessageId, QueueId, ServiceId};

/// A party by whose ID a queue is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Party {
    /// By recipient ID.
    Recipient,
    /// By sender ID.
    Sender,
    /// By notifier ID.
    Notifier,
    /// By link ID.
    Link,
}

/// A day: days since 1970-01-01. Queues remember on which day they were last used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Day(pub i32);

/// A time: seconds and nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

/// The X25519 secret of a queue, shared by server and recipient (or notifier's recipient).
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DhSecret(pub [u8; 32]);

impl PartialEq for DhSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for DhSecret {}

impl std::fmt::Debug for DhSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DhSecret(..)")
    }
}

/// Whether a queue takes messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueStatus {
    /// It does.
    Active,
    /// Suspended by its recipient (`OFF`): sending fails with `AUTH`.
    Off,
    /// Blocked by the operator.
    Blocked(BlockingInfo),
}

/// A notifier of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notifier {
    /// The notifier's ID of the queue.
    pub id: QueueId,
    /// Authorizes `NSUB`.
    pub key: PublicAuthKey,
    /// Encrypts notification metadata to the recipient.
    pub dh_secret: DhSecret,
    /// The service that the notifier is associated with.
    pub service: Option<ServiceId>,
}

/// A queue, without its link's data and messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueRecord {
    /// The recipient's ID of the queue, by which everything else refers to it.
    pub recipient_id: QueueId,
    /// The sender's ID of the queue.
    pub sender_id: QueueId,
    /// Any of these authorizes the recipient's commands; never empty.
    pub recipient_keys: Vec<PublicAuthKey>,
    /// Encrypts delivered messages to the recipient.
    pub dh_secret: DhSecret,
    /// Authorizes `SEND` once set.
    pub sender_key: Option<PublicAuthKey>,
    /// Mode; absent for queues made below version 9.
    pub mode: Option<QueueMode>,
    /// Status.
    pub status: QueueStatus,
    /// The link, if its data is set.
    pub link_id: Option<QueueId>,
    /// The notifier.
    pub notifier: Option<Notifier>,
    /// The service that the recipient is associated with.
    pub recipient_service: Option<ServiceId>,
    /// The day of its last use.
    pub updated_at: Option<Day>,
}

/// A queue to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewQueue {
    /// The record; `link_id` is set exactly when `link_data` is.
    pub record: QueueRecord,
    /// The data of its link.
    pub link_data: Option<LinkData>,
}

/// A message in a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its ID, also the nonce of its encryption.
    pub id: MessageId,
    /// Its number within the queue: each is greater than all before it, also across restarts and emptied queues.
    pub sequence: u64,
    /// When it was sent. Stores may round to whole seconds.
    pub timestamp: Timestamp,
    /// What it is.
    pub content: MessageContent,
}

/// What a message is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageContent {
    /// Sent by the sender.
    Sent {
        /// Flags.
        flags: MessageFlags,
        /// Body as sent, 0 to 16088 bytes.
        body: Bytes,
    },
    /// The marker that stands where the queue became full.
    Quota,
}

/// A client service that has shown its certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceRecord {
    /// Its ID, made by the server.
    pub id: ServiceId,
    /// What it does.
    pub role: ServiceRole,
    /// Its certificate first, then those that vouch for it; DER.
    pub certificate_chain: Vec<Bytes>,
    /// SHA-256 of the certificate that identifies it; no two services have the same.
    pub certificate_hash: Bytes,
    /// The day on which it was first seen.
    pub created_at: Day,
}
