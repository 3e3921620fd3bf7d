//! Notifications: the notifier's side of a queue, and what the recipient makes for it.

use super::connection::{Client, Event};
use super::error::ClientError;
use super::request::Request;
use crate::protocol::command::{Command, NewNotifier};
use crate::protocol::crypto::{DhKeyPair, Nonce, PrivateAuthKey, SharedSecret, SigningKey};
use crate::protocol::ids::EntityId;
use crate::protocol::keys::PublicDhKey;
use crate::protocol::message::NotificationMetadata;
use crate::protocol::response::Response;

/// What a recipient makes for its notifier: the notifier's key, and its own half of the notification secret.
#[derive(Clone)]
pub struct NotifierCredentials {
    /// The notifier's key.
    pub key: PrivateAuthKey,
    dh_key: DhKeyPair,
}

impl NotifierCredentials {
    /// With this key of the notifier.
    pub fn with_key(key: PrivateAuthKey) -> Self {
        NotifierCredentials { key, dh_key: DhKeyPair::generate() }
    }

    /// With a new Ed25519 key.
    pub fn generate() -> Self {
        NotifierCredentials::with_key(PrivateAuthKey::Signing(SigningKey::generate_ed25519()))
    }

    /// What the relay is told, in `NEW` (17+) or `NKEY`.
    pub fn public(&self) -> Result<NewNotifier, ClientError> {
        Ok(NewNotifier { key: self.key.public_key()?, dh_key: self.dh_key.public })
    }

    /// The notifier that the relay has made of them.
    pub fn notifier(self, id: EntityId, relay_key: &PublicDhKey) -> Result<Notifier, ClientError> {
        let secret = self.dh_key.secret.agree(relay_key)?;
        Ok(Notifier { id, key: self.key, secret })
    }
}

/// Who is notified of a queue's messages. Has the recipient's secret too, which a notifier of the real world has not.
#[derive(Clone)]
pub struct Notifier {
    /// The queue for its notifier.
    pub id: EntityId,
    /// The notifier's key.
    pub key: PrivateAuthKey,
    secret: SharedSecret,
}

impl Notifier {
    /// A command of the notifier.
    pub fn request(&self, command: Command) -> Request {
        Request::new(self.id.clone(), command).authorized_by(&self.key)
    }

    /// Subscribes (`NSUB`). Notifications that wait come as events.
    pub async fn subscribe(&self, client: &mut Client) -> Result<(), ClientError> {
        match client.request(self.request(Command::Nsub)).await? {
            Response::Ok | Response::Sok(_) => Ok(()),
            other => Err(ClientError::unexpected("OK or SOK", other)),
        }
    }

    /// The next notification that comes to the subscription, decrypted.
    pub async fn notification(&self, client: &mut Client) -> Result<NotificationMetadata, ClientError> {
        let event = self.event(client).await?;
        self.open(event.response)
    }

    /// The next event about this notifier.
    pub async fn event(&self, client: &mut Client) -> Result<Event, ClientError> {
        client.event_about(&self.id).await
    }

    /// Decrypts `NMSG` as the recipient does.
    pub fn open(&self, response: Response) -> Result<NotificationMetadata, ClientError> {
        let Response::Nmsg { nonce, meta } = response else { return Err(ClientError::unexpected("NMSG", response)) };
        let opened = NotificationMetadata::open(&self.secret, &Nonce(nonce), &meta);
        opened.map_err(|_| ClientError::BadNotification)
    }
}
