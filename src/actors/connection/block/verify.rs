//! May this client give this command? Spec: "Cryptographic signing / authorization" and "Command authentication".
//!
//! Whether a queue exists must not show in the time that an `ERR AUTH` takes: whatever is wrong, one verification of the
//! kind that the client's authorization asks for is done.

use crate::actors::connection::services::{Counters, JobContext};
use crate::protocol::command::{Command, QueueMode};
use crate::protocol::crypto::{SecretDhKey, verify_authorization};
use crate::protocol::error::ErrorType;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::transmission::ClientTransmission;
use crate::store::QueueRecord;

/// Checks a command's authorization against its queue.
pub fn verify(
    cx: &JobContext,
    transmission: &ClientTransmission,
    record: Option<&QueueRecord>,
) -> Result<(), ErrorType> {
    if transmission.service_signature.is_some() {
        return Err(ErrorType::Service);
    }
    if allowed(cx, transmission, record) {
        return Ok(());
    }
    Counters::count(&cx.services.counters.auth_errors);
    Err(ErrorType::Auth)
}

fn allowed(cx: &JobContext, transmission: &ClientTransmission, record: Option<&QueueRecord>) -> bool {
    let verifier = Verifier::new(transmission, &cx.session.secret_key);
    match &transmission.command {
        Command::Ping | Command::Prxy(..) | Command::Pfwd(..) | Command::Rfwd(_) | Command::Rslv(_) => true,
        Command::Subs(_) | Command::Nsubs(_) => true,
        Command::New(request) => verifier.verify(Some(&request.recipient_key)),
        Command::Skey(key) | Command::Lkey(key) => verifier.verify(securing_key(key, record)),
        Command::Send(..) => may_send(&verifier, record),
        Command::Lget => record.is_some_and(is_contact),
        Command::Nsub => verifier.verify(record.and_then(|r| r.notifier.as_ref()).map(|n| &n.key)),
        _ => verifier.verify_any(record.map_or(&[], |r| r.recipient_keys.as_slice())),
    }
}

/// The key with which a sender may secure the queue: any key while none is set, then only that one.
fn securing_key<'a>(key: &'a PublicAuthKey, record: Option<&QueueRecord>) -> Option<&'a PublicAuthKey> {
    record
        .filter(|r| r.mode == Some(QueueMode::Messaging))
        .filter(|r| r.sender_key.as_ref().is_none_or(|set| set == key))
        .map(|_| key)
}

/// A secured queue takes messages authorized by the sender's key, an unsecured one only those without authorization.
fn may_send(verifier: &Verifier<'_>, record: Option<&QueueRecord>) -> bool {
    match record {
        Some(record) if record.sender_key.is_none() && !verifier.is_authorized() => true,
        Some(record) => verifier.verify(record.sender_key.as_ref()),
        None => verifier.verify(None),
    }
}

/// Whether the queue is a contact address; those made before modes existed are so while they are not secured.
pub fn is_contact(record: &QueueRecord) -> bool {
    match record.mode {
        Some(mode) => mode == QueueMode::Contact,
        None => record.sender_key.is_none(),
    }
}

/// Whether the queue is a messaging queue that its sender can use alone.
pub fn is_secured_messaging(record: &QueueRecord) -> bool {
    record.mode != Some(QueueMode::Contact) && record.sender_key.is_some()
}

/// How much work the verification of a command for this queue is at the most, counted in verifications of Ed25519.
pub fn effort(record: Option<&QueueRecord>) -> usize {
    /// Measured: 270 us against 46 us.
    const ED448: usize = 6;
    record.map_or(ED448, |record| ED448 * record.recipient_keys.len().max(1))
}

/// One command's authorization, to be checked against keys.
struct Verifier<'a> {
    transmission: &'a ClientTransmission,
    session_key: &'a SecretDhKey,
}

impl<'a> Verifier<'a> {
    fn new(transmission: &'a ClientTransmission, session_key: &'a SecretDhKey) -> Self {
        Verifier { transmission, session_key }
    }

    fn is_authorized(&self) -> bool {
        !self.transmission.authorization.is_none()
    }

    /// Whether the owner of `key` gave the command. Without a key the same work is done, in vain.
    fn verify(&self, key: Option<&PublicAuthKey>) -> bool {
        verify_authorization(
            key,
            &self.transmission.authorization,
            &self.transmission.authorized.parts(),
            &self.transmission.correlation_id,
            self.session_key,
        )
    }

    /// Whether the owner of any of `keys` did.
    fn verify_any(&self, keys: &[PublicAuthKey]) -> bool {
        match keys {
            [] => self.verify(None),
            keys => keys.iter().any(|key| self.verify(Some(key))),
        }
    }
}
