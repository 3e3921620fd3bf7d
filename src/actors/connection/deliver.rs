//! Messages as they are sent to the recipient: encrypted with the queue's secret.

use bytes::Bytes;
use tracing::error;

use super::block::Sending;
use super::core::message_sent;
use crate::protocol::MessageId;
use crate::protocol::crypto::{Nonce, SharedSecret};
use crate::protocol::message::MessageBody;
use crate::protocol::response::Response;
use crate::store::{DhSecret, Message, MessageContent};

/// `MSG` with a stored message.
pub fn message_response(message: &Message, dh_secret: &DhSecret) -> Response {
    message_sent(message.id, encrypt_stored(message, dh_secret))
}

/// The encrypted body of a stored message.
pub fn encrypt_stored(message: &Message, dh_secret: &DhSecret) -> Bytes {
    let seconds = message.timestamp.seconds;
    let body = match &message.content {
        MessageContent::Sent { flags, body } => MessageBody::Sent { seconds, flags: *flags, body: body.clone() },
        MessageContent::Quota => MessageBody::Quota { seconds },
    };
    encrypt(&message.id, body, dh_secret)
}

/// The encrypted body of a message that was just sent.
pub fn encrypt_sent(sending: &Sending) -> Bytes {
    let Sending { id, timestamp, flags, body, dh_secret, .. } = sending;
    encrypt(id, MessageBody::Sent { seconds: timestamp.seconds, flags: *flags, body: body.clone() }, dh_secret)
}

fn encrypt(id: &MessageId, body: MessageBody, dh_secret: &DhSecret) -> Bytes {
    let shared = SharedSecret::from_bytes(dh_secret.0);
    match body.seal(&shared, &Nonce::from(id)) {
        Ok(sealed) => sealed.into(),
        Err(failure) => {
            // Larger than any version allows: no SEND stores it. The recipient gets past it by acknowledging.
            error!(%failure, "a stored message can not be encrypted");
            Bytes::new()
        }
    }
}
