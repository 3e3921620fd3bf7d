//! Random bytes from the operating system.

use bytes::Bytes;

use super::nonce::Nonce;
use crate::protocol::ids::{CorrelationId, MessageId, QueueId, ServiceId};

/// `N` unpredictable bytes.
///
/// # Panics
/// If the operating system has no randomness to give. Nothing that needs a key or an ID can go on without it, and
/// weaker randomness must never take its place.
pub fn random_array<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system gives no random bytes: {error}");
    }
    bytes
}

/// A new queue ID for one party.
pub fn random_queue_id() -> QueueId {
    QueueId(random_array())
}

/// A new message ID.
pub fn random_message_id() -> MessageId {
    MessageId(random_array())
}

/// A new correlation ID, for clients: as long as a nonce, because it is one for authenticators and forwarded commands.
pub fn random_correlation_id() -> CorrelationId {
    CorrelationId(Bytes::copy_from_slice(&random_array::<{ Nonce::LENGTH }>()))
}

/// A new service ID.
pub fn random_service_id() -> ServiceId {
    ServiceId(random_array())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_do_not_repeat() {
        assert_ne!(random_queue_id(), random_queue_id());
        assert_ne!(random_message_id(), random_message_id());
        assert_ne!(random_service_id(), random_service_id());
    }
}
