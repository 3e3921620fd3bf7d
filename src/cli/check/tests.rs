//! The check against relays that fail it. That it passes is shown with the real server, in `tests/`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;

use super::*;
use crate::protocol::address::Host;
use crate::protocol::block::BatchWriter;
use crate::protocol::certificate::Fingerprint;
use crate::protocol::command::Command;
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::protocol::transmission::{decode_commands, encode_response};
use crate::transport::accept::{AcceptOptions, Accepted, Acceptor};
use crate::transport::block_io::Incoming;
use crate::transport::testing::{KeyKind, credentials};

/// Answers commands of every connection with what `answer` says, one block at a time.
async fn serve(listener: TcpListener, relay: Acceptor, answer: fn(&Command) -> Response) {
    loop {
        let socket = listener.accept().await.unwrap().0;
        let Accepted { mut stream, session, .. } = relay.accept(socket).await.unwrap();
        tokio::spawn(async move {
            while let Ok(Incoming::Payload(payload)) = stream.read().await {
                let params = session.transmission_params();
                let mut batch = BatchWriter::new();
                for command in decode_commands(&params, &payload) {
                    let command = command.unwrap();
                    let answer = answer(&command.command);
                    let (id, entity_id) = (&command.correlation_id, &command.entity_id);
                    batch.push(|out| encode_response(&params, id, entity_id, &answer, out)).unwrap();
                }
                for payload in batch.finish() {
                    stream.write(&payload).await.unwrap();
                }
            }
        });
    }
}

fn options(address: SocketAddr, fingerprint: Fingerprint) -> CheckOptions {
    let address = ServerAddress {
        hosts: vec![Host::Ipv4([127, 0, 0, 1].into())],
        port: address.port().to_string(),
        fingerprint: Bytes::copy_from_slice(&fingerprint.0),
    };
    let address = ServerAddressWithPassword { address, password: None };
    CheckOptions { address, max_version: Some(Version(9)), timeout: Duration::from_secs(10) }
}

/// The step that fails and the whole report.
async fn check(options: &CheckOptions) -> (&'static str, String) {
    let mut out = Vec::new();
    match run(options, &mut out).await.unwrap_err() {
        CheckError::Step { step, .. } => (step, String::from_utf8(out).unwrap()),
        CheckError::Output(error) => panic!("{error}"),
    }
}

async fn check_relay(answer: fn(&Command) -> Response) -> (&'static str, String) {
    let relay = Acceptor::new(Arc::new(credentials(KeyKind::Ed25519)), AcceptOptions::default()).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let options = options(listener.local_addr().unwrap(), relay.fingerprint());
    let serving = tokio::spawn(serve(listener, relay, answer));
    let checked = check(&options).await;
    serving.abort();
    checked
}

#[tokio::test]
async fn the_first_failing_step_is_named_with_the_servers_answer() {
    let (step, report) = check_relay(|command| match command {
        Command::Ping => Response::Pong,
        _ => Response::Err(ErrorType::Auth),
    })
    .await;
    assert_eq!(step, "NEW");
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 5, "{report}");
    assert!(lines[0].starts_with("ok    connect as recipient  ") && lines[0].ends_with(" ms"), "{report}");
    assert_eq!(lines[2], "      version 9");
    assert!(lines[4].starts_with("FAIL  NEW  ") && lines[4].contains("the relay answered ERR AUTH"), "{report}");
}

#[tokio::test]
async fn another_answer_than_expected_is_named() {
    let (step, report) = check_relay(|_| Response::Rname(Bytes::from_static(b"{}"))).await;
    assert_eq!(step, "PING");
    assert!(report.contains("expected PONG, got RNAME"), "{report}");
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_first_step() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let options = options(listener.local_addr().unwrap(), Fingerprint([1; 32]));
    drop(listener);
    let (step, report) = check(&options).await;
    assert_eq!(step, "connect as recipient");
    assert!(report.starts_with("FAIL  connect as recipient  "), "{report}");
}
