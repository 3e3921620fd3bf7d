//! Connections from their first byte, both sides ours, over loopback.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::accept::{AcceptOptions, Accepted, Acceptor, HandshakeError, ServiceDirectory};
use super::block_io::Incoming;
use super::block_stream::{SecureStream, SmpStream};
use super::client::{ClientConnection, ConnectError, ConnectOptions, ServiceCredentials, connect, handshake};
use super::testing::{KeyKind, credentials, sockets};
use super::tls::{TlsClient, TlsClientOptions, TlsConnection, TlsStream};
use crate::protocol::address::{Host, ServerAddress};
use crate::protocol::block::MAX_PAYLOAD;
use crate::protocol::certificate::Fingerprint;
use crate::protocol::crypto::SigningKey;
use crate::protocol::encoding::Encode;
use crate::protocol::error::{HandshakeError as SmpError, TransportErrorType};
use crate::protocol::handshake::{ClientHello, PeerService, ServiceRole};
use crate::protocol::{ServiceId, Version, VersionRange};

type Outcome = (Result<Accepted, HandshakeError>, Result<ClientConnection, ConnectError>);

fn relay(options: AcceptOptions) -> Acceptor {
    Acceptor::new(Arc::new(credentials(KeyKind::Ed25519)), options).unwrap()
}

async fn shake(relay: &Acceptor, options: &ConnectOptions) -> Outcome {
    let (client, server) = sockets().await;
    tokio::join!(relay.accept(server), handshake(client, relay.fingerprint(), options))
}

async fn connected(relay: &Acceptor, options: &ConnectOptions) -> (Accepted, ClientConnection) {
    let (accepted, connection) = shake(relay, options).await;
    (accepted.unwrap(), connection.unwrap())
}

/// Sends a payload each way and checks that it arrives.
async fn exchange(accepted: &mut Accepted, connection: &mut ClientConnection) {
    for length in [0, 1, MAX_PAYLOAD] {
        let sent = vec![7; length];
        let payload = Incoming::Payload(Bytes::copy_from_slice(&sent));
        let (written, read) = tokio::join!(connection.stream.write(&sent), accepted.stream.read());
        written.unwrap();
        assert_eq!(read.unwrap(), payload);
        let (written, read) = tokio::join!(accepted.stream.write(&sent), connection.stream.read());
        written.unwrap();
        assert_eq!(read.unwrap(), payload);
    }
}

/// TLS, and the relay's hello read; what comes then is for the test to say.
async fn after_relay_hello(relay: &Acceptor) -> (SmpStream<TlsStream>, impl Future<Output = HandshakeError> + use<>) {
    let (client, server) = sockets().await;
    let tls = TlsClient::new(&TlsClientOptions::new(relay.fingerprint())).unwrap();
    let relay = relay.clone();
    let accepting = tokio::spawn(async move { relay.accept(server).await.err().unwrap() });
    let TlsConnection { stream, .. } = tls.connect(client).await.unwrap();
    let mut stream = SmpStream::new(stream);
    assert!(matches!(stream.read().await.unwrap(), Incoming::Payload(_)));
    (stream, async { accepting.await.unwrap() })
}

fn hello(fingerprint: Fingerprint, version: u16) -> ClientHello {
    let key_hash = Bytes::copy_from_slice(&fingerprint.0);
    ClientHello { version: Version(version), key_hash, key: None, proxy: false, service: None }
}

#[tokio::test]
async fn every_version_is_agreed_and_blocks_go_both_ways() {
    let relay = relay(AcceptOptions::default());
    for version in 6..=20 {
        let options = ConnectOptions::default().with_version(Version(version));
        let (mut accepted, mut connection) = connected(&relay, &options).await;
        assert_eq!(accepted.session.version, Version(version));
        assert_eq!(connection.session.version, Version(version));
        assert_eq!(accepted.session.session_id, connection.session.session_id);
        assert_eq!(accepted.stream.is_encrypted(), version >= 11);
        assert_eq!(connection.stream.is_encrypted(), version >= 11);
        assert_eq!(accepted.session.secret.is_some(), version >= 7);
        exchange(&mut accepted, &mut connection).await;
    }
}

#[tokio::test]
async fn the_newest_common_version_is_chosen() {
    let range = |min, max| VersionRange::new(Version(min), Version(max)).unwrap();
    let relay = relay(AcceptOptions { versions: range(8, 12), ..AcceptOptions::default() });
    for (client, expected) in [(range(6, 20), 12), (range(6, 10), 10), (range(12, 20), 12)] {
        let options = ConnectOptions { versions: client, ..ConnectOptions::default() };
        assert_eq!(connected(&relay, &options).await.0.session.version, Version(expected));
    }
    let options = ConnectOptions { versions: range(13, 20), ..ConnectOptions::default() };
    let (accepted, connection) = shake(&relay, &options).await;
    assert!(matches!(connection, Err(ConnectError::Handshake(TransportErrorType::Version))));
    assert!(accepted.is_err());
}

#[tokio::test]
async fn a_relay_with_an_ed448_key_is_accepted() {
    let relay = Acceptor::new(Arc::new(credentials(KeyKind::Ed448)), AcceptOptions::default()).unwrap();
    let (mut accepted, mut connection) = connected(&relay, &ConnectOptions::default()).await;
    exchange(&mut accepted, &mut connection).await;
}

#[tokio::test]
async fn without_alpn_version_6_is_spoken_or_nothing() {
    let options = ConnectOptions { alpn: false, ..ConnectOptions::default() };
    let (mut accepted, mut connection) = connected(&relay(AcceptOptions::default()), &options).await;
    assert_eq!(accepted.session.version, Version(6));
    assert!(connection.session.server_key.is_none());
    exchange(&mut accepted, &mut connection).await;

    let versions = VersionRange::new(Version(7), Version(20)).unwrap();
    let (accepted, connection) = shake(&relay(AcceptOptions { versions, ..AcceptOptions::default() }), &options).await;
    assert!(matches!(accepted, Err(HandshakeError::NoAlpn)));
    assert!(connection.is_err());
}

#[tokio::test]
async fn blocks_are_not_encrypted_for_proxies_and_for_clients_without_a_key() {
    let relay = relay(AcceptOptions::default());
    let proxy = ConnectOptions { proxy: true, ..ConnectOptions::default() };
    let keyless = ConnectOptions { session_key: false, ..ConnectOptions::default() };
    for (options, has_secret) in [(proxy, true), (keyless, false)] {
        let (mut accepted, mut connection) = connected(&relay, &options).await;
        assert_eq!(accepted.session.proxy, options.proxy);
        assert_eq!(accepted.session.secret.is_some(), has_secret);
        assert!(!accepted.stream.is_encrypted() && !connection.stream.is_encrypted());
        exchange(&mut accepted, &mut connection).await;
    }
}

#[tokio::test]
async fn wrong_versions_and_wrong_key_hashes_are_closed_without_a_word() {
    let relay = relay(AcceptOptions::default());
    let identity = TransportErrorType::Handshake(SmpError::Identity);
    for (hello, expected) in [
        (hello(relay.fingerprint(), 5), TransportErrorType::Version),
        (hello(relay.fingerprint(), 21), TransportErrorType::Version),
        (hello(Fingerprint([1; 32]), 20), identity),
    ] {
        let (mut stream, refused) = after_relay_hello(&relay).await;
        stream.write(&hello.encoded()).await.unwrap();
        assert!(matches!(refused.await, HandshakeError::Refused(error) if error == expected));
        assert_eq!(stream.read().await.unwrap(), Incoming::Closed);
    }
}

#[tokio::test]
async fn a_hello_that_cannot_be_read_is_closed_without_a_word() {
    let relay = relay(AcceptOptions::default());
    for garbage in [&b""[..], b"\x00", &[0xff; 100]] {
        let (mut stream, refused) = after_relay_hello(&relay).await;
        stream.write(garbage).await.unwrap();
        assert!(matches!(refused.await, HandshakeError::Refused(TransportErrorType::Handshake(SmpError::Parse))));
        assert_eq!(stream.read().await.unwrap(), Incoming::Closed);
    }
}

#[tokio::test]
async fn half_a_hello_fails_when_the_client_leaves() {
    let (mut stream, refused) = after_relay_hello(&relay(AcceptOptions::default())).await;
    stream.stream_mut().write(&[0; 1000]).unwrap();
    std::future::poll_fn(|cx| stream.stream_mut().poll_flush(cx, &mut false)).await.unwrap();
    stream.stream_mut().close();
    drop(stream);
    assert!(matches!(refused.await, HandshakeError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn a_client_that_leaves_before_its_hello_is_told_apart() {
    let (mut stream, refused) = after_relay_hello(&relay(AcceptOptions::default())).await;
    stream.stream_mut().close();
    drop(stream);
    assert!(matches!(refused.await, HandshakeError::Closed));
}

/// On a paused clock time passes only, and at once, when nothing else is left to wait for.
#[tokio::test]
async fn a_silent_client_is_timed_out_in_tls_and_after_it() {
    let relay = relay(AcceptOptions::default());
    let (_stream, refused) = after_relay_hello(&relay).await;
    let (_client, server) = sockets().await;
    tokio::time::pause();
    assert!(matches!(relay.accept(server).await, Err(HandshakeError::Timeout)));
    assert!(matches!(refused.await, HandshakeError::Timeout));
}

#[tokio::test]
async fn bytes_that_are_not_tls_fail_at_once() {
    let relay = relay(AcceptOptions::default());
    let (mut client, server) = sockets().await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(matches!(relay.accept(server).await, Err(HandshakeError::Tls(_))));
    client.read_to_end(&mut Vec::new()).await.ok();
}

#[tokio::test]
async fn a_client_refuses_a_relay_with_another_fingerprint() {
    let relay = relay(AcceptOptions::default());
    let (client, server) = sockets().await;
    let options = ConnectOptions::default();
    let (accepted, connection) = tokio::join!(relay.accept(server), handshake(client, Fingerprint([1; 32]), &options));
    assert!(matches!(connection, Err(ConnectError::Tls(_))));
    assert!(matches!(accepted, Err(HandshakeError::Tls(_))));
}

#[tokio::test]
async fn services_are_refused_with_a_reason_or_passed_on() {
    let service = Arc::new(ServiceCredentials {
        role: ServiceRole::Notifier,
        credentials: Arc::new(credentials(KeyKind::Ed25519)),
        session_key: SigningKey::generate_ed25519(),
    });
    let options = ConnectOptions { service: Some(service.clone()), ..ConnectOptions::default() };
    let refusal = TransportErrorType::Handshake(SmpError::BadService);
    let (accepted, connection) = shake(&relay(AcceptOptions::default()), &options).await;
    assert!(matches!(accepted, Err(HandshakeError::Refused(error)) if error == refusal));
    assert!(matches!(connection, Err(ConnectError::Handshake(error)) if error == refusal));

    let relay = relay(AcceptOptions::default()).with_services(Arc::new(Directory(Some(ServiceId([7; 24])))));
    let (accepted, connection) = shake(&relay, &options).await;
    let (mut accepted, mut connection) = (accepted.unwrap(), connection.unwrap());
    let peer = accepted.session.service.clone().unwrap();
    assert_eq!(peer.fingerprint, service.credentials.fingerprint());
    assert_eq!(peer.chain, service.credentials.chain());
    assert_eq!(accepted.service_id, Some(ServiceId([7; 24])));
    // The reply is not encrypted, what follows it is.
    exchange(&mut accepted, &mut connection).await;
}

/// Has one ID for all services, or none.
struct Directory(Option<ServiceId>);

impl ServiceDirectory for Directory {
    fn enrol<'a>(&'a self, _: &'a PeerService) -> futures_util::future::BoxFuture<'a, Option<ServiceId>> {
        Box::pin(std::future::ready(self.0))
    }
}

#[tokio::test]
async fn a_service_that_is_not_known_in_its_role_is_told_so() {
    let service = Arc::new(ServiceCredentials {
        role: ServiceRole::Notifier,
        credentials: Arc::new(credentials(KeyKind::Ed25519)),
        session_key: SigningKey::generate_ed25519(),
    });
    let options = ConnectOptions { service: Some(service), ..ConnectOptions::default() };
    let relay = relay(AcceptOptions::default()).with_services(Arc::new(Directory(None)));
    let refusal = TransportErrorType::Handshake(SmpError::BadService);
    let (accepted, connection) = shake(&relay, &options).await;
    assert!(matches!(accepted, Err(HandshakeError::Refused(error)) if error == refusal));
    assert!(matches!(connection, Err(ConnectError::Handshake(error)) if error == refusal));
}

#[tokio::test]
async fn connects_by_address_from_a_local_address_and_tries_all_hosts() {
    let relay = relay(AcceptOptions::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = ServerAddress {
        hosts: vec![Host::Onion("abc.onion".to_owned()), Host::Ipv4([127, 0, 0, 1].into())],
        port: listener.local_addr().unwrap().port().to_string(),
        fingerprint: Bytes::copy_from_slice(&relay.fingerprint().0),
    };
    let options = ConnectOptions { local_address: Some([127, 0, 0, 2].into()), ..ConnectOptions::default() };
    let accepting = async {
        let (socket, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.ip().to_string(), "127.0.0.2");
        relay.accept(socket).await
    };
    let (accepted, connection) = tokio::join!(accepting, connect(&address, &options));
    exchange(&mut accepted.unwrap(), &mut connection.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_does_not_answer_is_timed_out() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = ServerAddress {
        hosts: vec![Host::Ipv4([127, 0, 0, 1].into())],
        port: listener.local_addr().unwrap().port().to_string(),
        fingerprint: Bytes::from_static(&[1; 32]),
    };
    assert!(matches!(connect(&address, &ConnectOptions::default()).await, Err(ConnectError::Timeout)));
}

#[tokio::test]
async fn a_connection_that_ends_without_a_goodbye_is_closed_too() {
    let (mut accepted, connection) = connected(&relay(AcceptOptions::default()), &ConnectOptions::default()).await;
    drop(connection);
    assert_eq!(accepted.stream.read().await.unwrap(), Incoming::Closed);
}

#[tokio::test]
async fn a_closed_connection_is_reported_to_the_other_side() {
    let (accepted, mut connection) = connected(&relay(AcceptOptions::default()), &ConnectOptions::default()).await;
    let Accepted { mut stream, .. } = accepted;
    super::block_io::BlockIo::close(&mut stream);
    drop(stream);
    assert_eq!(connection.stream.read().await.unwrap(), Incoming::Closed);
}
