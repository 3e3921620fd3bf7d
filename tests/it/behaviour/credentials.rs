//! Authorization and entity ID: which command must have them, and must not.

use bytes::Bytes;
use smp_server::client::{Client, NewQueue, Request};
use smp_server::protocol::command::{Command, LinkData, MessageFlags};
use smp_server::protocol::crypto::PrivateAuthKey;
use smp_server::protocol::error::{CommandError, ErrorType};
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

use crate::support::{Store, for_each_store, refused, secured, signing_key};

for_each_store!(
    commands_need_exactly_the_credentials_that_are_theirs,
    wrong_and_absent_queues_are_refused_alike,
    commands_of_roles_that_the_relay_has_not_are_refused,
);

/// Commands that need an authorization and an entity ID.
fn need_both(key: &PrivateAuthKey) -> Vec<Command> {
    let key = key.public_key().unwrap();
    let link = LinkData { fixed: Bytes::new(), user: Bytes::new() };
    vec![
        Command::Sub,
        Command::Key(key.clone()),
        Command::Rkey(vec![key.clone()]),
        Command::Lset(EntityId(Bytes::from_static(&[1; 24])), link),
        Command::Ldel,
        Command::Get,
        Command::Ack(Bytes::from_static(&[1; 24])),
        Command::Off,
        Command::Del,
        Command::Que,
        Command::Skey(key.clone()),
        Command::Lkey(key),
    ]
}

/// What `command` is answered with: with authorization and entity, with one of them, with none.
async fn answers(client: &mut Client, key: &PrivateAuthKey, entity: &EntityId, command: &Command) -> Vec<Response> {
    let both = Request::new(entity.clone(), command.clone()).authorized_by(key);
    let requests = [
        both.clone(),
        Request { entity_id: EntityId::NONE, ..both.clone() },
        Request { key: None, ..both },
        Request::plain(command.clone()),
    ];
    client.request_all(&requests).await.unwrap()
}

async fn commands_need_exactly_the_credentials_that_are_theirs(store: Store) {
    let relay = store.relay();
    let error = |error| refused(ErrorType::Cmd(error));
    let (no_auth, has_auth, no_entity) =
        (error(CommandError::NoAuth), error(CommandError::HasAuth), error(CommandError::NoEntity));
    let auth = || refused(ErrorType::Auth);
    let entity = EntityId(Bytes::from_static(&[7; 24]));
    for version in [6, 9, 15, 16, 20] {
        let mut client = relay.connect_in(version).await;
        let key = signing_key();
        for command in need_both(&key) {
            let answers = answers(&mut client, &key, &entity, &command).await;
            assert_eq!(answers[1..], [no_auth.clone(), no_auth.clone(), no_auth.clone()], "{version} {command:?}");
            assert_eq!(answers[0], auth(), "{version} {command:?}");
        }
        let send = Command::Send(MessageFlags::default(), Bytes::from_static(b"x"));
        let answers_to_send = answers(&mut client, &key, &entity, &send).await;
        assert_eq!(answers_to_send, [auth(), no_entity.clone(), auth(), no_entity.clone()], "{version}");
        let answers_to_ping = answers(&mut client, &key, &entity, &Command::Ping).await;
        assert_eq!(answers_to_ping, [has_auth.clone(), has_auth.clone(), has_auth.clone(), Response::Pong]);
        let new = NewQueue::messaging();
        let command = new.request().unwrap().command;
        let answers_to_new = answers(&mut client, &new.key, &entity, &command).await;
        assert_eq!(answers_to_new[0], has_auth);
        assert!(matches!(answers_to_new[1], Response::Ids(_)), "{:?}", answers_to_new[1]);
        assert_eq!(answers_to_new[2..], [no_auth.clone(), no_auth.clone()]);
        let answers_to_lget = answers(&mut client, &key, &entity, &Command::Lget).await;
        assert_eq!(answers_to_lget, [has_auth.clone(), no_entity.clone(), auth(), no_entity.clone()]);
    }
}

async fn wrong_and_absent_queues_are_refused_alike(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, sender) = secured(&mut client).await;
    let key = signing_key();
    let absent = EntityId(Bytes::from_static(&[7; 24]));
    let odd = EntityId(Bytes::from_static(b"odd"));
    for entity in [queue.id(), &sender.id, &absent, &odd] {
        for command in need_both(&key) {
            let request = Request::new(entity.clone(), command.clone()).authorized_by(&key);
            assert_eq!(client.request(request).await.unwrap(), refused(ErrorType::Auth), "{command:?}");
        }
        let send = Command::Send(MessageFlags::default(), Bytes::from_static(b"x"));
        let request = Request::new(entity.clone(), send).authorized_by(&key);
        assert_eq!(client.request(request).await.unwrap(), refused(ErrorType::Auth));
    }
    let info = queue.info(&mut client).await.unwrap();
    assert_eq!((info.size, info.secured), (0, true), "nothing has happened to the queue");
}

async fn commands_of_roles_that_the_relay_has_not_are_refused(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let forwarded = Request::plain(Command::Rfwd(Bytes::from_static(b"forwarded")));
    let answer = client.request(forwarded).await.unwrap();
    assert!(matches!(answer, Response::Err(ErrorType::Proxy(_))), "{answer:?}");
    client.ping().await.unwrap();
}
