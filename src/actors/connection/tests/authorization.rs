//! What a refusal costs: the same work for a queue that exists and one that does not.

use bytes::Bytes;

use super::World;
use super::peer::{Queue, send};
use crate::protocol::EntityId;
use crate::protocol::command::{Command, LinkData, QueueRequest};
use crate::protocol::crypto::{PrivateAuthKey, SecretDhKey, SigningKey, random_queue_id, work};
use crate::protocol::error::ErrorType;
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::response::Response;
use crate::protocol::transmission::Authorization;
use crate::store::{Op, OpOutcome};

/// One key of each kind.
fn keys() -> [PublicAuthKey; 3] {
    let keys = [
        PrivateAuthKey::Signing(SigningKey::generate_ed25519()),
        PrivateAuthKey::Signing(SigningKey::generate_ed448().unwrap()),
        PrivateAuthKey::Dh(SecretDhKey::generate()),
    ];
    keys.map(|key| key.public_key().unwrap())
}

/// Authorizations of each kind that nobody's key has made.
fn forged() -> [Authorization; 3] {
    [64, 114, 80].map(|length| Authorization::from_bytes(&vec![1; length]).unwrap())
}

fn of_recipient(key: &PublicAuthKey) -> Vec<Command> {
    let link = LinkData { fixed: Bytes::new(), user: Bytes::new() };
    vec![
        Command::Sub,
        Command::Key(key.clone()),
        Command::Rkey(vec![key.clone()]),
        Command::Lset(random_queue_id().into(), link),
        Command::Ldel,
        Command::Nkey(key.clone(), SecretDhKey::generate().public_key()),
        Command::Ndel,
        Command::Get,
        Command::Ack(Bytes::new()),
        Command::Off,
        Command::Del,
        Command::Que,
    ]
}

/// Queues whose recipients and senders have keys of each kind.
async fn queues(world: &World) -> Vec<Queue> {
    let peer = world.connect();
    let mut queues = Vec::new();
    for key in keys() {
        let queue = peer.create_with(false, QueueRequest::Messaging(None)).await;
        let ops = vec![
            Op::SetRecipientKeys { queue: queue.id(), keys: vec![key.clone()] },
            Op::SecureQueue { queue: queue.id(), key },
        ];
        assert_eq!(world.services.store.apply(ops).await.unwrap(), [OpOutcome::Done, OpOutcome::Done]);
        queues.push(queue);
    }
    queues
}

/// Asserts that `command` is refused after one verification, whichever of `entities` it names and whoever signs it.
async fn costs_one_verification(world: &World, entities: &[EntityId], command: &Command) {
    let peer = world.connect();
    for authorization in forged() {
        for entity in entities {
            work::take();
            let answer = peer.ask_with(entity, &authorization, command).await;
            assert_eq!(answer, Response::Err(ErrorType::Auth), "{command:?}");
            assert_eq!(work::take(), 1, "{command:?} with a {authorization:?}");
        }
    }
}

#[actix::test]
async fn a_refusal_costs_one_verification_whether_or_not_the_queue_exists() {
    let world = World::new();
    let queues = queues(&world).await;
    let absent = EntityId::from(random_queue_id());
    let recipients: Vec<_> = queues.iter().map(Queue::recipient).chain([absent.clone()]).collect();
    for key in keys() {
        for command in of_recipient(&key) {
            costs_one_verification(&world, &recipients, &command).await;
        }
    }
    let mut senders: Vec<_> = queues.iter().map(Queue::sender).chain([absent]).collect();
    for key in keys() {
        costs_one_verification(&world, &senders, &Command::Skey(key.clone())).await;
        costs_one_verification(&world, &senders, &Command::Lkey(key)).await;
    }
    // Also a queue that no sender has secured.
    senders.push(world.connect().create().await.sender());
    costs_one_verification(&world, &senders, &send(b"forged")).await;
    costs_one_verification(&world, &senders, &Command::Nsub).await;
}

#[actix::test]
async fn a_message_without_authorization_is_refused_without_work_whether_or_not_the_queue_exists() {
    let world = World::new();
    let secured = queues(&world).await.remove(0).sender();
    let peer = world.connect();
    for entity in [secured, random_queue_id().into()] {
        work::take();
        let answer = peer.ask_with(&entity, &Authorization::None, &send(b"unauthorized")).await;
        assert_eq!((answer, work::take()), (Response::Err(ErrorType::Auth), 0));
    }
}
