//! Clients that are services.

use super::*;
use crate::protocol::command::{IdsHash, ServiceQueues};
use crate::protocol::crypto::verify_signature;
use crate::protocol::handshake::ServiceRole;

/// A session of a service, as it is after the handshake.
async fn service_pair(role: ServiceRole) -> (Relay, Client, PublicAuthKey) {
    let (relay, mut client) = pair().await;
    let session_key = SigningKey::generate_ed25519();
    let public_key = session_key.public_key().unwrap();
    let credentials = Arc::new(credentials(KeyKind::Ed25519));
    let credentials = Arc::new(ServiceCredentials { role, credentials, session_key });
    client.service = Some(ServiceSession { id: entity(8), credentials });
    (relay, client, public_key)
}

/// Whether the service has signed a command.
fn has_service_signed(command: &ClientTransmission, service_key: &PublicAuthKey) -> bool {
    let signature = command.service_signature.as_ref();
    signature.is_some_and(|signature| verify_signature(service_key, &command.authorized.to_vec(), signature))
}

/// Whether the queue's key has authorized a command that this service signs.
fn is_bound_to_service(relay: &Relay, command: &ClientTransmission, key: &PublicAuthKey, client: &Client) -> bool {
    let service = client.service().unwrap();
    let [session, transmission] = command.authorized.parts();
    let authorized = [&service.credentials.credentials.fingerprint().0[..], session, transmission];
    let session_key = &relay.session.server_key;
    verify_authorization(Some(key), &command.authorization, &authorized, &command.correlation_id, session_key)
}

/// The command as it came to the relay.
async fn as_sent(relay: &mut Relay, client: &mut Client, request: Request) -> ClientTransmission {
    let (sent, command) = tokio::join!(client.submit(std::slice::from_ref(&request)), relay.command());
    sent.unwrap();
    command
}

#[tokio::test]
async fn a_service_signs_what_may_associate_a_queue_with_it_and_nothing_else() {
    let (mut relay, mut client, service_key) = service_pair(ServiceRole::Messaging).await;
    for key in [signing_key(), PrivateAuthKey::Dh(SecretDhKey::generate())] {
        let public = key.public_key().unwrap();
        for (command, signs) in [(Command::Sub, true), (Command::Nsub, true), (Command::Que, false)] {
            let request = Request::new(entity(1), command).authorized_by(&key);
            let sent = as_sent(&mut relay, &mut client, request.clone()).await;
            assert_eq!(has_service_signed(&sent, &service_key), signs);
            assert_eq!(is_bound_to_service(&relay, &sent, &public, &client), signs);
            assert_eq!(relay.is_authorized(&sent, &public), !signs);
            let contrary = as_sent(&mut relay, &mut client, request.signed_by_service(!signs)).await;
            assert_eq!(has_service_signed(&contrary, &service_key), !signs);
        }
    }
    let plain = as_sent(&mut relay, &mut client, Request::plain(Command::Ping)).await;
    assert!(plain.authorization.is_none() && plain.service_signature.is_none());
}

#[tokio::test]
async fn a_service_subscribes_to_its_queues_by_its_own_key() {
    let known = ServiceQueues { count: 2, hash: IdsHash([1; 16]) };
    let there = ServiceQueues { count: 3, hash: IdsHash([2; 16]) };
    for (role, expected) in
        [(ServiceRole::Messaging, Command::Subs(known)), (ServiceRole::Notifier, Command::Nsubs(known))]
    {
        let (mut relay, mut client, service_key) = service_pair(role).await;
        let relaying = async {
            let command = relay.command().await;
            assert_eq!((&command.entity_id, &command.command), (&entity(8), &expected));
            assert!(relay.is_authorized(&command, &service_key) && command.service_signature.is_none());
            relay.answer(&command, Response::Soks(there)).await;
            relay.event(&EntityId::NONE, Response::Alls).await;
            relay.event(&entity(8), Response::Ends(there)).await;
        };
        let (subscribed, ()) = tokio::join!(client.subscribe_service(known), relaying);
        assert_eq!(subscribed.unwrap(), there);
        assert_eq!(client.event().await.unwrap().response, Response::Alls);
        assert_eq!(client.event_about(&entity(8)).await.unwrap().response, Response::Ends(there));
    }
}

#[tokio::test]
async fn who_is_no_service_neither_signs_nor_subscribes_as_one() {
    let (mut relay, mut client) = pair().await;
    let known = ServiceQueues { count: 0, hash: IdsHash::default() };
    assert!(matches!(client.subscribe_service(known).await, Err(ClientError::NoService)));
    let sent = as_sent(&mut relay, &mut client, sub(1)).await;
    assert!(sent.service_signature.is_none());
}
