//! Queues and what tests do with them over and over.

use bytes::Bytes;
use smp_server::client::{
    Client, ClientError, NewQueue, Notifier, NotifierCredentials, Queue, ReceivedMessage, Sender,
};
use smp_server::protocol::command::LinkData;
use smp_server::protocol::crypto::{PrivateAuthKey, SecretDhKey, SigningKey, random_array};
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

/// A new Ed25519 key.
pub fn signing_key() -> PrivateAuthKey {
    PrivateAuthKey::Signing(SigningKey::generate_ed25519())
}

/// A new X25519 key, for authenticators.
pub fn authenticator_key() -> PrivateAuthKey {
    PrivateAuthKey::Dh(SecretDhKey::generate())
}

/// A queue that `client` is subscribed to, secured with the key of the sender.
pub async fn secured(client: &mut Client) -> (Queue, Sender) {
    let queue = NewQueue::messaging().create(client).await.expect("created");
    let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
    let key = sender.key.as_ref().and_then(|key| key.public_key().ok()).expect("a key");
    queue.secure(client, &key).await.expect("secured");
    (queue, sender)
}

/// A queue with a notifier; `client` is subscribed to it as its recipient.
pub async fn notified(client: &mut Client) -> (Queue, Notifier) {
    let queue = NewQueue::messaging().create(client).await.expect("created");
    let notifier = queue.enable_notifications(client, NotifierCredentials::generate()).await.expect("a notifier");
    (queue, notifier)
}

/// Whether all that the relay has sent the client by now is taken.
pub async fn is_told_nothing(client: &mut Client) -> bool {
    client.ping().await.expect("PONG");
    client.waiting_event().is_none()
}

/// `ERR` with this error.
pub fn refused(error: ErrorType) -> Response {
    Response::Err(error)
}

/// Whether an answer is `ERR`.
pub fn is_refused(answer: &Response) -> bool {
    matches!(answer, Response::Err(_))
}

/// Why it was refused; it has to be.
pub fn why<T>(result: Result<T, ClientError>) -> ErrorType {
    match result {
        Err(ClientError::Refused(error)) => error,
        Err(other) => panic!("not refused, but: {other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

/// Link data with this text as what may change.
pub fn link_data(user: &'static str) -> LinkData {
    LinkData { fixed: Bytes::from_static(b"fixed"), user: Bytes::from_static(user.as_bytes()) }
}

/// A link ID as clients make them for contact addresses.
pub fn contact_id() -> EntityId {
    EntityId(Bytes::copy_from_slice(&random_array::<24>()))
}

/// What the sender wrote.
pub fn body_of(message: &ReceivedMessage) -> &[u8] {
    message.body().expect("a message of the sender")
}

/// Takes the message that is delivered next, which has to have this body, and acknowledges it. Answers the message after
/// it, if the answer brings one.
pub async fn next_message(client: &mut Client, queue: &Queue, body: &[u8]) -> Option<ReceivedMessage> {
    let message = queue.message(client).await.expect("a message");
    assert_eq!(body_of(&message), body);
    queue.acknowledge(client, &message.id.0).await.expect("acknowledged")
}

/// All messages of the queue, in order, got and acknowledged one by one. The connection must not be subscribed to it.
pub async fn drain(client: &mut Client, queue: &Queue) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    while let Some(message) = queue.get(client).await.expect("an answer to GET") {
        bodies.extend(message.body().map(<[u8]>::to_vec));
        queue.acknowledge(client, &message.id.0).await.expect("acknowledged");
    }
    bodies
}
