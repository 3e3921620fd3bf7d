//! Identifiers: of queues, messages, services, sessions and transmissions.
//!
//! What the server makes and stores has a fixed size and is held by value ([`QueueId`]); what a peer sends may have any
//! length and is a slice of the block it came in ([`EntityId`], [`CorrelationId`]), alive only while that block is.

use std::fmt;

use bytes::Bytes;

use super::encoding::{Decode, DecodeError, Encode, Reader, put_short};

/// An entity ID as it stands in a transmission: 0 to 255 bytes, empty when there is no entity.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct EntityId(pub Bytes);

impl EntityId {
    /// The absent entity ID.
    pub const NONE: EntityId = EntityId(Bytes::new());

    /// Whether the transmission names no entity.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The queue (or link, or notifier) that this ID can name: only IDs of [`QueueId::LENGTH`] bytes name one.
    pub fn queue(&self) -> Option<QueueId> {
        QueueId::from_slice(&self.0)
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityId({} bytes)", self.0.len())
    }
}

/// A correlation ID: 0 to 255 bytes chosen by the client, repeated in the answer.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct CorrelationId(pub Bytes);

impl CorrelationId {
    /// The correlation ID of what the server sends unasked.
    pub const NONE: CorrelationId = CorrelationId(Bytes::new());
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CorrelationId({} bytes)", self.0.len())
    }
}

impl Encode for EntityId {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.0);
    }
}

impl Decode for EntityId {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.short().map(EntityId)
    }
}

impl Encode for CorrelationId {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.0);
    }
}

impl Decode for CorrelationId {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.short().map(CorrelationId)
    }
}

macro_rules! fixed_id {
    ($(#[$doc:meta])* $name:ident, $length:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub [u8; $length]);

        impl $name {
            /// Length in bytes.
            pub const LENGTH: usize = $length;

            /// The ID in `bytes`, if they are as long as an ID is.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }
        }

        impl From<$name> for Bytes {
            fn from(id: $name) -> Self {
                Bytes::copy_from_slice(&id.0)
            }
        }

        impl From<$name> for EntityId {
            fn from(id: $name) -> Self {
                EntityId(id.into())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

fixed_id!(
    /// A queue's ID for one of its parties: recipient, sender, notifier, or of its link. 24 random bytes.
    QueueId, 24
);
fixed_id!(
    /// A message's ID within the server, also the nonce of its encryption to the recipient. 24 random bytes.
    MessageId, 24
);
fixed_id!(
    /// A client service's ID. 24 random bytes.
    ServiceId, 24
);
fixed_id!(
    /// The session identifier: the client's TLS 1.3 Finished verify data.
    SessionId, 32
);
