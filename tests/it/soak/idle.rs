//! Idle clients: connected, perhaps subscribed, silent.

use futures_util::StreamExt;
use futures_util::stream;
use smp_server::client::{Client, ConnectOptions, NewQueue, Queue};
use smp_server::protocol::address::ServerAddress;
use smp_server::protocol::command::MessageFlags;
use smp_server::protocol::response::Response;

/// Clients that do something at the same time.
const AT_ONCE: usize = 32;

/// Messages in a request.
const BATCH: usize = 100;

/// The body of the only message.
const BODY: &[u8] = b"are you there?";

/// Connected clients.
pub struct IdleClients(Vec<Client>);

/// Clients subscribed to a queue of their own.
pub struct SubscribedClients(Vec<(Client, Queue)>);

impl IdleClients {
    pub async fn connect(address: &ServerAddress, clients: usize) -> Self {
        let connecting =
            (0..clients).map(async |_| Client::connect(address, &ConnectOptions::default()).await.expect("connected"));
        IdleClients(stream::iter(connecting).buffer_unordered(AT_ONCE).collect().await)
    }

    /// Each creates a queue, which subscribes to it.
    pub async fn subscribe(self) -> SubscribedClients {
        let subscribing = self.0.into_iter().map(async |mut client: Client| {
            let queue = NewQueue::messaging().create(&mut client).await.expect("IDS");
            (client, queue)
        });
        SubscribedClients(stream::iter(subscribing).buffer_unordered(AT_ONCE).collect().await)
    }
}

impl SubscribedClients {
    /// Each receives the first message that is sent to it.
    pub async fn receive(self, address: &ServerAddress) {
        let mut sender = Client::connect(address, &ConnectOptions::default()).await.expect("connected");
        let messages = self.0.iter().map(|(_, queue)| queue.sender().message(MessageFlags::default(), BODY));
        let messages: Vec<_> = messages.collect();
        for batch in messages.chunks(BATCH) {
            let answers = sender.request_all(batch).await.expect("answers");
            assert!(answers.iter().all(|answer| *answer == Response::Ok), "{answers:?}");
        }
        let receiving = self.0.into_iter().map(async |(mut client, queue): (Client, Queue)| {
            let message = queue.message(&mut client).await.expect("MSG");
            assert_eq!(message.body(), Some(BODY));
            assert_eq!(queue.acknowledge(&mut client, &message.id.0).await.expect("OK"), None);
            client.ping().await.expect("PONG");
            assert_eq!(client.waiting_event(), None, "nothing else comes");
        });
        stream::iter(receiving).buffer_unordered(AT_ONCE).collect::<()>().await;
    }
}
