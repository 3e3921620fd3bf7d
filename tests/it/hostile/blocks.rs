//! Malformed blocks and transmissions in a session that was made as it should be.

use bytes::Bytes;
use smp_server::client::{Client, ConnectOptions, Request};
use smp_server::protocol::Version;
use smp_server::protocol::block::{BLOCK_SIZE, BatchWriter, pad};
use smp_server::protocol::command::Command;
use smp_server::protocol::crypto::random_array;
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::ids::{CorrelationId, EntityId, SessionId};
use smp_server::protocol::response::Response;
use smp_server::protocol::transmission::{Authorization, encode_command};

use super::{Bystander, CLIENTS, withstands};
use crate::support::{Relay, Store, authenticator_key, for_each_store, next_message, refused, secured, signing_key};

for_each_store!(a_batch_of_forged_commands_is_refused_one_by_one, a_queue_is_not_harmed_by_what_others_try);

/// The errors of the next `count` answers, whatever they answer.
async fn errors(client: &mut Client, count: usize) -> Vec<Response> {
    let mut errors = Vec::new();
    while errors.len() < count {
        errors.extend(client.receive().await.unwrap().into_iter().map(|t| t.response.unwrap()));
    }
    errors
}

async fn plain(relay: &Relay) -> Client {
    let options = ConnectOptions { session_key: false, ..ConnectOptions::default() };
    relay.connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn payloads_with_wrong_lengths_are_answered_and_the_session_goes_on() {
    let payloads: &[&[u8]] = &[
        b"",
        b"\0",
        b"\x01",
        b"\x01\0",
        b"\x01\0\x05abcd",
        b"\x02\0\x01a",
        b"\xff\0\x01a",
        b"\x01\0\x01ab",
        b"\x01\xff\xffabc",
    ];
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        for payload in payloads {
            client.send_block(payload).await.unwrap();
            assert_eq!(errors(&mut client, 1).await, [refused(ErrorType::Block)], "{payload:?}");
        }
        client.ping().await.unwrap();
    })
    .await;
}

/// A block that does not decrypt costs a step of the key chain, which a client that makes such blocks has not made.
#[tokio::test]
async fn random_blocks_in_an_encrypted_session_are_answered() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        for _ in 0..3 {
            client.send_bytes(&random_array::<BLOCK_SIZE>()).await.unwrap();
        }
        assert_eq!(errors(&mut client, 3).await, vec![refused(ErrorType::Block); 3]);
    })
    .await;
}

#[tokio::test]
async fn blocks_with_wrong_padding_are_answered_and_the_session_goes_on() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = plain(relay).await;
        for length in [[0xff, 0xff], [0x40, 0x00], [0x3f, 0xff]] {
            let mut block = random_array::<BLOCK_SIZE>();
            block[..2].copy_from_slice(&length);
            client.send_bytes(&block).await.unwrap();
        }
        assert_eq!(errors(&mut client, 3).await, vec![refused(ErrorType::Block); 3]);
        client.ping().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn truncated_blocks_end_with_their_connection() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        client.ping().await.unwrap();
        client.send_bytes(&random_array::<10_000>()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_block_of_255_bad_transmissions_is_answered_255_times() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        let mut batch = BatchWriter::new();
        for _ in 0..255 {
            batch.push(|out| out.extend_from_slice(&random_array::<60>())).unwrap();
        }
        for payload in batch.finish() {
            client.send_block(&payload).await.unwrap();
        }
        for answer in errors(&mut client, 255).await {
            assert!(matches!(answer, Response::Err(ErrorType::Block | ErrorType::Cmd(_) | ErrorType::Auth)));
        }
        client.ping().await.unwrap();
    })
    .await;
}

async fn a_batch_of_forged_commands_is_refused_one_by_one(store: Store) {
    withstands(store.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        let (id, key) = (EntityId(Bytes::copy_from_slice(&random_array::<24>())), authenticator_key());
        let requests: Vec<_> = (0..60).map(|_| Request::new(id.clone(), Command::Sub).authorized_by(&key)).collect();
        assert_eq!(client.request_all(&requests).await.unwrap(), vec![refused(ErrorType::Auth); 60]);
        client.ping().await.unwrap();
    })
    .await;
}

/// A command that the owner of the queue gave in another session.
fn of_another_session(client: &Client, request: &Request) -> Vec<u8> {
    let params = client.params();
    let other = smp_server::protocol::transmission::TransmissionParams { session_id: SessionId([7; 32]), ..params };
    let id = CorrelationId(Bytes::from_static(b"replayed"));
    let authorize = |authorized: &[u8]| {
        let key = request.key.as_ref().unwrap();
        (key.authorize(authorized, &id, client.session().server_key.as_ref()).unwrap(), None::<_>)
    };
    let mut transmission = Vec::new();
    encode_command(&other, &id, &request.entity_id, &request.command, authorize, &mut transmission);
    let mut batch = BatchWriter::new();
    batch.push(|out| out.extend_from_slice(&transmission)).unwrap();
    batch.finish().remove(0)
}

#[tokio::test]
async fn commands_of_another_session_are_refused() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        for (version, error) in [(6, ErrorType::Session), (7, ErrorType::Auth), (20, ErrorType::Auth)] {
            let mut client = relay.connect_in(version).await;
            let (queue, _) = secured(&mut client).await;
            let payload = of_another_session(&client, &queue.request(Command::Del));
            client.send_block(&payload).await.unwrap();
            assert_eq!(errors(&mut client, 1).await, [refused(error)], "version {version}");
            queue.delete(&mut client).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn authorizations_of_impossible_sizes_are_refused() {
    withstands(Store::Memory.relay_with(&[]), CLIENTS, async |relay: &Relay| {
        let mut client = relay.connect().await;
        for length in [1_u8, 63, 65, 79, 81, 113, 115, 255] {
            let mut transmission = vec![length];
            transmission.resize(usize::from(length) + 1, 7);
            transmission.push(b'0');
            transmission.extend_from_slice(b"\x04corr\0PING");
            let mut payload = vec![1];
            payload.extend_from_slice(&u16::try_from(transmission.len()).unwrap().to_be_bytes());
            payload.extend_from_slice(&transmission);
            client.send_block(&payload).await.unwrap();
            assert_eq!(errors(&mut client, 1).await, [refused(ErrorType::Block)], "{length}");
        }
        client.ping().await.unwrap();
    })
    .await;
}

/// Slow, but nothing is wrong with it.
#[tokio::test]
async fn a_block_byte_by_byte_is_answered() {
    let relay = Store::Memory.relay_with(&[]);
    let mut bystander = Bystander::at(&relay).await;
    let options = ConnectOptions { session_key: false, ..ConnectOptions::default() }.with_version(Version(10));
    let mut client = relay.connect_with(&options).await.unwrap();
    let (params, id) = (client.params(), CorrelationId(Bytes::from_static(b"slow")));
    let mut payload = BatchWriter::new();
    let none = |_: &[u8]| (Authorization::None, None);
    payload.push(|out| encode_command(&params, &id, &EntityId::NONE, &Command::Ping, none, out)).unwrap();
    let mut block = Vec::new();
    pad(&payload.finish().remove(0), BLOCK_SIZE, &mut block).unwrap();
    for (at, byte) in block.iter().enumerate() {
        client.send_bytes(&[*byte]).await.unwrap();
        if at % 4096 == 0 {
            bystander.is_served().await;
        }
    }
    let answers = client.receive().await.unwrap();
    assert_eq!((&answers[0].correlation_id, &answers[0].response), (&id, &Ok(Response::Pong)));
    client.ping().await.unwrap();
}

async fn a_queue_is_not_harmed_by_what_others_try(store: Store) {
    let relay = store.relay_with(&[]);
    let (mut owner, mut other) = (relay.connect().await, relay.connect().await);
    let (queue, sender) = secured(&mut owner).await;
    let key = signing_key();
    for command in [Command::Del, Command::Off, Command::Sub, Command::Ack(Bytes::new())] {
        for entity in [queue.id(), &sender.id] {
            let request = Request::new(entity.clone(), command.clone()).authorized_by(&key);
            assert_eq!(other.request(request).await.unwrap(), refused(ErrorType::Auth));
        }
    }
    sender.send(&mut other, b"all is well").await.unwrap();
    next_message(&mut owner, &queue, b"all is well").await;
}
