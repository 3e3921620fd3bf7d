//! Full queues.

use smp_server::client::NewQueue;
use smp_server::protocol::error::ErrorType;
use smp_server::protocol::message::MessageBody;
use smp_server::protocol::response::Response;

use crate::support::{Store, body_of, for_each_store, secured, why};

for_each_store!(
    a_full_queue_refuses_until_its_recipient_has_read_the_quota_message,
    a_batch_fills_a_queue_up_to_its_quota,
);

const QUOTA: &[(&str, &str, &str)] = &[("STORE_LOG", "message_queue_quota", "3")];

async fn a_full_queue_refuses_until_its_recipient_has_read_the_quota_message(store: Store) {
    let relay = store.relay_with(QUOTA);
    for version in [6, 20] {
        let (mut client, mut sending) = (relay.connect_in(version).await, relay.connect_in(version).await);
        let (queue, sender) = secured(&mut client).await;
        for _ in 0..2 {
            for n in 0..3_u8 {
                sender.send(&mut sending, &[n]).await.unwrap();
            }
            for _ in 0..2 {
                assert_eq!(why(sender.send(&mut sending, b"too many").await), ErrorType::Quota);
            }
            let mut message = queue.message(&mut client).await.unwrap();
            for n in 0..3_u8 {
                assert_eq!(body_of(&message), [n]);
                assert_eq!(why(sender.send(&mut sending, b"not yet").await), ErrorType::Quota);
                message = queue.acknowledge(&mut client, &message.id.0).await.unwrap().unwrap();
            }
            assert!(matches!(message.content, MessageBody::Quota { .. }), "{message:?}");
            assert!(queue.info(&mut client).await.unwrap().message.unwrap().quota);
            assert_eq!(why(sender.send(&mut sending, b"not yet").await), ErrorType::Quota);
            assert!(queue.acknowledge(&mut client, &message.id.0).await.unwrap().is_none());
        }
        sender.send(&mut sending, b"room again").await.unwrap();
        assert_eq!(body_of(&queue.message(&mut client).await.unwrap()), b"room again");
    }
}

async fn a_batch_fills_a_queue_up_to_its_quota(store: Store) {
    let relay = store.relay_with(QUOTA);
    let mut client = relay.connect().await;
    let queue = NewQueue::messaging().only_created().create(&mut client).await.unwrap();
    let requests: Vec<_> = (0..6_u8).map(|n| queue.sender().message(Default::default(), &[n])).collect();
    let answers = client.request_all(&requests).await.unwrap();
    assert_eq!(answers[..3], [Response::Ok, Response::Ok, Response::Ok]);
    assert!(answers[3..].iter().all(|answer| *answer == Response::Err(ErrorType::Quota)));
    assert_eq!(queue.info(&mut client).await.unwrap().size, 4, "three messages and one that says there were more");
}
