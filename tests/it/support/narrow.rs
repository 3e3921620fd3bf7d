//! A client for which the kernel keeps little: what it does not read soon stays with the server.

use smp_server::client::{Client, ConnectOptions};
use smp_server::protocol::certificate::Fingerprint;
use smp_server::transport::client::handshake;
use tokio::net::TcpSocket;

use super::relay::Relay;

/// Bytes that the kernel may keep; it takes a little more.
const RECEIVE_BUFFER: u32 = 4096;

/// A client that connects as `options` say, with a small receive buffer.
pub async fn connect_narrow(relay: &Relay, options: &ConnectOptions) -> Client {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(RECEIVE_BUFFER).expect("a small buffer");
    let socket = socket.connect(relay.server().address()).await.expect("connected");
    let fingerprint = Fingerprint::from_slice(&relay.address().fingerprint).expect("a fingerprint");
    let connection = handshake(socket, fingerprint, options).await.expect("a session");
    Client::new(connection, options)
}
