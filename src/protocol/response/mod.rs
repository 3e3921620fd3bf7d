//! Responses and events: what the server sends. Spec: "SMP server messages".
//!
//! `Debug` shows the response's name only (and errors in full): never a body, key or ID.

mod codec;
mod queue_info;
mod time;

use std::fmt;

use bytes::Bytes;

pub use queue_info::{InfoTime, MessageInfo, QueueInfo, SubscriptionInfo, SubscriptionKind};

use super::certificate::CertificateChainKey;
use super::command::{LinkData, QueueMode, ServiceQueues};
use super::error::{CommandError, ErrorType};
use super::ids::EntityId;
use super::keys::PublicDhKey;
use super::version::VersionRange;

/// What the server sends.
#[derive(Clone, PartialEq, Eq)]
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
    Pkey(Bytes, VersionRange, CertificateChainKey),
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
    /// The queue's state.
    Info(QueueInfo),
    /// Done.
    Ok,
    /// Refused.
    Err(ErrorType),
    /// Answer to `PING`.
    Pong,
    /// A resolved name: a JSON object, passed on as it is.
    Rname(Bytes),
}

impl Response {
    /// The response's name, as it is sent by the newest version.
    pub fn name(&self) -> &'static str {
        match self {
            Response::Ids(_) => "IDS",
            Response::Lnk(..) => "LNK",
            Response::Sok(_) => "SOK",
            Response::Soks(_) => "SOKS",
            Response::Msg { .. } => "MSG",
            Response::Alls => "ALLS",
            Response::Nid(..) => "NID",
            Response::Nmsg { .. } => "NMSG",
            Response::Pkey(..) => "PKEY",
            Response::Rres(_) => "RRES",
            Response::Pres(_) => "PRES",
            Response::End => "END",
            Response::Ends(_) => "ENDS",
            Response::Deld => "DELD",
            Response::Info(_) => "INFO",
            Response::Ok => "OK",
            Response::Err(_) => "ERR",
            Response::Pong => "PONG",
            Response::Rname(_) => "RNAME",
        }
    }

    /// For clients: whether the entity ID is there or absent as this response demands.
    pub fn check_entity(&self, entity: &EntityId) -> Result<(), ErrorType> {
        let error = match self {
            Response::Ids(_) | Response::Err(_) => return Ok(()),
            Response::Pong | Response::Pkey(..) | Response::Rres(_) | Response::Alls | Response::Rname(_) => {
                (!entity.is_empty()).then_some(CommandError::HasAuth)
            }
            _ => entity.is_empty().then_some(CommandError::NoEntity),
        };
        error.map_or(Ok(()), |error| Err(ErrorType::Cmd(error)))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Response::Err(error) => write!(f, "Err({error:?})"),
            _ => write!(f, "{}(..)", self.name()),
        }
    }
}

/// `IDS`.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for QueueIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueIds").field("mode", &self.mode).finish_non_exhaustive()
    }
}
