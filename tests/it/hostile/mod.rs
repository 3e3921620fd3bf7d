//! Peers that are broken or mean harm, over real sockets: each costs at most its own connection. Others are served
//! meanwhile, and what it cost comes back.

mod blocks;
mod descriptors;
mod handshakes;
mod limits;
mod raw;
mod silent_readers;

use futures_util::future::join_all;
use smp_server::client::{Client, Queue, Sender};

use crate::support::{Relay, Store, next_message, resident_kib, secured, until};

/// Hostile connections at a time.
const AT_A_TIME: usize = 100;

/// How often that many come, after the first time, which fills the server's pools.
const ROUNDS: usize = 2;

/// By how much the server's memory may have grown when they are gone. 200 connections that each left a block of 16 KiB
/// behind would be 3.2 MiB; what the allocator keeps for a while is allowed for.
const MARGIN_KIB: u64 = 3 * 1024;

/// A relay that waits one second for a handshake.
fn impatient_at_first() -> Relay {
    Store::Memory.relay_with(&[("TRANSPORT", "handshake_timeout", "1")])
}

/// A relay that waits one second for a peer that takes nothing.
fn impatient_later() -> Relay {
    Store::Memory.relay_with(&[("TRANSPORT", "send_timeout", "1")])
}

/// A recipient and its sender, who have nothing to do with the others.
struct Bystander {
    recipient: Client,
    sending: Client,
    queue: Queue,
    sender: Sender,
}

impl Bystander {
    async fn at(relay: &Relay) -> Self {
        let mut recipient = relay.connect().await;
        let (queue, sender) = secured(&mut recipient).await;
        Bystander { recipient, sending: relay.connect().await, queue, sender }
    }

    /// Whatever the others do, commands are answered and messages arrive.
    async fn is_served(&mut self) {
        self.recipient.ping().await.expect("PONG");
        self.sender.send(&mut self.sending, b"undisturbed").await.expect("OK");
        assert!(next_message(&mut self.recipient, &self.queue, b"undisturbed").await.is_none());
    }
}

/// Shows that `relay` goes on while many such connections come, and that its memory is what it was when they are gone.
/// `connection` makes one of them and asserts that it ends as it should.
async fn withstands(relay: Relay, connection: impl AsyncFn(&Relay)) {
    let mut bystander = Bystander::at(&relay).await;
    assault(&relay, &mut bystander, &connection).await;
    let before = resident_kib(relay.server().process_id());
    for _ in 0..ROUNDS {
        assault(&relay, &mut bystander, &connection).await;
    }
    let resident = || resident_kib(relay.server().process_id());
    until("the server's memory to come back", async || resident() <= before + MARGIN_KIB).await;
    bystander.is_served().await;
    relay.connect().await.ping().await.expect("a new client is served");
}

async fn assault(relay: &Relay, bystander: &mut Bystander, connection: &impl AsyncFn(&Relay)) {
    let connections = join_all((0..AT_A_TIME).map(|_| connection(relay)));
    let others = async {
        for _ in 0..3 {
            bystander.is_served().await;
        }
    };
    tokio::join!(connections, others);
}
