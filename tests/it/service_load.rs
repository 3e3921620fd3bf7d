//! A service with many queues that have a message each: they come a page at a time, as the service reads them, and other
//! clients do not notice. `cargo bench --bench notifications` measures the same at full scale.

use std::collections::HashSet;

use smp_server::client::Client;
use smp_server::protocol::command::Command;
use smp_server::protocol::response::Response;

use crate::support::many_queues::ManyQueues;
use crate::support::{
    Service, Store, connect_narrow, for_each_store, next_message, queues_with, resident_kib, secured,
};

for_each_store!(a_service_gets_what_waits_as_fast_as_it_reads_and_no_faster);

/// Queues of the service: as blocks, their messages are many times what the server may hold for a connection.
const QUEUES: usize = 2_500;

/// What the server's memory may grow by while the service does not read: 32 blocks, a page of queues, and some.
const MARGIN_KIB: u64 = 8 * 1024;

/// Messages after which the service acknowledges.
const BATCH: usize = 200;

async fn a_service_gets_what_waits_as_fast_as_it_reads_and_no_faster(store: Store) {
    let relay = store.relay_with(&[]);
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut first = service.connect(&relay).await;
    let queues = ManyQueues::subscribed(&mut first, QUEUES).await;
    first.close();
    queues.send(&mut sender, 0..QUEUES, false, b"waits").await;
    let mut recipient = relay.connect().await;
    let (queue, queue_sender) = secured(&mut recipient).await;

    let mut session = connect_narrow(&relay, &service.options()).await;
    let before = resident_kib(relay.server().process_id());
    let all = queues_with(queues.recipient_ids());
    let request = session.service().unwrap().subscription(all);
    let asked = session.submit(&[request]).await.unwrap();
    for _ in 0..20 {
        // It reads nothing meanwhile.
        queue_sender.send(&mut sender, b"undisturbed").await.unwrap();
        assert!(next_message(&mut recipient, &queue, b"undisturbed").await.is_none());
    }
    let grown = resident_kib(relay.server().process_id()).saturating_sub(before);
    assert!(grown <= MARGIN_KIB, "{grown} KiB for messages that nobody reads");
    assert_eq!(session.answer(&asked[0]).await.unwrap(), Response::Soks(all));
    assert_eq!(take_all(&mut session, &queues).await, queues.recipient_ids().map(|id| id.0.clone()).collect());
    let grown = resident_kib(relay.server().process_id()).saturating_sub(before);
    assert!(grown <= 2 * MARGIN_KIB, "{grown} KiB after all were delivered");
}

/// Takes and acknowledges messages up to `ALLS`: the queues that had one.
async fn take_all(session: &mut Client, queues: &ManyQueues) -> HashSet<bytes::Bytes> {
    let mut came = HashSet::new();
    let mut acknowledgements = Vec::new();
    loop {
        let event = session.event().await.unwrap();
        let is_last = event.response == Response::Alls;
        if !is_last {
            assert!(matches!(event.response, Response::Msg { .. }), "{:?}", event.response);
            acknowledgements.push(queues.request(event.entity_id.clone(), Command::Ack(Default::default())));
            assert!(came.insert(event.entity_id.0), "a queue's only message comes twice");
        }
        if is_last || acknowledgements.len() == BATCH {
            for answer in session.request_all(&std::mem::take(&mut acknowledgements)).await.unwrap() {
                assert_eq!(answer, Response::Ok);
            }
        }
        if is_last {
            return came;
        }
    }
}
