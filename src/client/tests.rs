//! The client against a relay that says what each test wants it to say.

mod notifiers;
mod services;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::protocol::block::{BatchWriter, MAX_PAYLOAD};
use crate::protocol::command::{Command, MessageFlags};
use crate::protocol::crypto::{
    DhKeyPair, Nonce, PrivateAuthKey, SecretDhKey, SigningKey, random_array, sender_id_for, verify_authorization,
};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServerSession;
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::keys::PublicAuthKey;
use crate::protocol::message::{ENCRYPTED_BODY, MessageBody, max_body_length};
use crate::protocol::response::{QueueIds, Response};
use crate::protocol::transmission::{ClientTransmission, Refused, decode_commands, encode_response};
use crate::protocol::version::Version;
use crate::transport::accept::{AcceptOptions, Accepted, Acceptor};
use crate::transport::block_io::Incoming;
use crate::transport::block_stream::SmpStream;
use crate::transport::client::handshake;
use crate::transport::testing::{KeyKind, credentials, sockets};
use crate::transport::tls::TlsStream;

/// The relay's end of a connection.
struct Relay {
    stream: SmpStream<TlsStream>,
    session: ServerSession,
}

impl Relay {
    async fn commands(&mut self) -> Vec<Result<ClientTransmission, Refused>> {
        match self.stream.read().await.unwrap() {
            Incoming::Payload(payload) => decode_commands(&self.session.transmission_params(), &payload),
            other => panic!("{other:?}"),
        }
    }

    /// The only command of the next block.
    async fn command(&mut self) -> ClientTransmission {
        let mut commands = self.commands().await;
        assert_eq!(commands.len(), 1);
        commands.remove(0).unwrap()
    }

    async fn say(&mut self, transmissions: &[(&CorrelationId, &EntityId, Response)]) {
        let mut batch = BatchWriter::new();
        for (correlation_id, entity_id, response) in transmissions {
            let params = self.session.transmission_params();
            batch.push(|out| encode_response(&params, correlation_id, entity_id, response, out)).unwrap();
        }
        for payload in batch.finish() {
            self.stream.write(&payload).await.unwrap();
        }
    }

    async fn answer(&mut self, command: &ClientTransmission, response: Response) {
        self.say(&[(&command.correlation_id, &command.entity_id, response)]).await;
    }

    async fn event(&mut self, entity_id: &EntityId, response: Response) {
        self.say(&[(&CorrelationId::NONE, entity_id, response)]).await;
    }

    /// Whether the command is authorized by the owner of this key.
    fn is_authorized(&self, command: &ClientTransmission, key: &PublicAuthKey) -> bool {
        verify_authorization(
            Some(key),
            &command.authorization,
            &command.authorized.parts(),
            &command.correlation_id,
            &self.session.server_key,
        )
    }
}

async fn pair_in(version: u16) -> (Relay, Client) {
    pair_with(&ConnectOptions::default().with_version(Version(version))).await
}

async fn pair_with(options: &ConnectOptions) -> (Relay, Client) {
    let relay = Acceptor::new(Arc::new(credentials(KeyKind::Ed25519)), AcceptOptions::default()).unwrap();
    let (client, server) = sockets().await;
    let (accepted, connection) = tokio::join!(relay.accept(server), handshake(client, relay.fingerprint(), options));
    let Accepted { stream, session, .. } = accepted.unwrap();
    (Relay { stream, session }, Client::new(connection.unwrap(), options))
}

async fn pair() -> (Relay, Client) {
    pair_in(20).await
}

fn entity(byte: u8) -> EntityId {
    EntityId(Bytes::copy_from_slice(&[byte; 24]))
}

fn sub(byte: u8) -> Request {
    Request::new(entity(byte), Command::Sub).authorized_by(&signing_key())
}

fn signing_key() -> PrivateAuthKey {
    PrivateAuthKey::Signing(SigningKey::generate_ed25519())
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order_and_events_wait() {
    let (mut relay, mut client) = pair().await;
    let requests = [sub(1), sub(2), Request::plain(Command::Ping)];
    let relaying = async {
        let commands = relay.commands().await;
        relay.event(&entity(9), Response::End).await;
        for command in commands.into_iter().rev() {
            let command = command.unwrap();
            let refused = Response::Err(ErrorType::Auth);
            let answer = match command.command {
                Command::Ping => Response::Pong,
                _ if command.entity_id == entity(1) => Response::Sok(None),
                _ => refused,
            };
            relay.answer(&command, answer).await;
        }
    };
    let (answers, ()) = tokio::join!(client.request_all(&requests), relaying);
    assert_eq!(answers.unwrap(), [Response::Sok(None), Response::Err(ErrorType::Auth), Response::Pong]);
    assert_eq!(client.waiting_event(), Some(Event { entity_id: entity(9), response: Response::End }));
    assert_eq!(client.waiting_event(), None);
}

#[tokio::test]
async fn every_version_carries_commands_authorized_by_every_kind_of_key() {
    for version in 6..=20 {
        let (mut relay, mut client) = pair_in(version).await;
        let mut keys = vec![signing_key(), PrivateAuthKey::Signing(SigningKey::generate_ed448().unwrap())];
        if version >= 7 {
            keys.push(PrivateAuthKey::Dh(SecretDhKey::generate()));
        }
        for key in keys {
            let public = key.public_key().unwrap();
            let request = Request::new(entity(1), Command::Off).authorized_by(&key);
            let relaying = async {
                let command = relay.command().await;
                assert!(relay.is_authorized(&command, &public), "version {version}");
                relay.answer(&command, Response::Ok).await;
            };
            let (answer, ()) = tokio::join!(client.request(request), relaying);
            assert_eq!(answer.unwrap(), Response::Ok);
        }
    }
}

#[tokio::test]
async fn authenticators_need_the_relays_key() {
    let (_relay, mut client) = pair_with(&ConnectOptions { alpn: false, ..ConnectOptions::default() }).await;
    let request = Request::new(entity(1), Command::Off).authorized_by(&PrivateAuthKey::Dh(SecretDhKey::generate()));
    assert!(matches!(client.request(request).await, Err(ClientError::Crypto(_))));
}

#[tokio::test]
async fn a_large_batch_goes_in_several_blocks() {
    let (mut relay, mut client) = pair().await;
    let requests: Vec<Request> = (0..=255).map(|_| Request::plain(Command::Ping)).collect();
    let relaying = async {
        let blocks = [relay.commands().await, relay.commands().await];
        assert_eq!(blocks.each_ref().map(Vec::len), [255, 1]);
        for command in blocks.into_iter().flatten() {
            relay.answer(&command.unwrap(), Response::Pong).await;
        }
    };
    let (answers, ()) = tokio::join!(client.request_all(&requests), relaying);
    assert_eq!(answers.unwrap(), vec![Response::Pong; 256]);
}

#[tokio::test]
async fn a_command_that_fits_no_block_is_not_sent() {
    let (_relay, mut client) = pair().await;
    let body = vec![0; MAX_PAYLOAD];
    let error = Sender::unsecured(entity(1)).send(&mut client, &body).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge));
}

/// What the client says to this answer to a `SUB`.
async fn reaction(answer: impl AsyncFnOnce(&mut Relay, ClientTransmission)) -> ClientError {
    let (mut relay, mut client) = pair().await;
    let relaying = async {
        let command = relay.command().await;
        answer(&mut relay, command).await;
    };
    tokio::join!(client.request(sub(1)), relaying).0.unwrap_err()
}

#[tokio::test]
async fn answers_that_a_relay_must_not_give_are_errors() {
    let error = reaction(async |relay, command| {
        relay.say(&[(&command.correlation_id, &entity(2), Response::Ok)]).await;
    });
    assert!(matches!(error.await, ClientError::OtherEntity("OK")));
    let error = reaction(async |relay, command| {
        let other = CorrelationId(Bytes::from_static(b"other"));
        relay.say(&[(&other, &command.entity_id, Response::Ok)]).await;
    });
    assert!(matches!(error.await, ClientError::NotAsked("OK")));
    let error = reaction(async |relay, _| relay.stream.write(b"\x01\x00\x01x").await.unwrap());
    assert!(matches!(error.await, ClientError::Malformed(ErrorType::Block)));
    let error = reaction(async |relay, command| {
        let ok = (&command.correlation_id, &command.entity_id, Response::Ok);
        relay.say(&[ok.clone(), ok]).await;
    });
    assert!(matches!(error.await, ClientError::NotAsked("OK")));
    let error = reaction(async |relay, _| crate::transport::block_io::BlockIo::close(&mut relay.stream));
    assert!(matches!(error.await, ClientError::Closed));
}

#[tokio::test]
async fn an_error_without_entity_answers_what_the_relay_could_not_read() {
    let (mut relay, mut client) = pair().await;
    let relaying = async {
        let command = relay.command().await;
        relay.say(&[(&command.correlation_id, &EntityId::NONE, Response::Err(ErrorType::Session))]).await;
        relay.event(&EntityId::NONE, Response::Err(ErrorType::Block)).await;
    };
    let (answer, ()) = tokio::join!(client.request(sub(1)), relaying);
    assert_eq!(answer.unwrap(), Response::Err(ErrorType::Session));
    assert_eq!(client.event().await.unwrap().response, Response::Err(ErrorType::Block));
}

#[tokio::test]
async fn a_relay_that_does_not_answer_is_waited_for_only_so_long() {
    let (mut relay, mut client) = pair().await;
    client.set_timeout(Duration::from_secs(3));
    let ids = client.submit(&[sub(1)]).await.unwrap();
    let command = relay.command().await;
    tokio::time::pause();
    assert!(matches!(client.answer(&ids[0]).await, Err(ClientError::Timeout(_))));
    assert!(matches!(client.event().await, Err(ClientError::Timeout(_))));
    assert!(client.is_silent_for(Duration::from_secs(1)).await.unwrap());
    tokio::time::resume();
    relay.answer(&command, Response::Ok).await;
    assert_eq!(client.answer(&ids[0]).await.unwrap(), Response::Ok);
}

#[tokio::test]
async fn raw_blocks_and_bytes_reach_the_relay() {
    let (mut relay, mut client) = pair().await;
    client.send_block(b"not a batch").await.unwrap();
    assert_eq!(relay.commands().await, [Err(Refused::bad_block())]);
    client.send_bytes(&[0; 16_384]).await.unwrap();
    assert_eq!(relay.stream.read().await.unwrap(), Incoming::BadBlock);
    relay.event(&EntityId::NONE, Response::Err(ErrorType::Block)).await;
    let received = client.receive().await.unwrap();
    assert_eq!(received[0].response, Ok(Response::Err(ErrorType::Block)));
    client.close();
    assert_eq!(relay.stream.read().await.unwrap(), Incoming::Closed);
}

#[tokio::test]
async fn two_full_directions_do_not_wait_for_each_other() {
    const COUNT: usize = 400;
    let (mut relay, mut client) = pair().await;
    let event = Response::Msg { id: Bytes::from_static(&[1; 24]), body: Bytes::from(vec![0; ENCRYPTED_BODY]) };
    let requests: Vec<Request> =
        (0..COUNT).map(|_| Sender::unsecured(entity(1)).message(MessageFlags::default(), &[0; 16_000])).collect();
    let relaying = async {
        for _ in 0..COUNT {
            relay.event(&entity(2), event.clone()).await;
        }
        for _ in 0..COUNT {
            let command = relay.command().await;
            relay.answer(&command, Response::Ok).await;
        }
    };
    let (answers, ()) = tokio::join!(client.request_all(&requests), relaying);
    assert_eq!(answers.unwrap().len(), COUNT);
    for _ in 0..COUNT {
        assert!(client.waiting_event().is_some());
    }
}

/// The IDs of a queue that is created by `command`.
fn ids(command: &ClientTransmission) -> QueueIds {
    QueueIds {
        recipient_id: entity(1),
        sender_id: sender_id_for(&command.correlation_id).into(),
        dh_key: DhKeyPair::generate().public,
        mode: None,
        link_id: None,
        service_id: None,
        notifier: None,
    }
}

/// A queue that the relay has created, and the relay's half of its delivery secret.
async fn created(relay: &mut Relay, client: &mut Client, new: NewQueue) -> (Queue, DhKeyPair, PublicAuthKey) {
    let server_key = DhKeyPair::generate();
    let relaying = async {
        let command = relay.command().await;
        let Command::New(request) = &command.command else { panic!("{:?}", command.command) };
        assert!(relay.is_authorized(&command, &request.recipient_key));
        let mode = request.queue.as_ref().map(|queue| queue.mode());
        let ids = QueueIds { dh_key: server_key.public, mode, ..ids(&command) };
        relay.answer(&command, Response::Ids(Box::new(ids))).await;
        (request.recipient_key.clone(), request.dh_key)
    };
    let (queue, (recipient_key, dh_key)) = tokio::join!(new.create(client), relaying);
    let secret = DhKeyPair { public: dh_key, secret: server_key.secret };
    (queue.unwrap(), secret, recipient_key)
}

fn sealed(keys: &DhKeyPair, id: [u8; 24], content: &MessageBody) -> Response {
    let secret = keys.secret.agree(&keys.public).unwrap();
    let body = content.seal(&secret, &Nonce(id)).unwrap();
    Response::Msg { id: Bytes::copy_from_slice(&id), body: body.into() }
}

#[tokio::test]
async fn messages_of_a_queue_are_decrypted() {
    let (mut relay, mut client) = pair().await;
    let (queue, keys, recipient_key) = created(&mut relay, &mut client, NewQueue::messaging()).await;
    let body = Bytes::from(vec![b'm'; max_body_length(Version(20))]);
    let sent = MessageBody::Sent { seconds: 1, flags: MessageFlags { notification: true }, body: body.clone() };
    let quota = MessageBody::Quota { seconds: 2 };
    relay.event(queue.id(), sealed(&keys, [1; 24], &sent)).await;
    let message = queue.message(&mut client).await.unwrap();
    assert_eq!((message.id.0, &message.content, message.body()), ([1; 24], &sent, Some(&body[..])));
    let relaying = async {
        let command = relay.command().await;
        assert_eq!(command.command, Command::Ack(Bytes::from_static(&[1; 24])));
        assert!(relay.is_authorized(&command, &recipient_key));
        relay.answer(&command, sealed(&keys, [2; 24], &quota)).await;
    };
    let (next, ()) = tokio::join!(queue.acknowledge(&mut client, &[1; 24]), relaying);
    assert_eq!(next.unwrap().unwrap().content, quota);
}

#[tokio::test]
async fn messages_of_wrong_size_or_encryption_are_errors() {
    let (mut relay, mut client) = pair().await;
    let (queue, keys, _) = created(&mut relay, &mut client, NewQueue::contact()).await;
    let Response::Msg { id, body } = sealed(&keys, [1; 24], &MessageBody::Quota { seconds: 2 }) else { panic!() };
    assert!(queue.open(&id, &body).is_ok());
    assert!(matches!(queue.open(&id[1..], &body), Err(ClientError::BadMessage(_))));
    assert!(matches!(queue.open(&id, &body[1..]), Err(ClientError::BadMessage(_))));
    assert!(matches!(queue.open(&random_array::<24>(), &body), Err(ClientError::BadMessage(_))));
    relay.event(queue.id(), Response::Deld).await;
    let error = queue.message(&mut client).await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected { expected: "MSG", got: "DELD" }));
}

#[tokio::test]
async fn a_refusal_and_another_answer_are_told_apart() {
    let (mut relay, mut client) = pair().await;
    let (queue, _, _) = created(&mut relay, &mut client, NewQueue::messaging()).await;
    for answer in [Response::Err(ErrorType::Cmd(CommandError::Prohibited)), Response::Pong] {
        let relaying = async {
            let command = relay.command().await;
            relay.say(&[(&command.correlation_id, &command.entity_id, answer.clone())]).await;
        };
        let error = tokio::join!(queue.delete(&mut client), relaying).0.unwrap_err();
        match answer {
            Response::Pong => assert!(matches!(error, ClientError::Malformed(_)), "{error}"),
            _ => assert!(matches!(error, ClientError::Refused(ErrorType::Cmd(CommandError::Prohibited)))),
        }
    }
}
