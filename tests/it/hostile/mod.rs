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

/// How many hostile connections come.
#[derive(Clone, Copy)]
struct Crowd {
    /// Connections at a time.
    at_a_time: usize,
    /// How often that many come, after the first time, which fills the server's pools.
    rounds: usize,
}

/// Peers that fail before they have a session, many of them by a timeout.
const STRANGERS: Crowd = Crowd { at_a_time: 150, rounds: 1 };

/// Peers with a session, which cost the test more than the server.
const CLIENTS: Crowd = Crowd { at_a_time: 40, rounds: 3 };

/// By how much the server's memory may have grown when they are gone: what the allocator keeps for a while. A block of
/// 16 KiB left behind by each connection is as much.
const MARGIN_KIB: u64 = 2 * 1024;

/// A relay that waits two seconds for a handshake: a busy machine may need one for an honest client's.
fn impatient_at_first() -> Relay {
    Store::Memory.relay_with(&[("TRANSPORT", "handshake_timeout", "2")])
}

/// A relay that waits one second for a peer that takes nothing.
fn impatient_later(store: Store) -> Relay {
    store.relay_with(&[("TRANSPORT", "send_timeout", "1")])
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
async fn withstands(relay: Relay, crowd: Crowd, connection: impl AsyncFn(&Relay)) {
    let mut bystander = Bystander::at(&relay).await;
    assault(&relay, crowd, &mut bystander, &connection).await;
    let before = resident_kib(relay.server().process_id());
    for _ in 0..crowd.rounds {
        assault(&relay, crowd, &mut bystander, &connection).await;
    }
    let resident = || resident_kib(relay.server().process_id());
    until("the server's memory to come back", async || resident() <= before + MARGIN_KIB).await;
    bystander.is_served().await;
    relay.connect().await.ping().await.expect("a new client is served");
}

async fn assault(relay: &Relay, crowd: Crowd, bystander: &mut Bystander, connection: &impl AsyncFn(&Relay)) {
    let connections = join_all((0..crowd.at_a_time).map(|_| connection(relay)));
    let others = async {
        for _ in 0..3 {
            bystander.is_served().await;
        }
    };
    tokio::join!(connections, others);
}
