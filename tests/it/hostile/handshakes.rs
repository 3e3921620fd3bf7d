//! Peers that do not get as far as a session.

use std::time::{Duration, Instant};

use smp_server::protocol::crypto::random_array;

use super::raw::{client_hello, has_closed, is_closed, is_closed_in_tls, send, send_in_tls, tcp, tls};
use super::{STRANGERS, impatient_at_first, withstands};
use crate::support::Relay;

/// Between two bytes of those who are slow on purpose.
const PACE: Duration = Duration::from_millis(100);

/// `handshake_timeout`.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn random_bytes_instead_of_tls() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let mut socket = tcp(relay).await;
        send(&mut socket, &random_array::<1024>()).await;
        is_closed(&mut socket).await;
    })
    .await;
}

#[tokio::test]
async fn an_http_request() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let mut socket = tcp(relay).await;
        send(&mut socket, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        is_closed(&mut socket).await;
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_says_nothing() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| is_closed(&mut tcp(relay).await).await).await;
}

#[tokio::test]
async fn a_connection_that_is_dropped_at_once() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| drop(tcp(relay).await)).await;
}

#[tokio::test]
async fn half_a_client_hello_and_silence() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let hello = client_hello(relay).await;
        let mut socket = tcp(relay).await;
        send(&mut socket, &hello[..hello.len() / 2]).await;
        is_closed(&mut socket).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_hello_with_wrong_lengths() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let mut hello = client_hello(relay).await;
        for at in [6, 7, 8] {
            hello[at] ^= 0xff;
        }
        let mut socket = tcp(relay).await;
        send(&mut socket, &hello).await;
        is_closed(&mut socket).await;
    })
    .await;
}

/// Each byte comes in time; all of them together do not.
#[tokio::test]
async fn a_client_hello_byte_by_byte() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let hello = client_hello(relay).await;
        let mut socket = tcp(relay).await;
        socket.set_nodelay(true).unwrap();
        let started = Instant::now();
        for byte in hello {
            send(&mut socket, &[byte]).await;
            if tokio::time::timeout(PACE, is_closed(&mut socket)).await.is_ok() {
                assert!(started.elapsed() >= HANDSHAKE_TIMEOUT / 2, "closed before its time");
                return;
            }
        }
        panic!("a ClientHello that takes longer than the handshake may is waited for");
    })
    .await;
}

#[tokio::test]
async fn tls_and_no_hello() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let Some(mut stream) = tls(relay).await else { return };
        is_closed_in_tls(&mut stream).await;
    })
    .await;
}

#[tokio::test]
async fn a_hello_byte_by_byte() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let Some(mut stream) = tls(relay).await else { return };
        let deadline = Instant::now() + 60 * HANDSHAKE_TIMEOUT;
        while !has_closed(&mut stream).await {
            assert!(Instant::now() < deadline, "a hello that never ends is waited for");
            send_in_tls(&mut stream, &[0]).await;
            tokio::time::sleep(PACE).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_hello_of_random_bytes() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let Some(mut stream) = tls(relay).await else { return };
        send_in_tls(&mut stream, &random_array::<16_384>()).await;
        is_closed_in_tls(&mut stream).await;
    })
    .await;
}

#[tokio::test]
async fn half_a_hello_and_the_end() {
    withstands(impatient_at_first(), STRANGERS, async |relay: &Relay| {
        let Some(mut stream) = tls(relay).await else { return };
        send_in_tls(&mut stream, &[0; 8_000]).await;
    })
    .await;
}
