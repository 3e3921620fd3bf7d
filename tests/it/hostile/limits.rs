//! More connections and handshakes than there may be: they wait, and are served when it is their turn.

use futures_util::FutureExt;
use futures_util::future::join_all;
use rustix::process::Signal;

use super::raw::tcp;
use crate::support::{Store, secured};

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_one_closes() {
    let relay = Store::Memory.relay_with(&[("TRANSPORT", "max_connections", "3")]);
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(relay.connect().await);
    }
    let mut waiting = Box::pin(join_all((0..6).map(|_| async {
        // Each leaves room for the next.
        relay.connect().await.ping().await.unwrap();
    })));
    for _ in 0..5 {
        for client in &mut clients {
            assert!(waiting.as_mut().now_or_never().is_none(), "more connections than there may be");
            client.ping().await.unwrap();
        }
    }
    clients.pop();
    waiting.await;
    for client in &mut clients {
        secured(client).await;
    }
}

#[tokio::test]
async fn who_says_nothing_takes_no_place_among_the_handshakes() {
    let relay =
        Store::Memory.relay_with(&[("TRANSPORT", "max_handshakes", "2"), ("TRANSPORT", "handshake_timeout", "600")]);
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(tcp(&relay).await);
    }
    relay.connect().await.ping().await.unwrap();
    drop(silent);
}

/// Who has not finished its handshake waits for no answer.
#[tokio::test]
async fn a_stop_does_not_wait_for_handshakes() {
    let relay = Store::Memory.relay_with(&[("TRANSPORT", "handshake_timeout", "600")]);
    let _idle = [tcp(&relay).await, tcp(&relay).await];
    // A connection that came later is served: the others were accepted.
    relay.connect().await.ping().await.unwrap();
    let stopped = relay.end(Signal::TERM).await;
    let said = stopped.output.join("\n");
    assert!(!said.contains("did not finish in time"), "{said}");
}
