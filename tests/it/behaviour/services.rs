//! Clients that are services: their handshake, their queues, and subscriptions to all of them at once.

use std::collections::BTreeSet;

use smp_server::client::{Client, ClientError, ConnectError, NewQueue, NotifierCredentials, Queue, Request};
use smp_server::protocol::command::{Command, IdsHash, MessageFlags, ServiceQueues};
use smp_server::protocol::crypto::PrivateAuthKey;
use smp_server::protocol::error::{CommandError, ErrorType, HandshakeError, TransportErrorType};
use smp_server::protocol::handshake::ServiceRole;
use smp_server::protocol::ids::EntityId;
use smp_server::protocol::response::Response;

use crate::support::{
    Relay, Service, Store, body_of, for_each_store, is_told_nothing, next_message, notified, queues_with, refused,
    service_id, signing_key, why,
};

for_each_store!(
    a_certificate_is_one_service_in_one_role,
    a_service_of_a_version_without_its_role_is_an_ordinary_client,
    a_service_does_what_its_role_is_for,
    a_queue_created_by_a_service_is_the_services,
    who_subscribes_as_a_service_takes_the_queue_into_it,
    an_ordinary_subscription_releases_the_queue,
    a_queue_moves_from_one_service_to_another,
    a_service_is_told_that_its_queue_was_deleted,
    a_service_gets_all_that_waits_and_is_told_when_that_is_all,
    a_second_subscription_of_a_session_is_only_answered,
    another_session_of_a_service_takes_over,
    a_new_queue_or_association_takes_over_too,
    wrong_expectations_are_answered_with_what_there_is,
    the_service_signs_exactly_what_it_must,
    only_the_service_subscribes_to_all_of_its_queues,
    a_notifier_service_is_told_of_its_queues_messages,
    a_notifier_service_subscribes_to_all_of_its_notifiers,
    a_notifier_service_is_told_of_notifiers_that_it_loses;
    lasting: services_and_their_queues_are_kept,
);

/// A service that believes to have no queues.
const NOTHING: ServiceQueues = ServiceQueues { count: 0, hash: IdsHash([0; 16]) };

const PROHIBITED: ErrorType = ErrorType::Cmd(CommandError::Prohibited);

/// Why the relay refuses this service.
async fn handshake_error(relay: &Relay, service: &Service) -> TransportErrorType {
    match relay.connect_with(&service.options()).await {
        Err(ClientError::Connect(ConnectError::Handshake(error))) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was accepted"),
    }
}

/// What the relay says that a new session of the service has; the session takes over.
async fn queues_of(service: &Service, relay: &Relay) -> ServiceQueues {
    service.connect(relay).await.subscribe_service(NOTHING).await.unwrap()
}

async fn sub(client: &mut Client, queue: &Queue) -> Response {
    client.request(queue.request(Command::Sub)).await.unwrap()
}

async fn event(client: &mut Client, queue: &Queue) -> Response {
    queue.event(client).await.unwrap().response
}

async fn create(client: &mut Client, count: usize) -> Vec<Queue> {
    let new: Vec<_> = (0..count).map(|_| NewQueue::messaging()).collect();
    let requests: Vec<_> = new.iter().map(|new| new.request().unwrap()).collect();
    let answers = client.request_all(&requests).await.unwrap();
    new.into_iter().zip(answers).map(|(new, answer)| new.created(answer).unwrap()).collect()
}

fn ids(queues: &[Queue]) -> Vec<&EntityId> {
    queues.iter().map(Queue::id).collect()
}

async fn a_certificate_is_one_service_in_one_role(store: Store) {
    let relay = store.relay();
    for role in [ServiceRole::Messaging, ServiceRole::Notifier, ServiceRole::Proxy] {
        let (service, other) = (Service::new(role), Service::new(role));
        let first = service_id(&service.connect(&relay).await);
        assert_eq!(service_id(&service.connect(&relay).await), first);
        assert_ne!(service_id(&other.connect(&relay).await), first);
        for other_role in [ServiceRole::Messaging, ServiceRole::Notifier, ServiceRole::Proxy] {
            if other_role != role {
                let error = handshake_error(&relay, &service.with_role(other_role)).await;
                assert_eq!(error, TransportErrorType::Handshake(HandshakeError::BadService));
            }
        }
    }
}

async fn a_service_of_a_version_without_its_role_is_an_ordinary_client(store: Store) {
    let relay = store.relay();
    let service = Service::messaging();
    for version in [15, 16, 18] {
        let mut client = service.connect_in(&relay, version).await;
        assert!(client.service().is_none());
        let queue = NewQueue::messaging().create(&mut client).await.unwrap();
        assert_eq!(queue.ids.service_id, None);
        let subscribed = if version >= 16 { Response::Sok(None) } else { Response::Ok };
        assert_eq!(sub(&mut client, &queue).await, subscribed, "version {version}");
    }
    assert_eq!(queues_of(&service, &relay).await, NOTHING);
}

async fn a_service_does_what_its_role_is_for(store: Store) {
    let relay = store.relay();
    let mut client = relay.connect().await;
    let (queue, notifier) = notified(&mut client).await;
    let recipient = [Command::Sub, Command::Que, Command::Off, Command::Ndel].map(|command| queue.request(command));
    let sender = [queue.sender().message(MessageFlags::default(), b"message")];
    let new = [NewQueue::messaging().request().unwrap()];
    let messaging = [&recipient[..], &sender, &new].concat();
    let notifying = [notifier.request(Command::Nsub)];
    for (role, allowed, prohibited) in [
        (ServiceRole::Messaging, &messaging[..], &notifying[..]),
        (ServiceRole::Notifier, &notifying, &messaging),
        (ServiceRole::Proxy, &[], &[&messaging[..], &notifying].concat()),
    ] {
        let mut session = Service::new(role).connect(&relay).await;
        session.ping().await.unwrap();
        for answer in session.request_all(prohibited).await.unwrap() {
            assert_eq!(answer, refused(PROHIBITED), "{role:?}");
        }
        for request in allowed.iter().rev() {
            // What is done here is shown elsewhere: none of it is refused because of the role.
            let answer = session.request(request.clone()).await.unwrap();
            assert_ne!(answer, refused(PROHIBITED), "{role:?} {:?}", request.command);
            assert_ne!(answer, refused(ErrorType::Service), "{role:?} {:?}", request.command);
        }
    }
}

async fn a_queue_created_by_a_service_is_the_services(store: Store) {
    let relay = store.relay();
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut session = service.connect(&relay).await;
    assert_eq!(why(NewQueue::messaging().only_created().create(&mut session).await), PROHIBITED);
    let mut queues = create(&mut session, 3).await;
    for queue in &queues {
        assert_eq!(queue.ids.service_id, Some(service_id(&session)));
        for body in [b"one", b"two"] {
            queue.sender().send(&mut sender, body).await.unwrap();
            assert!(next_message(&mut session, queue, body).await.is_none());
        }
    }
    assert_eq!(queues_of(&service, &relay).await, queues_with(ids(&queues)));
    queues.remove(0).delete(&mut sender).await.unwrap();
    assert_eq!(queues_of(&service, &relay).await, queues_with(ids(&queues)));
}

async fn who_subscribes_as_a_service_takes_the_queue_into_it(store: Store) {
    let relay = store.relay();
    let (service, mut client, mut sender) = (Service::messaging(), relay.connect().await, relay.connect().await);
    let mut session = service.connect(&relay).await;
    let queues = create(&mut client, 2).await;
    queues[0].sender().send(&mut sender, b"waits").await.unwrap();
    assert_eq!(body_of(&queues[0].message(&mut client).await.unwrap()), b"waits");
    for queue in &queues {
        assert_eq!(sub(&mut session, queue).await, Response::Sok(Some(service_id(&session))));
        assert_eq!(event(&mut client, queue).await, Response::End);
        // Once more changes nothing.
        assert_eq!(sub(&mut session, queue).await, Response::Sok(Some(service_id(&session))));
    }
    assert!(next_message(&mut session, &queues[0], b"waits").await.is_none());
    queues[1].sender().send(&mut sender, b"later").await.unwrap();
    assert!(next_message(&mut session, &queues[1], b"later").await.is_none());
    assert!(is_told_nothing(&mut client).await);
    assert_eq!(queues_of(&service, &relay).await, queues_with(ids(&queues)));
}

async fn an_ordinary_subscription_releases_the_queue(store: Store) {
    let relay = store.relay();
    let (service, mut client, mut sender) = (Service::messaging(), relay.connect().await, relay.connect().await);
    let mut session = service.connect(&relay).await;
    let queues = create(&mut session, 2).await;
    queues[0].sender().send(&mut sender, b"not acknowledged").await.unwrap();
    queues[0].message(&mut session).await.unwrap();
    assert_eq!(sub(&mut client, &queues[0]).await, Response::Sok(None));
    assert_eq!(event(&mut session, &queues[0]).await, Response::End);
    assert!(next_message(&mut client, &queues[0], b"not acknowledged").await.is_none());
    queues[0].sender().send(&mut sender, b"to the client").await.unwrap();
    assert!(next_message(&mut client, &queues[0], b"to the client").await.is_none());
    assert!(is_told_nothing(&mut session).await);
    // The session knows what it has left.
    assert_eq!(session.subscribe_service(NOTHING).await.unwrap(), queues_with([queues[1].id()]));
    assert_eq!(queues_of(&service, &relay).await, queues_with([queues[1].id()]));
}

async fn a_queue_moves_from_one_service_to_another(store: Store) {
    let relay = store.relay();
    let services = [Service::messaging(), Service::messaging()];
    let mut sessions = [services[0].connect(&relay).await, services[1].connect(&relay).await];
    let mut sender = relay.connect().await;
    let queue = NewQueue::messaging().create(&mut sessions[0]).await.unwrap();
    for round in 0..6_u8 {
        let [mut old, mut new] = sessions;
        assert_eq!(sub(&mut new, &queue).await, Response::Sok(Some(service_id(&new))));
        queue.sender().send(&mut sender, &[round]).await.unwrap();
        assert!(next_message(&mut new, &queue, &[round]).await.is_none());
        assert_eq!(event(&mut old, &queue).await, Response::End, "round {round}");
        assert!(is_told_nothing(&mut old).await);
        sessions = [new, old];
    }
    assert_eq!(queues_of(&services[0], &relay).await, queues_with([queue.id()]));
    assert_eq!(queues_of(&services[1], &relay).await, NOTHING);
}

async fn a_service_is_told_that_its_queue_was_deleted(store: Store) {
    let relay = store.relay();
    let (service, mut other) = (Service::messaging(), relay.connect().await);
    let mut session = service.connect(&relay).await;
    let queues = create(&mut session, 3).await;
    queues[0].delete(&mut other).await.unwrap();
    assert_eq!(event(&mut session, &queues[0]).await, Response::Deld);
    queues[1].delete(&mut session).await.unwrap();
    assert!(is_told_nothing(&mut session).await, "who deletes is not told");
    assert_eq!(session.subscribe_service(NOTHING).await.unwrap(), queues_with([queues[2].id()]));
    assert_eq!(queues_of(&service, &relay).await, queues_with([queues[2].id()]));
    assert_eq!(sub(&mut session, &queues[0]).await, refused(ErrorType::Auth));
}

/// Acknowledges messages and takes the next from the answers, until there is none: all bodies.
async fn drain(client: &mut Client, queue: &Queue, first: Response) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    let Response::Msg { id, body } = first else { panic!("{first:?}") };
    let mut next = Some(queue.open(&id, &body).unwrap());
    while let Some(message) = next {
        bodies.push(body_of(&message).to_vec());
        next = queue.acknowledge(client, &message.id.0).await.unwrap();
    }
    bodies
}

async fn a_service_gets_all_that_waits_and_is_told_when_that_is_all(store: Store) {
    const QUEUES: usize = 150;
    let relay = store.relay();
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut first = service.connect(&relay).await;
    let queues = create(&mut first, QUEUES).await;
    first.close();
    let waiting = &queues[..QUEUES - 10];
    for body in [b"one", b"two"] {
        let messages = waiting.iter().map(|queue| queue.sender().message(MessageFlags::default(), body));
        let messages: Vec<_> = messages.collect();
        assert!(sender.request_all(&messages).await.unwrap().iter().all(|answer| *answer == Response::Ok));
    }
    let mut session = service.connect(&relay).await;
    assert_eq!(session.subscribe_service(queues_with(ids(&queues))).await.unwrap(), queues_with(ids(&queues)));
    let mut came = BTreeSet::new();
    loop {
        let event = session.event().await.unwrap();
        if event.response == Response::Alls {
            assert_eq!(event.entity_id, EntityId::NONE);
            break;
        }
        let queue = waiting.iter().find(|queue| *queue.id() == event.entity_id).expect("a queue with messages");
        assert!(came.insert(event.entity_id.0), "a second message before the first is acknowledged");
        if came.len() % 2 == 0 {
            assert_eq!(drain(&mut session, queue, event.response).await, [b"one", b"two"]);
        }
    }
    assert_eq!(came.len(), waiting.len());
    assert!(is_told_nothing(&mut session).await);
    let last = &queues[QUEUES - 1];
    last.sender().send(&mut sender, b"live").await.unwrap();
    assert!(next_message(&mut session, last, b"live").await.is_none());
}

async fn a_second_subscription_of_a_session_is_only_answered(store: Store) {
    let relay = store.relay();
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut first = service.connect(&relay).await;
    let queues = create(&mut first, 2).await;
    queues[0].sender().send(&mut sender, b"waits").await.unwrap();
    let mut session = service.connect(&relay).await;
    let all = queues_with(ids(&queues));
    assert_eq!(session.subscribe_service(all).await.unwrap(), all);
    let message = queues[0].message(&mut session).await.unwrap();
    assert_eq!(session.event().await.unwrap().response, Response::Alls);
    assert_eq!(session.subscribe_service(all).await.unwrap(), all);
    assert!(is_told_nothing(&mut session).await);
    assert!(queues[0].acknowledge(&mut session, &message.id.0).await.unwrap().is_none());
}

async fn another_session_of_a_service_takes_over(store: Store) {
    let relay = store.relay();
    let (service, mut sender) = (Service::messaging(), relay.connect().await);
    let mut old = service.connect(&relay).await;
    let queues = create(&mut old, 3).await;
    let all = queues_with(ids(&queues));
    queues[0].sender().send(&mut sender, b"first").await.unwrap();
    queues[0].message(&mut old).await.unwrap();
    for round in 0..4_u8 {
        let mut new = service.connect(&relay).await;
        assert_eq!(new.subscribe_service(all).await.unwrap(), all);
        // What was not acknowledged comes again, before the word that this was all.
        if round == 0 {
            assert!(next_message(&mut new, &queues[0], b"first").await.is_none());
        }
        assert_eq!(new.event().await.unwrap().response, Response::Alls);
        let ended = old.event_about(&service_id(&old)).await.unwrap();
        assert_eq!(ended.response, Response::Ends(all), "round {round}");
        queues[1].sender().send(&mut sender, &[round]).await.unwrap();
        assert!(next_message(&mut new, &queues[1], &[round]).await.is_none());
        assert!(is_told_nothing(&mut old).await);
        old = new;
    }
}

async fn a_new_queue_or_association_takes_over_too(store: Store) {
    let relay = store.relay();
    let (service, mut client) = (Service::messaging(), relay.connect().await);
    let mut old = service.connect(&relay).await;
    let mut queues = create(&mut old, 1).await;
    for creates in [true, false] {
        let mut new = service.connect(&relay).await;
        let before = queues_with(ids(&queues));
        if creates {
            queues.extend(create(&mut new, 1).await);
        } else {
            queues.extend(create(&mut client, 1).await);
            assert_eq!(sub(&mut new, &queues[2]).await, Response::Sok(Some(service_id(&new))));
        }
        // Of what the old session had: the new one has not subscribed to all.
        let ended = old.event_about(&service_id(&old)).await.unwrap().response;
        let Response::Ends(ended) = ended else { panic!("{ended:?}") };
        if creates {
            assert_eq!(ended, before);
        }
        let all = queues_with(ids(&queues));
        assert_eq!(new.subscribe_service(NOTHING).await.unwrap(), all);
        assert_eq!(new.event().await.unwrap().response, Response::Alls);
        for queue in &queues {
            queue.sender().send(&mut client, b"to the last").await.unwrap();
            assert!(next_message(&mut new, queue, b"to the last").await.is_none());
        }
        old = new;
    }
}

async fn wrong_expectations_are_answered_with_what_there_is(store: Store) {
    let relay = store.relay();
    let service = Service::messaging();
    let mut first = service.connect(&relay).await;
    let queues = create(&mut first, 2).await;
    let all = queues_with(ids(&queues));
    for expected in [
        NOTHING,
        ServiceQueues { count: 5, ..all },
        ServiceQueues { count: -1, ..NOTHING },
        ServiceQueues { count: 2, hash: IdsHash([7; 16]) },
        ServiceQueues { count: i64::MIN, ..NOTHING },
        ServiceQueues { count: i64::MAX, ..NOTHING },
    ] {
        let mut session = service.connect(&relay).await;
        assert_eq!(session.subscribe_service(expected).await.unwrap(), all);
        assert_eq!(session.event().await.unwrap().response, Response::Alls);
    }
}

async fn the_service_signs_exactly_what_it_must(store: Store) {
    let relay = store.relay();
    let mut session = Service::messaging().connect(&relay).await;
    let queue = NewQueue::messaging().create(&mut session).await.unwrap();
    let new = NewQueue::messaging().request().unwrap();
    let absent = Request::new(EntityId(vec![1; 24].into()), Command::Sub).authorized_by(&queue.key);
    let mut foreign = Service::messaging().connect(&relay).await;
    for (request, error) in [
        (queue.request(Command::Sub).signed_by_service(false), ErrorType::Service),
        (new.signed_by_service(false), ErrorType::Service),
        (queue.request(Command::Que).signed_by_service(true), ErrorType::Service),
        (queue.request(Command::Sub).authorized_by(&signing_key()), ErrorType::Auth),
        (absent, ErrorType::Auth),
    ] {
        assert_eq!(session.request(request.clone()).await.unwrap(), refused(error.clone()), "{:?}", request.command);
        assert_eq!(foreign.request(request.clone()).await.unwrap(), refused(error), "{:?}", request.command);
    }
    assert!(matches!(session.request(queue.request(Command::Que)).await.unwrap(), Response::Info(_)));
    assert_eq!(session.subscribe_service(NOTHING).await.unwrap(), queues_with([queue.id()]));
}

async fn only_the_service_subscribes_to_all_of_its_queues(store: Store) {
    let relay = store.relay();
    let mut session = Service::messaging().connect(&relay).await;
    let (mut other, mut client) = (Service::messaging().connect(&relay).await, relay.connect().await);
    let own = session.service().unwrap().clone();
    let key = PrivateAuthKey::Signing(own.credentials.session_key.clone());
    let good = own.subscription(NOTHING);
    let foreign_id = Request { entity_id: service_id(&other), ..good.clone() };
    let foreign_key = good.clone().authorized_by(&signing_key());
    let signed_twice = good.clone().signed_by_service(true);
    for request in [foreign_id, foreign_key, signed_twice] {
        assert_eq!(session.request(request).await.unwrap(), refused(ErrorType::Service));
    }
    for stranger in [&mut other, &mut client] {
        assert_eq!(stranger.request(good.clone()).await.unwrap(), refused(ErrorType::Service));
    }
    let of_notifiers = Request::new(own.id, Command::Nsubs(NOTHING)).authorized_by(&key);
    assert_eq!(session.request(of_notifiers).await.unwrap(), refused(PROHIBITED));
    assert_eq!(session.request(good).await.unwrap(), Response::Soks(NOTHING));
}

async fn a_notifier_service_is_told_of_its_queues_messages(store: Store) {
    let relay = store.relay();
    for version in 16..=20 {
        let service = Service::notifier();
        let mut session = service.connect_in(&relay, version).await;
        let (mut recipient, mut client) = (relay.connect().await, relay.connect().await);
        let (queue, notifier) = notified(&mut recipient).await;
        notifier.subscribe(&mut client).await.unwrap();
        let answer = session.request(notifier.request(Command::Nsub)).await.unwrap();
        assert_eq!(answer, Response::Sok(Some(service_id(&session))), "version {version}");
        assert_eq!(notifier.event(&mut client).await.unwrap().response, Response::End);
        queue.sender().send_notified(&mut client, b"notified").await.unwrap();
        let message = queue.message(&mut recipient).await.unwrap();
        assert_eq!(notifier.notification(&mut session).await.unwrap().message_id, message.id.0[..]);
        // An ordinary client takes the notifier out of the service.
        notifier.subscribe(&mut client).await.unwrap();
        assert_eq!(notifier.event(&mut session).await.unwrap().response, Response::End);
        queue.sender().send_notified(&mut client, b"notified").await.unwrap();
        notifier.notification(&mut client).await.unwrap();
        assert!(is_told_nothing(&mut session).await, "version {version}");
        assert_eq!(queues_of(&service, &relay).await, NOTHING);
    }
}

/// What an answer without a hash says, as versions before 19 have it.
fn in_version(queues: ServiceQueues, version: u16) -> ServiceQueues {
    if version >= 19 { queues } else { ServiceQueues { hash: IdsHash::default(), ..queues } }
}

async fn a_notifier_service_subscribes_to_all_of_its_notifiers(store: Store) {
    let relay = store.relay();
    for version in 16..=20 {
        let (service, mut recipient) = (Service::notifier(), relay.connect().await);
        let mut old = service.connect_in(&relay, version).await;
        let (queue, notifier) = notified(&mut recipient).await;
        let (other_queue, other_notifier) = notified(&mut recipient).await;
        notifier.subscribe(&mut old).await.unwrap();
        other_notifier.subscribe(&mut old).await.unwrap();
        let all = in_version(queues_with([&notifier.id, &other_notifier.id]), version);
        for round in 0..3 {
            let mut new = service.connect_in(&relay, version).await;
            assert_eq!(new.subscribe_service(all).await.unwrap(), all, "version {version}");
            let ended = old.event_about(&service_id(&old)).await.unwrap().response;
            assert_eq!(ended, Response::Ends(all), "version {version}, round {round}");
            for (queue, notifier) in [(&queue, &notifier), (&other_queue, &other_notifier)] {
                queue.sender().send_notified(&mut recipient, b"notified").await.unwrap();
                notifier.notification(&mut new).await.unwrap();
            }
            assert!(is_told_nothing(&mut old).await);
            assert_eq!(new.subscribe_service(all).await.unwrap(), all);
            old = new;
        }
        old.close();
        // What comes while nobody is there waits for the next session.
        queue.sender().send_notified(&mut recipient, b"notified").await.unwrap();
        let mut next = service.connect_in(&relay, version).await;
        assert_eq!(next.subscribe_service(all).await.unwrap(), all);
        notifier.notification(&mut next).await.unwrap();
    }
}

async fn a_notifier_service_is_told_of_notifiers_that_it_loses(store: Store) {
    let relay = store.relay();
    let (service, mut recipient) = (Service::notifier(), relay.connect().await);
    let mut session = service.connect(&relay).await;
    let mut notified_queues = Vec::new();
    for _ in 0..4 {
        let (queue, notifier) = notified(&mut recipient).await;
        notifier.subscribe(&mut session).await.unwrap();
        notified_queues.push((queue, notifier));
    }
    // They are the session's whether it has subscribed to each or to all.
    let mut session = service.connect(&relay).await;
    session.subscribe_service(NOTHING).await.unwrap();
    notified_queues[0].0.disable_notifications(&mut recipient).await.unwrap();
    notified_queues[1].0.delete(&mut recipient).await.unwrap();
    let credentials = NotifierCredentials::generate();
    notified_queues[2].0.enable_notifications(&mut recipient, credentials).await.unwrap();
    for (_, notifier) in &notified_queues[..3] {
        assert_eq!(notifier.event(&mut session).await.unwrap().response, Response::Deld);
    }
    let left = queues_with([&notified_queues[3].1.id]);
    assert_eq!(session.subscribe_service(NOTHING).await.unwrap(), left);
    assert_eq!(queues_of(&service, &relay).await, left);
}

async fn services_and_their_queues_are_kept(store: Store) {
    let relay = store.relay_with(&[]);
    let (service, notifying) = (Service::messaging(), Service::notifier());
    let mut session = service.connect(&relay).await;
    let id = service_id(&session);
    let queues = create(&mut session, 3).await;
    queues[0].sender().send(&mut session, b"kept").await.unwrap();
    let (_, notifier) = notified(&mut relay.connect().await).await;
    notifier.subscribe(&mut notifying.connect(&relay).await).await.unwrap();

    let relay = relay.restart().await;
    let mut session = service.connect(&relay).await;
    assert_eq!(service_id(&session), id);
    let all = queues_with(ids(&queues));
    assert_eq!(session.subscribe_service(all).await.unwrap(), all);
    assert!(next_message(&mut session, &queues[0], b"kept").await.is_none());
    assert_eq!(session.event().await.unwrap().response, Response::Alls);
    assert_eq!(queues_of(&notifying, &relay).await, queues_with([&notifier.id]));
    assert_eq!(why(notifier.subscribe(&mut session).await), PROHIBITED);
}
