//! Very many queues, cheaply made: they share their keys, and only their IDs are kept.

use std::ops::Range;

use smp_server::client::{Client, NewQueue, NotifierCredentials, Request};
use smp_server::protocol::command::{Command, MessageFlags};
use smp_server::protocol::crypto::{PrivateAuthKey, random_correlation_id};
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

/// Commands that are asked at a time.
const BATCH: usize = 1000;

/// See the module.
pub struct ManyQueues {
    key: PrivateAuthKey,
    notifier_key: PrivateAuthKey,
    ids: Vec<Ids>,
}

struct Ids {
    recipient: EntityId,
    sender: EntityId,
    notifier: Option<EntityId>,
}

impl ManyQueues {
    /// Creates so many queues like `new`: all with its keys.
    async fn like(new: NewQueue, notifier_key: PrivateAuthKey, client: &mut Client, count: usize) -> Self {
        let request = new.request().expect("NEW");
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let batch = (0..BATCH.min(count - ids.len()))
                .map(|_| request.clone().with_correlation_id(random_correlation_id()))
                .collect::<Vec<_>>();
            ids.extend(client.request_all(&batch).await.expect("answers").into_iter().map(Ids::of));
        }
        ManyQueues { key: new.key, notifier_key, ids }
    }

    /// Queues with notifiers, to which nobody is subscribed.
    pub async fn notified(client: &mut Client, count: usize) -> Self {
        let credentials = NotifierCredentials::generate();
        let key = credentials.key.clone();
        ManyQueues::like(NewQueue::messaging().only_created().with_notifier(credentials), key, client, count).await
    }

    /// Queues to which `client`, which may be a service, is subscribed.
    pub async fn subscribed(client: &mut Client, count: usize) -> Self {
        let new = NewQueue::messaging();
        let key = new.key.clone();
        ManyQueues::like(new, key, client, count).await
    }

    /// IDs for the recipient.
    pub fn recipient_ids(&self) -> impl Iterator<Item = &EntityId> {
        self.ids.iter().map(|ids| &ids.recipient)
    }

    /// IDs for the notifier.
    pub fn notifier_ids(&self) -> impl Iterator<Item = &EntityId> {
        self.ids.iter().filter_map(|ids| ids.notifier.as_ref())
    }

    /// A command of the recipient of the queue with this ID.
    pub fn request(&self, recipient_id: EntityId, command: Command) -> Request {
        Request::new(recipient_id, command).authorized_by(&self.key)
    }

    /// Subscribes to the notifications of these queues.
    pub async fn subscribe_notifier(&self, client: &mut Client, queues: Range<usize>) {
        let notifiers = self.ids[queues].iter().filter_map(|ids| ids.notifier.clone());
        let requests: Vec<_> =
            notifiers.map(|id| Request::new(id, Command::Nsub).authorized_by(&self.notifier_key)).collect();
        for batch in requests.chunks(BATCH) {
            let answers = client.request_all(batch).await.expect("answers");
            assert!(answers.iter().all(|answer| matches!(answer, Response::Sok(_))), "{answers:?}");
        }
    }

    /// Sends this body to each of these queues.
    pub async fn send(&self, client: &mut Client, queues: Range<usize>, notification: bool, body: &[u8]) {
        let flags = MessageFlags { notification };
        let message = |ids: &Ids| Request::new(ids.sender.clone(), Command::Send(flags, body.to_vec().into()));
        for batch in self.ids[queues].chunks(BATCH) {
            let requests: Vec<_> = batch.iter().map(message).collect();
            let answers = client.request_all(&requests).await.expect("answers");
            assert!(answers.iter().all(|answer| *answer == Response::Ok), "{answers:?}");
        }
    }
}

impl Ids {
    fn of(answer: Response) -> Self {
        let Response::Ids(ids) = answer else { panic!("{answer:?} instead of IDS") };
        let notifier = ids.notifier.map(|(id, _)| id);
        Ids { recipient: ids.recipient_id, sender: ids.sender_id, notifier }
    }
}

/// Takes events until so many with this name have come, and answers in how many blocks they did. Nothing else may come.
pub async fn take_events(client: &mut Client, name: &str, count: usize) -> usize {
    let (mut taken, mut blocks) = (0, 0);
    while taken < count {
        let received = client.receive().await.expect("a block");
        for transmission in &received {
            let response = transmission.response.as_ref().expect("a response");
            assert_eq!(response.name(), name, "{response:?}");
        }
        taken += received.len();
        blocks += 1;
    }
    assert_eq!(taken, count, "more than were sent");
    blocks
}
