//! Notifications at the connections of those who are notified.

mod notifiers;
mod services;
mod taking;

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::peer::{Queue, signing_key};
use super::{Peer, World};
use crate::protocol::EntityId;
use crate::protocol::command::{Command, MessageFlags};
use crate::protocol::crypto::{DhKeyPair, Nonce, PrivateAuthKey, SharedSecret, random_array, random_message_id};
use crate::protocol::message::NotificationMetadata;
use crate::protocol::response::Response;
use crate::protocol::{QueueId, ServiceId};
use crate::store::files::notification::Notification;

/// A queue's notifier, with the recipient's secret to read what it is told.
struct Notifier {
    id: EntityId,
    key: PrivateAuthKey,
    secret: SharedSecret,
}

impl Notifier {
    fn queue_id(&self) -> QueueId {
        self.id.queue().unwrap()
    }

    /// What `NMSG` says.
    fn open(&self, told: &(EntityId, Response)) -> NotificationMetadata {
        let (entity, Response::Nmsg { nonce, meta }) = told else { panic!("NMSG expected, got {told:?}") };
        assert_eq!(*entity, self.id);
        NotificationMetadata::open(&self.secret, &Nonce(*nonce), meta).unwrap()
    }
}

/// Gives a queue a new notifier.
async fn enable(owner: &Peer, queue: &Queue) -> Notifier {
    let (key, own) = (signing_key(), DhKeyPair::generate());
    let nkey = Command::Nkey(key.public_key().unwrap(), own.public);
    match owner.ask(queue.recipient(), Some(&queue.key), nkey).await {
        Response::Nid(id, server_key) => Notifier { id, key, secret: own.secret.agree(&server_key).unwrap() },
        other => panic!("NID expected, got {other:?}"),
    }
}

/// A queue of `owner` and its notifier.
async fn notified(owner: &Peer) -> (Queue, Notifier) {
    let queue = owner.create().await;
    let notifier = enable(owner, &queue).await;
    (queue, notifier)
}

async fn nsub(peer: &Peer, notifier: &Notifier) -> Response {
    peer.ask(notifier.id.clone(), Some(&notifier.key), Command::Nsub).await
}

/// Subscribes, asserting that it succeeds.
async fn subscribe(peer: &Peer, notifier: &Notifier) {
    let service = peer.as_service.as_ref().map(|service| service.id());
    assert_eq!(nsub(peer, notifier).await, Response::Sok(service));
}

/// Sends a message that asks for a notification.
async fn send_notified(sender: &Peer, queue: &Queue) {
    let send = Command::Send(MessageFlags { notification: true }, Bytes::from_static(b"notified"));
    assert_eq!(sender.ask(queue.sender(), None, send).await, Response::Ok);
}

/// A notification as a message makes it, handed in beside all connections.
async fn hand_in(world: &World, notifier: QueueId, service: Option<ServiceId>) {
    let notification = Notification {
        notifier,
        message: random_message_id(),
        timestamp: world.services.clock.now(),
        nonce: Nonce(random_array()),
        metadata: Bytes::from_static(&[5; 144]),
    };
    world.services.notifications.notify(notification, service).await.unwrap();
}

/// Notifications that wait, and those of them that a connection has taken.
fn waiting(world: &World) -> (u64, u64) {
    let metrics = &world.services.notification_metrics;
    (metrics.pending.load(Relaxed), metrics.in_flight.load(Relaxed))
}
