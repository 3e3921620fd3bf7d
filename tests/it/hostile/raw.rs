//! Connections below the level of a client: TCP, TLS, and blocks that nobody reads.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use smp_server::client::{ConnectOptions, Request};
use smp_server::protocol::block::BatchWriter;
use smp_server::protocol::certificate::Fingerprint;
use smp_server::protocol::crypto::random_array;
use smp_server::protocol::ids::CorrelationId;
use smp_server::protocol::keys::PublicDhKey;
use smp_server::protocol::transmission::{Authorization, TransmissionParams, encode_command};
use smp_server::transport::block_stream::SecureStream;
use smp_server::transport::client::{ClientConnection, handshake};
use smp_server::transport::tls::{TlsClient, TlsClientOptions, TlsStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::Relay;

/// How long the server may take to close, its own timeouts included.
const PATIENCE: Duration = Duration::from_secs(60);

/// A TCP connection.
pub async fn tcp(relay: &Relay) -> TcpStream {
    TcpStream::connect(relay.server().address()).await.expect("connected")
}

/// Sends bytes. The server may have closed already.
pub async fn send(socket: &mut TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes).await;
}

/// Waits until the server closes; what it says before is dropped.
pub async fn is_closed(socket: &mut TcpStream) {
    let mut buffer = [0; 4096];
    let closed = async { while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    timeout(PATIENCE, closed).await.expect("the server closes the connection");
}

fn fingerprint(relay: &Relay) -> Fingerprint {
    Fingerprint::from_slice(&relay.address().fingerprint).expect("a fingerprint")
}

/// A TLS connection, before the SMP handshake; none if the server's patience has ended before, on a busy machine.
pub async fn tls(relay: &Relay) -> Option<TlsStream> {
    let client = TlsClient::new(&TlsClientOptions::new(fingerprint(relay))).expect("TLS");
    client.connect(tcp(relay).await).await.ok().map(|connection| connection.stream)
}

/// Sends bytes inside TLS. The server may have closed already.
pub async fn send_in_tls(stream: &mut TlsStream, bytes: &[u8]) {
    let _ = stream.write(bytes);
    let _ = poll_fn(|cx| stream.poll_flush(cx, &mut false)).await;
}

/// Whether the server has closed, as far as one can tell without waiting; what it said before is dropped.
pub async fn has_closed(stream: &mut TlsStream) -> bool {
    let mut buffer = [0; 4096];
    poll_fn(|cx| {
        loop {
            match stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => return Poll::Ready(true),
                Poll::Pending => return Poll::Ready(false),
            }
        }
    })
    .await
}

/// Waits until the server closes; what it says before is dropped.
pub async fn is_closed_in_tls(stream: &mut TlsStream) {
    let mut buffer = [0; 4096];
    let closed = async { while poll_fn(|cx| stream.poll_read(cx, &mut buffer)).await.is_ok_and(|read| read > 0) {} };
    timeout(PATIENCE, closed).await.expect("the server closes the connection");
}

/// A handshaken connection of which nothing is read unless asked for, with a kernel that takes little for it.
pub async fn blocks(relay: &Relay) -> ClientConnection {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let socket = socket.connect(relay.server().address()).await.expect("connected");
    handshake(socket, fingerprint(relay), &ConnectOptions::default()).await.expect("handshaken")
}

/// The first record of a TLS client, as it goes over the wire.
pub async fn client_hello(relay: &Relay) -> Vec<u8> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
    let client = TlsClient::new(&TlsClientOptions::new(fingerprint(relay))).expect("TLS");
    let hello = async {
        let (mut socket, _) = listener.accept().await.expect("accepted");
        let mut hello = vec![0; 4096];
        let length = socket.read(&mut hello).await.expect("a ClientHello");
        hello.truncate(length);
        hello
    };
    // The other end closes after the first record, which fails the handshake.
    tokio::join!(client.connect(socket), hello).1
}

/// Requests as a client would send them, in as few blocks as they fit in.
pub fn payloads(params: &TransmissionParams, server_key: Option<&PublicDhKey>, requests: &[Request]) -> Vec<Vec<u8>> {
    let mut batch = BatchWriter::new();
    for request in requests {
        let id = CorrelationId(Bytes::copy_from_slice(&random_array::<24>()));
        let authorize = |authorized: &[u8]| match &request.key {
            Some(key) => (key.authorize(authorized, &id, server_key).expect("authorized"), None),
            None => (Authorization::None, None),
        };
        batch
            .push(|out| encode_command(params, &id, &request.entity_id, &request.command, authorize, out))
            .expect("it fits");
    }
    batch.finish()
}
