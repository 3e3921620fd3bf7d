//! Commands: what a client asks. Spec: "SMP commands".
//!
//! Fields of variable length are slices of the block that the command came in. `Debug` shows the command's name only:
//! never a body, key, password or ID.

mod codec;
mod rules;

use std::fmt;

use bytes::Bytes;

pub use rules::Party;

use super::address::{NameDomain, ServerAddress};
use super::ids::EntityId;
use super::keys::{PublicAuthKey, PublicDhKey};
use super::version::Version;

/// A client's command.
#[derive(Clone, PartialEq, Eq)]
pub enum Command {
    /// Create a queue.
    New(Box<NewQueueRequest>),
    /// Subscribe to a queue.
    Sub,
    /// Subscribe to all queues of a service: expected count (-1 unknown) and hash of their IDs.
    Subs(ServiceQueues),
    /// Secure the queue with the sender's key (by the recipient).
    Key(PublicAuthKey),
    /// Replace the recipient's keys.
    Rkey(Vec<PublicAuthKey>),
    /// Set the data of the queue's link.
    Lset(EntityId, LinkData),
    /// Delete the data of the queue's link.
    Ldel,
    /// Enable notifications.
    Nkey(PublicAuthKey, PublicDhKey),
    /// Disable notifications.
    Ndel,
    /// Get one message without subscribing.
    Get,
    /// Acknowledge a message by its ID; an empty ID acknowledges whichever was delivered.
    Ack(Bytes),
    /// Suspend the queue.
    Off,
    /// Delete the queue.
    Del,
    /// Ask for the queue's state.
    Que,
    /// Secure the queue (by the sender).
    Skey(PublicAuthKey),
    /// Send a message.
    Send(MessageFlags, Bytes),
    /// Keep the connection.
    Ping,
    /// Secure the queue and read its link's data.
    Lkey(PublicAuthKey),
    /// Read a contact link's data.
    Lget,
    /// Subscribe to a queue's notifications.
    Nsub,
    /// Subscribe to the notifications of all queues of a service.
    Nsubs(ServiceQueues),
    /// Ask a proxy to connect to a relay; the proxy's password.
    Prxy(ServerAddress, Option<Bytes>),
    /// Forward an encrypted transmission: version inside, key, encrypted transmission.
    Pfwd(Version, PublicDhKey, Bytes),
    /// Forwarded transmission from a proxy, encrypted.
    Rfwd(Bytes),
    /// Resolve a name.
    Rslv(NameDomain),
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(..)", self.name())
    }
}

/// Count and XOR hash of a service's queue IDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceQueues {
    /// Number of queues; -1 when the asker does not know (below version 19).
    pub count: i64,
    /// XOR of the MD5 hashes of their IDs.
    pub hash: IdsHash,
}

/// The XOR of MD5 hashes of entity IDs. Decoded from any length: what is shorter is zero-extended, longer is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdsHash(pub [u8; 16]);

/// `NEW`: what the recipient asks for.
#[derive(Clone, PartialEq, Eq)]
pub struct NewQueueRequest {
    /// Key that will authorize the recipient's commands.
    pub recipient_key: PublicAuthKey,
    /// The recipient's half of the secret that encrypts delivered messages.
    pub dh_key: PublicDhKey,
    /// The server's password for new queues.
    pub password: Option<Bytes>,
    /// Whether creating also subscribes.
    pub subscribe: bool,
    /// Mode, and link data with its IDs; absent before version 9.
    pub queue: Option<QueueRequest>,
    /// Notifier credentials (17+).
    pub notifier: Option<NewNotifier>,
}

impl fmt::Debug for NewQueueRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewQueueRequest")
            .field("subscribe", &self.subscribe)
            .field("queue", &self.queue)
            .field("notifier", &self.notifier.is_some())
            .finish_non_exhaustive()
    }
}

/// The mode of a new queue, with its link's data when it has a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueRequest {
    /// The sender may secure it.
    Messaging(Option<(EntityId, LinkData)>),
    /// Anyone may send; link ID, sender ID and data.
    Contact(Option<(EntityId, (EntityId, LinkData))>),
}

/// The mode of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum QueueMode {
    /// One sender, who may secure it (`M`).
    Messaging,
    /// A contact address (`C`).
    Contact,
}

impl QueueRequest {
    /// The mode asked for.
    pub fn mode(&self) -> QueueMode {
        match self {
            QueueRequest::Messaging(_) => QueueMode::Messaging,
            QueueRequest::Contact(_) => QueueMode::Contact,
        }
    }
}

/// The two encrypted parts of a link's data.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkData {
    /// Never changes.
    pub fixed: Bytes,
    /// May be replaced by the owner.
    pub user: Bytes,
}

impl fmt::Debug for LinkData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkData({} + {} bytes)", self.fixed.len(), self.user.len())
    }
}

/// Notifier key and the recipient's half of the notification secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNotifier {
    /// Key that authorizes `NSUB`.
    pub key: PublicAuthKey,
    /// The recipient's DH key.
    pub dh_key: PublicDhKey,
}

/// Flags of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageFlags {
    /// The recipient's notifier is to be told.
    pub notification: bool,
}
