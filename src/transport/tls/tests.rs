//! Handshakes over loopback, both sides ours.

use std::io;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::protocol::certificate::Credentials;
use crate::transport::testing::{KeyKind, Template, credentials, credentials_of, sockets};

async fn shake(
    server: &TlsServer,
    client: &TlsClientOptions,
) -> (io::Result<TlsConnection>, io::Result<TlsConnection>) {
    let (client_socket, server_socket) = sockets().await;
    let client = TlsClient::new(client).unwrap();
    tokio::join!(server.accept(server_socket), client.connect(client_socket))
}

fn server(identity: &Credentials) -> TlsServer {
    TlsServer::new(identity, TlsServerOptions::default()).unwrap()
}

fn existing_client(identity: &Credentials) -> TlsClientOptions {
    TlsClientOptions { groups: Groups::X448First, ..TlsClientOptions::new(identity.fingerprint()) }
}

#[tokio::test]
async fn both_ends_see_the_same_session_identifier_with_ed25519_and_ed448() {
    for kind in [KeyKind::Ed25519, KeyKind::Ed448] {
        let identity = credentials(kind);
        let (at_server, at_client) = shake(&server(&identity), &TlsClientOptions::new(identity.fingerprint())).await;
        let (at_server, at_client) = (at_server.unwrap(), at_client.unwrap());
        assert_eq!(at_server.session_id, at_client.session_id);
        assert_ne!(at_server.session_id.0, [0; 32]);
        assert!(at_server.alpn && at_client.alpn);
        assert_eq!(at_client.peer_chain, identity.chain());
        assert!(at_server.peer_chain.is_empty());
    }
}

#[tokio::test]
async fn concurrent_handshakes_on_one_thread_do_not_mix_their_identifiers() {
    let identity = credentials(KeyKind::Ed25519);
    let server = server(&identity);
    let options = TlsClientOptions::new(identity.fingerprint());
    let connections = join_all((0..100).map(|_| shake(&server, &options))).await;
    let mut seen = std::collections::HashSet::new();
    for (at_server, at_client) in connections {
        let session_id = at_server.unwrap().session_id;
        assert_eq!(session_id, at_client.unwrap().session_id);
        assert!(seen.insert(session_id), "two connections have one identifier");
    }
    assert_eq!(server.handshakes(), 0);
}

#[tokio::test]
async fn a_client_with_an_x448_share_needs_no_retry() {
    let identity = credentials(KeyKind::Ed25519);
    let (at_server, at_client) = shake(&server(&identity), &existing_client(&identity)).await;
    let (at_server, at_client) = (at_server.unwrap(), at_client.unwrap());
    assert!(!at_server.retried && !at_client.retried);
    let group = at_client.stream.state().negotiated_key_exchange_group();
    assert_eq!(group.map(|group| group.name()), Some(rustls::NamedGroup::X448));
    assert_eq!(at_server.session_id, at_client.session_id);
}

#[tokio::test]
async fn with_x448_off_such_a_client_is_asked_again_and_succeeds() {
    let identity = credentials(KeyKind::Ed25519);
    let options = TlsServerOptions { x448: false, ..TlsServerOptions::default() };
    let server = TlsServer::new(&identity, options).unwrap();
    let (at_server, at_client) = shake(&server, &existing_client(&identity)).await;
    let (at_server, at_client) = (at_server.unwrap(), at_client.unwrap());
    assert!(at_server.retried && at_client.retried);
    assert_eq!(at_server.session_id, at_client.session_id);
}

#[tokio::test]
async fn x448_is_refused_only_while_handshakes_queue_up() {
    let identity = credentials(KeyKind::Ed25519);
    let options = TlsServerOptions { x448: true, x448_handshakes: 1 };
    let server = TlsServer::new(&identity, options).unwrap();
    let (silent_client, silent) = sockets().await;
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.accept(silent).await }
    });
    while server.handshakes() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(shake(&server, &existing_client(&identity)).await.0.unwrap().retried);
    drop(silent_client);
    assert!(waiting.await.unwrap().is_err());
    assert!(!shake(&server, &existing_client(&identity)).await.0.unwrap().retried);
}

#[tokio::test]
async fn without_alpn_the_handshake_succeeds_and_says_so() {
    let identity = credentials(KeyKind::Ed25519);
    let options = TlsClientOptions { alpn: None, ..TlsClientOptions::new(identity.fingerprint()) };
    let (at_server, at_client) = shake(&server(&identity), &options).await;
    assert!(!at_server.unwrap().alpn && !at_client.unwrap().alpn);
}

#[tokio::test]
async fn an_unknown_alpn_is_answered_with_an_alert() {
    let identity = credentials(KeyKind::Ed25519);
    let options = TlsClientOptions { alpn: Some(b"h2".to_vec()), ..TlsClientOptions::new(identity.fingerprint()) };
    let (at_server, at_client) = shake(&server(&identity), &options).await;
    assert!(at_server.is_err());
    assert!(at_client.unwrap_err().to_string().contains("NoApplicationProtocol"));
}

#[tokio::test]
async fn a_relay_with_another_fingerprint_is_refused() {
    let (identity, other) = (credentials(KeyKind::Ed25519), credentials(KeyKind::Ed25519));
    let (at_server, at_client) = shake(&server(&identity), &TlsClientOptions::new(other.fingerprint())).await;
    assert!(at_client.unwrap_err().to_string().contains("UnknownIssuer"));
    assert!(at_server.is_err());
}

#[tokio::test]
async fn a_clients_chain_reaches_the_server() {
    let identity = credentials(KeyKind::Ed25519);
    for kind in [KeyKind::Ed25519, KeyKind::Ed448] {
        let service = Arc::new(credentials(kind));
        let options =
            TlsClientOptions { credentials: Some(service.clone()), ..TlsClientOptions::new(identity.fingerprint()) };
        let (at_server, at_client) = shake(&server(&identity), &options).await;
        assert_eq!(at_server.unwrap().peer_chain, service.chain());
        at_client.unwrap();
    }
}

#[tokio::test]
async fn a_clients_chain_that_does_not_hold_is_refused() {
    let relay = credentials(KeyKind::Ed25519);
    let ca = Template::new("CA", None).make();
    let stranger = Template::new("CA", None).make();
    let leaf = Template::new("service", Some(&stranger)).make();
    let options = TlsClientOptions {
        credentials: Some(Arc::new(credentials_of(&[&leaf, &ca]))),
        ..TlsClientOptions::new(relay.fingerprint())
    };
    let (at_server, _) = shake(&server(&relay), &options).await;
    assert!(at_server.unwrap_err().to_string().contains("BadSignature"));
}

#[tokio::test]
async fn what_is_not_tls_fails_at_once() {
    let server = server(&credentials(KeyKind::Ed25519));
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 0x03, 0x01, 0xff, 0xff], &[0; 5], &[0xff; 100]] {
        let (mut client, accepted) = sockets().await;
        client.write_all(bytes).await.unwrap();
        assert!(server.accept(accepted).await.is_err());
        let mut alert = Vec::new();
        client.read_to_end(&mut alert).await.ok();
    }
}
