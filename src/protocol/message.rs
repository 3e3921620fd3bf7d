//! Message bodies as delivered to the recipient, and metadata as delivered to the notifier. Spec: "Deliver queue message",
//! "Deliver message notification".
//!
//! Both are encrypted with a secret between the server and the recipient, and padded, so that who reads the connection
//! cannot tell which sent message is which received one, nor how long it is.

use bytes::Bytes;

use super::command::MessageFlags;
use super::crypto::{BOX_OVERHEAD, CryptoError, Nonce, SharedSecret};
use super::encoding::{Decode, DecodeError, Encode, Reader, put_i64, put_short};
use super::version::Version;

/// Length of what is delivered before encryption, in bytes, in every version: body and metadata of the largest message of
/// version 6.
const PADDED_BODY: usize = 16_106;
/// Length of the encrypted body of every delivered message, in bytes.
pub const ENCRYPTED_BODY: usize = PADDED_BODY + BOX_OVERHEAD;
/// Length of metadata for the notifier before encryption, in bytes.
const PADDED_METADATA: usize = 128;
/// How the body of the message that tells of a full queue begins.
const QUOTA: &[u8] = b"QUOTA ";

/// The longest body of `SEND` in this version, in bytes. What is sent through newer layers must leave room for them.
pub fn max_body_length(version: Version) -> usize {
    if version >= Version::ENCRYPTED_BLOCK {
        16_048
    } else if version >= Version::PROXY {
        16_064
    } else {
        16_088
    }
}

/// What a delivered message says. Times are seconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageBody {
    /// A message.
    Sent {
        /// When the server got it.
        seconds: i64,
        /// As the sender set them.
        flags: MessageFlags,
        /// As the sender sent it.
        body: Bytes,
    },
    /// The queue was full: messages sent after this were refused.
    Quota {
        /// When the queue got full.
        seconds: i64,
    },
}

impl MessageBody {
    /// The body of `MSG`, [`ENCRYPTED_BODY`] bytes. The nonce is the message's ID.
    ///
    /// # Errors
    /// [`CryptoError::TooLarge`] for a body that no version allows.
    pub fn seal(&self, secret: &SharedSecret, nonce: &Nonce) -> Result<Vec<u8>, CryptoError> {
        let mut sealed = Vec::new();
        secret.box_key().seal_padded_with(nonce, PADDED_BODY, &mut sealed, |out| self.encode(out))?;
        Ok(sealed)
    }

    /// Reads the body of `MSG`, as the recipient does.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`], or [`CryptoError::Padding`] when what is inside is malformed.
    pub fn open(secret: &SharedSecret, nonce: &Nonce, body: &[u8]) -> Result<Self, CryptoError> {
        let content = secret.box_key().open_padded(nonce, body)?;
        Self::decode_all(&content.into()).map_err(|_| CryptoError::Padding)
    }
}

impl Encode for MessageBody {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            MessageBody::Sent { seconds, flags, body } => {
                put_i64(out, *seconds);
                flags.encode(out);
                out.push(b' ');
                out.extend_from_slice(body);
            }
            MessageBody::Quota { seconds } => {
                out.extend_from_slice(QUOTA);
                put_i64(out, *seconds);
            }
        }
    }
}

impl Decode for MessageBody {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if reader.rest().starts_with(QUOTA) {
            reader.literal(QUOTA)?;
            return Ok(MessageBody::Quota { seconds: reader.i64()? });
        }
        let seconds = reader.i64()?;
        let flags = reader.get()?;
        reader.space()?;
        Ok(MessageBody::Sent { seconds, flags, body: reader.tail() })
    }
}

/// What a notifier may pass on of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotificationMetadata {
    /// The message's ID.
    pub message_id: Bytes,
    /// When the server got the message, seconds since 1970.
    pub timestamp: i64,
}

impl NotificationMetadata {
    /// The body of `NMSG`, 144 bytes, for the recipient; the notifier cannot read it.
    ///
    /// # Errors
    /// [`CryptoError::TooLarge`] for message IDs that no server makes.
    pub fn seal(&self, secret: &SharedSecret, nonce: &Nonce) -> Result<Vec<u8>, CryptoError> {
        let mut sealed = Vec::new();
        secret.box_key().seal_padded_with(nonce, PADDED_METADATA, &mut sealed, |out| self.encode(out))?;
        Ok(sealed)
    }

    /// Reads the body of `NMSG`, as the recipient does.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`], or [`CryptoError::Padding`] when what is inside is malformed.
    pub fn open(secret: &SharedSecret, nonce: &Nonce, body: &[u8]) -> Result<Self, CryptoError> {
        let content = Bytes::from(secret.box_key().open_padded(nonce, body)?);
        // What follows is left for later versions.
        Self::decode(&mut Reader::new(&content)).map_err(|_| CryptoError::Padding)
    }
}

impl Encode for NotificationMetadata {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.message_id);
        put_i64(out, self.timestamp);
    }
}

impl Decode for NotificationMetadata {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(NotificationMetadata { message_id: reader.short()?, timestamp: reader.i64()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::protocol::crypto::sha256;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    /// The message of a case: the bodies of large ones are all `m`.
    fn message(case: &Value) -> MessageBody {
        let decrypted = &case["decrypted_by_client"];
        let seconds = decrypted["timestamp"].as_i64().expect("a time");
        if decrypted["quota"].is_boolean() {
            return MessageBody::Quota { seconds };
        }
        let flags = MessageFlags { notification: decrypted["notification"].as_bool().expect("a flag") };
        let body = match case["plaintext"]["length"].as_u64() {
            None => bytes(&decrypted["body"]),
            Some(length) => vec![b'm'; usize::try_from(length).expect("a length") - 10],
        };
        MessageBody::Sent { seconds, flags, body: body.into() }
    }

    #[test]
    fn delivered_messages_are_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        let vectors = &vectors["message_body"];
        let secret = SharedSecret::from_bytes(array(&vectors["dh_secret"]));
        let checked = cases(&vectors["cases"], |case| {
            let message = message(case);
            match case["plaintext"].as_str() {
                Some(_) => assert_eq!(message.encoded(), bytes(&case["plaintext"])),
                None => assert_eq!(sha256(&message.encoded()).as_slice(), bytes(&case["plaintext"]["sha256"])),
            }
            let nonce = Nonce::from_bytes(&bytes(&case["msg_id"]));
            let sealed = message.seal(&secret, &nonce).expect("fits");
            assert_eq!(sealed.len(), ENCRYPTED_BODY);
            assert_eq!(sha256(&sealed).as_slice(), bytes(&case["encrypted_sha256"]));
            assert_eq!(MessageBody::open(&secret, &nonce, &sealed), Ok(message));
        });
        assert_eq!(checked, 6);
    }

    #[test]
    fn notification_metadata_is_that_of_the_reference() {
        let vectors = vectors("crypto.json");
        let case = &vectors["notification_meta"];
        let secret = SharedSecret::from_bytes(array(&case["dh_secret"]));
        let message_id = bytes(&case["msg_id"]).into();
        let meta = NotificationMetadata { message_id, timestamp: case["timestamp"].as_i64().expect("a time") };
        assert_eq!(meta.encoded(), bytes(&case["plaintext"]));
        let nonce = Nonce(array(&case["nonce"]));
        let sealed = meta.seal(&secret, &nonce).expect("fits");
        assert_eq!(sealed, bytes(&case["encrypted"]));
        assert_eq!(NotificationMetadata::open(&secret, &nonce, &sealed), Ok(meta));
    }

    #[test]
    fn the_longest_body_depends_on_the_version() {
        let checked = cases(&vectors("crypto.json")["message_body"]["max_body_length_of_send"], |case| {
            let number = |name: &str| case[name].as_u64().expect("a number");
            for version in number("from")..=number("to").min(20) {
                let version = Version(u16::try_from(version).expect("a version"));
                assert_eq!(max_body_length(version) as u64, number("max"));
            }
        });
        assert_eq!(checked, 3);
    }

    #[test]
    fn a_body_that_no_version_allows_is_refused() {
        let message =
            MessageBody::Sent { seconds: 0, flags: MessageFlags::default(), body: vec![0; PADDED_BODY - 11].into() };
        let result = message.seal(&SharedSecret::from_bytes([0; 32]), &Nonce([0; 24]));
        assert_eq!(result, Err(CryptoError::TooLarge));
    }

    proptest! {
        #[test]
        fn messages_come_back(
            seconds in 0i64..=0xffff_ffff_ffff, notification: bool,
            body in prop::collection::vec(any::<u8>(), 0..500),
        ) {
            let flags = MessageFlags { notification };
            let message = MessageBody::Sent { seconds, flags, body: body.into() };
            prop_assert_eq!(MessageBody::decode_all(&message.encoded().into())?, message);
            let quota = MessageBody::Quota { seconds };
            prop_assert_eq!(MessageBody::decode_all(&quota.encoded().into())?, quota);
        }

        #[test]
        fn no_content_panics(content in prop::collection::vec(any::<u8>(), 0..64)) {
            let content = Bytes::from(content);
            let _ = (MessageBody::decode_all(&content), NotificationMetadata::decode_all(&content));
        }
    }
}
