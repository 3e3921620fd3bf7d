//! Peers that take nothing of what the server has for them: disconnected after `send_timeout`, nothing lost.

use smp_server::client::{Client, NewQueue, Queue};
use smp_server::protocol::command::{Command, LinkData};
use smp_server::transport::client::ClientConnection;

use super::raw::blocks;
use super::{Bystander, impatient_later};
use crate::support::{Store, body_of, contact_id, for_each_store, resident_kib, until};

for_each_store!(
    a_client_that_reads_no_answers_is_disconnected,
    a_subscriber_that_reads_no_messages_is_disconnected_and_none_is_lost,
);

/// Answers and messages of this number of blocks are more than the kernel takes for a connection that is not read.
const MANY: usize = 600;

/// By how much the server's memory may have grown after one such peer: 32 blocks wait for it, and blocks of its commands.
const MARGIN_KIB: u64 = 8 * 1024;

/// Waits until the server has closed, without reading. A write fails then.
async fn is_closed_unread(connection: &mut ClientConnection) {
    until("the server to close", async || connection.stream.write(b"\0").await.is_err()).await;
}

/// Requests as a client would send them, over a connection that is not read.
async fn submit(connection: &mut ClientConnection, payloads: Vec<Vec<u8>>) {
    for payload in payloads {
        if connection.stream.write(&payload).await.is_err() {
            return;
        }
    }
}

async fn a_client_that_reads_no_answers_is_disconnected(store: Store) {
    let relay = impatient_later(store);
    let mut bystander = Bystander::at(&relay).await;
    let mut owner = relay.connect().await;
    let (link_id, data) = (contact_id(), LinkData { fixed: vec![1; 2_000].into(), user: vec![2; 13_000].into() });
    NewQueue::contact().with_contact_link(link_id.clone(), data).create(&mut owner).await.unwrap();
    let before = resident_kib(relay.server().process_id());
    let mut connection = blocks(&relay).await;
    let request = smp_server::client::Request::new(link_id, Command::Lget);
    let params = connection.session.transmission_params();
    let requests = vec![request; MANY];
    submit(&mut connection, super::raw::payloads(&params, None, &requests)).await;
    for _ in 0..3 {
        bystander.is_served().await;
    }
    assert!(resident_kib(relay.server().process_id()) <= before + MARGIN_KIB, "answers pile up");
    is_closed_unread(&mut connection).await;
    bystander.is_served().await;
}

async fn queues(client: &mut Client) -> Vec<Queue> {
    let new: Vec<NewQueue> = (0..MANY).map(|_| NewQueue::messaging().only_created()).collect();
    let requests: Vec<_> = new.iter().map(|new| new.request().unwrap()).collect();
    let answers = client.request_all(&requests).await.unwrap();
    new.into_iter().zip(answers).map(|(new, answer)| new.created(answer).unwrap()).collect()
}

async fn a_subscriber_that_reads_no_messages_is_disconnected_and_none_is_lost(store: Store) {
    let relay = impatient_later(store);
    let mut bystander = Bystander::at(&relay).await;
    let mut client = relay.connect().await;
    let queues = queues(&mut client).await;
    let mut connection = blocks(&relay).await;
    let params = connection.session.transmission_params();
    let subscriptions: Vec<_> = queues.iter().map(|queue| queue.request(Command::Sub)).collect();
    let server_key = connection.session.server_key;
    submit(&mut connection, super::raw::payloads(&params, server_key.as_ref(), &subscriptions)).await;
    let before = resident_kib(relay.server().process_id());
    for (n, queue) in queues.iter().enumerate() {
        let mut body = n.to_be_bytes().to_vec();
        body.resize(16_000, 0);
        queue.sender().send(&mut client, &body).await.unwrap();
        if n % 100 == 0 {
            bystander.is_served().await;
        }
    }
    is_closed_unread(&mut connection).await;
    let stored = u64::try_from(MANY).unwrap() * 16;
    let grown = resident_kib(relay.server().process_id()).saturating_sub(before + stored);
    assert!(grown <= 2 * MARGIN_KIB, "{grown} KiB more than the messages in the store");
    for (n, queue) in queues.iter().enumerate() {
        let message = queue.get(&mut client).await.unwrap().unwrap();
        assert_eq!(body_of(&message)[..8], n.to_be_bytes());
    }
    bystander.is_served().await;
}
