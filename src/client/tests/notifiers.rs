//! Notifiers.

use super::*;
use crate::protocol::crypto::SharedSecret;
use crate::protocol::keys::PublicDhKey;
use crate::protocol::message::NotificationMetadata;

/// The answer to a request for a notifier whose secret's half is `key`, and the secret.
fn notification_secret(key: &PublicDhKey) -> (PublicDhKey, SharedSecret) {
    let own = DhKeyPair::generate();
    (own.public, own.secret.agree(key).unwrap())
}

fn notification(secret: &SharedSecret, metadata: &NotificationMetadata) -> Response {
    let nonce = random_array();
    Response::Nmsg { nonce, meta: metadata.seal(secret, &Nonce(nonce)).unwrap().into() }
}

#[tokio::test]
async fn notifications_of_a_notifier_are_decrypted_and_others_are_not() {
    let (mut relay, mut client) = pair().await;
    let (queue, _, recipient_key) = created(&mut relay, &mut client, NewQueue::messaging()).await;
    assert!(queue.notifier.is_none());
    let relaying = async {
        let command = relay.command().await;
        assert!(relay.is_authorized(&command, &recipient_key));
        let Command::Nkey(notifier_key, dh_key) = &command.command else { panic!("{:?}", command.command) };
        let (relay_key, secret) = notification_secret(dh_key);
        relay.answer(&command, Response::Nid(entity(3), relay_key)).await;
        let command = relay.command().await;
        assert_eq!((&command.entity_id, &command.command), (&entity(3), &Command::Nsub));
        assert!(relay.is_authorized(&command, notifier_key));
        relay.answer(&command, Response::Sok(None)).await;
        secret
    };
    let asking = async {
        let credentials = NotifierCredentials::generate();
        let notifier = queue.enable_notifications(&mut client, credentials).await.unwrap();
        notifier.subscribe(&mut client).await.unwrap();
        notifier
    };
    let (notifier, secret) = tokio::join!(asking, relaying);
    let metadata = NotificationMetadata { message_id: Bytes::from_static(&[7; 24]), timestamp: 5 };
    relay.event(&notifier.id, notification(&secret, &metadata)).await;
    assert_eq!(notifier.notification(&mut client).await.unwrap(), metadata);
    let foreign = SharedSecret::from_bytes([1; 32]);
    assert!(matches!(notifier.open(notification(&foreign, &metadata)), Err(ClientError::BadNotification)));
    assert!(matches!(notifier.open(Response::End), Err(ClientError::Unexpected { expected: "NMSG", got: "END" })));
}

#[tokio::test]
async fn a_queue_created_with_a_notifier_has_it_if_the_relay_says_so() {
    for answered in [true, false] {
        let (mut relay, mut client) = pair().await;
        let credentials = NotifierCredentials::generate();
        let notifier_key = credentials.key.public_key().unwrap();
        let relaying = async {
            let command = relay.command().await;
            let Command::New(request) = &command.command else { panic!("{:?}", command.command) };
            let asked = request.notifier.as_ref().unwrap();
            assert_eq!(asked.key, notifier_key);
            let (relay_key, secret) = notification_secret(&asked.dh_key);
            let notifier = answered.then_some((entity(3), relay_key));
            let ids = QueueIds { notifier, ..ids(&command) };
            relay.answer(&command, Response::Ids(Box::new(ids))).await;
            secret
        };
        let new = NewQueue::messaging().with_notifier(credentials);
        let (queue, secret) = tokio::join!(new.create(&mut client), relaying);
        let notifier = queue.unwrap().notifier;
        assert_eq!(notifier.is_some(), answered);
        if let Some(notifier) = notifier {
            let metadata = NotificationMetadata { message_id: Bytes::from_static(&[7; 24]), timestamp: 5 };
            assert_eq!(notifier.open(notification(&secret, &metadata)).unwrap(), metadata);
        }
    }
}
