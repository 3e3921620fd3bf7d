//! Which commands a service may give, and who has to sign them.

use bytes::Bytes;

use super::super::peer::{Ask, Queue, new, send, signing_key};
use super::super::service::{NOTHING, UNKNOWN};
use super::super::{Peer, World};
use crate::protocol::address::NameDomain;
use crate::protocol::command::{Command, LinkData, MessageFlags, QueueRequest};
use crate::protocol::crypto::{PrivateAuthKey, SecretDhKey, random_queue_id};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole::{Messaging, Notifier, Proxy};
use crate::protocol::keys::PublicDhKey;
use crate::protocol::response::Response;
use crate::protocol::{EntityId, Version};

const PROHIBITED: Response = Response::Err(ErrorType::Cmd(CommandError::Prohibited));
const NOT_SIGNED: Response = Response::Err(ErrorType::Service);
const NOT_AUTHORIZED: Response = Response::Err(ErrorType::Auth);

fn dh_key() -> PublicDhKey {
    SecretDhKey::generate().public_key()
}

/// Every command of the recipient, the sender, and whoever asks a relay for something, about a queue that is not there.
fn of_messaging(key: &PrivateAuthKey) -> Vec<Ask<'_>> {
    let public = key.public_key().unwrap();
    let data = LinkData { fixed: Bytes::new(), user: Bytes::new() };
    let address = "smp://LcJUMfVhwD8yxjAiSaDzzGF3-kLG4Uh0Fl_ZIjrRwjI=@localhost".parse().unwrap();
    let of_queue = [
        Command::Sub,
        Command::Key(public.clone()),
        Command::Rkey(vec![public.clone()]),
        Command::Lset(random_queue_id().into(), data),
        Command::Ldel,
        Command::Nkey(public.clone(), dh_key()),
        Command::Ndel,
        Command::Get,
        Command::Ack(Bytes::new()),
        Command::Off,
        Command::Del,
        Command::Que,
        Command::Skey(public.clone()),
        Command::Send(MessageFlags::default(), Bytes::new()),
        Command::Lkey(public),
    ];
    let mut asks: Vec<Ask<'_>> =
        of_queue.into_iter().map(|command| (random_queue_id().into(), Some(key), command)).collect();
    asks.push((EntityId::NONE, Some(key), new(key, true, QueueRequest::Messaging(None))));
    asks.push((random_queue_id().into(), None, Command::Lget));
    asks.push((EntityId::NONE, None, Command::Prxy(address, None)));
    asks.push((random_queue_id().into(), None, Command::Pfwd(Version::NAMES, dh_key(), Bytes::from_static(b"x"))));
    asks.push((EntityId::NONE, None, Command::Rslv(NameDomain::parse("name.simplex").unwrap())));
    asks.push((random_queue_id().into(), Some(key), Command::Subs(UNKNOWN)));
    asks
}

fn of_notifier(key: &PrivateAuthKey) -> Vec<Ask<'_>> {
    [Command::Nsub, Command::Nsubs(UNKNOWN)].map(|command| (random_queue_id().into(), Some(key), command)).into()
}

fn of_proxy() -> Vec<Ask<'static>> {
    vec![(EntityId::NONE, None, Command::Rfwd(Bytes::from_static(b"x")))]
}

async fn answer(peer: &Peer, ask: &Ask<'_>) -> Response {
    peer.ask(ask.0.clone(), ask.1, ask.2.clone()).await
}

/// The answer to a command that the service signs as it is told to, not as it should.
async fn answer_if_signed(peer: &Peer, ask: Ask<'_>, signs: bool) -> Response {
    let id = peer.put_signed(&[ask], |_| signs).remove(0);
    peer.answer(&id).await
}

#[actix::test]
async fn each_role_has_its_own_commands() {
    let world = World::new();
    let key = signing_key();
    for role in [Messaging, Notifier, Proxy] {
        let peer = world.connect_service(&world.service(role).await);
        for (part, asks) in [(Messaging, of_messaging(&key)), (Notifier, of_notifier(&key)), (Proxy, of_proxy())] {
            for ask in asks {
                let answer = answer(&peer, &ask).await;
                assert_eq!(answer == PROHIBITED, part != role, "{:?} of a {role:?} service: {answer:?}", ask.2);
            }
        }
        assert_eq!(peer.ask(EntityId::NONE, None, Command::Ping).await, Response::Pong);
    }
}

#[actix::test]
async fn who_is_no_service_has_the_commands_of_every_role_but_those_for_all_queues_of_one() {
    let world = World::new();
    let (key, peer) = (signing_key(), world.connect());
    for ask in of_messaging(&key).into_iter().chain(of_notifier(&key)).chain(of_proxy()) {
        let answer = answer(&peer, &ask).await;
        assert_ne!(answer, PROHIBITED, "{:?}", ask.2);
        let for_all = matches!(ask.2, Command::Subs(_) | Command::Nsubs(_));
        assert_eq!(answer == NOT_SIGNED, for_all, "{:?}: {answer:?}", ask.2);
    }
}

/// A service with a queue of its own, and another queue's key.
async fn with_queue(world: &World) -> (Peer, Queue, PrivateAuthKey) {
    let session = world.connect_service(&world.service(Messaging).await);
    let queue = session.create().await;
    (session, queue, signing_key())
}

#[actix::test]
async fn a_command_of_another_role_is_prohibited_whatever_else_is_wrong_with_it() {
    let world = World::new();
    let (_, queue, wrong) = with_queue(&world).await;
    let notifier = world.connect_service(&world.service(Notifier).await);
    for signs in [true, false] {
        for key in [&queue.key, &wrong] {
            let sub = (queue.recipient(), Some(key), Command::Sub);
            assert_eq!(answer_if_signed(&notifier, sub, signs).await, PROHIBITED);
        }
    }
}

#[actix::test]
async fn a_signature_that_is_missing_or_too_much_is_told_before_what_the_queue_key_lacks() {
    let world = World::new();
    let (session, queue, wrong) = with_queue(&world).await;
    let create = new(&queue.key, true, QueueRequest::Messaging(None));
    for key in [&queue.key, &wrong] {
        for (entity, command) in [(queue.recipient(), Command::Sub), (EntityId::NONE, create.clone())] {
            assert_eq!(answer_if_signed(&session, (entity, Some(key), command), false).await, NOT_SIGNED);
        }
        for command in [Command::Que, Command::Off, Command::Ack(Bytes::new()), Command::Del] {
            let ask = (queue.recipient(), Some(key), command);
            assert_eq!(answer_if_signed(&session, ask, true).await, NOT_SIGNED);
        }
        let send = (queue.sender(), Some(key), send(b"signed"));
        assert_eq!(answer_if_signed(&session, send, true).await, NOT_SIGNED);
    }
    assert_eq!(world.stored(&session.as_service.as_ref().unwrap().service).await.count, 1, "nothing was done");
}

#[actix::test]
async fn a_service_that_signs_does_not_replace_the_queue_key() {
    let world = World::new();
    let (session, queue, wrong) = with_queue(&world).await;
    let absent = EntityId::from(random_queue_id());
    for ask in [
        (queue.recipient(), Some(&wrong), Command::Sub),
        (absent, Some(&queue.key), Command::Sub),
        (queue.recipient(), Some(&wrong), Command::Que),
    ] {
        assert_eq!(answer(&session, &ask).await, NOT_AUTHORIZED, "{:?}", ask.2);
    }
}

/// The queue's key names the service in what it signs: another service cannot put its signature beside it.
#[actix::test]
async fn what_a_queue_key_signed_for_one_service_is_of_no_use_to_another() {
    let world = World::new();
    let (session, queue, _) = with_queue(&world).await;
    let mut thief = world.connect_service(&world.service(Messaging).await);
    let own = thief.as_service.take().unwrap();
    // The thief's session key beside an authorization that names the certificate of the queue's service.
    thief.as_service = Some(own.naming(&session.as_service.as_ref().unwrap().service));
    assert_eq!(thief.ask(queue.recipient(), Some(&queue.key), Command::Sub).await, NOT_AUTHORIZED);
    assert_eq!(world.stored(&own.service).await, NOTHING);
}

#[actix::test]
async fn only_the_key_of_the_session_subscribes_to_all_queues_of_the_session_s_service() {
    let world = World::new();
    let (session, ..) = with_queue(&world).await;
    let (service, id) = (session.as_service.clone().unwrap(), session.as_service.as_ref().unwrap().id());
    let other = world.connect_service(&world.service(Messaging).await);
    let again = world.connect_service(&service.service);
    let subs = || Command::Subs(NOTHING);
    for (ask, signs, why) in [
        ((other.as_service.as_ref().unwrap().id(), Some(&service.key()), subs()), false, "another service's ID"),
        ((id.clone(), Some(&signing_key()), subs()), false, "a foreign key"),
        ((id.clone(), Some(&again.as_service.as_ref().unwrap().key()), subs()), false, "the key of another session"),
        ((id.clone(), Some(&service.key()), subs()), true, "a second signature"),
    ] {
        assert_eq!(answer_if_signed(&session, ask, signs).await, NOT_SIGNED, "{why}");
    }
    for stranger in [&other, &world.connect()] {
        let ask = (id.clone(), Some(&service.key()), subs());
        assert_eq!(answer_if_signed(stranger, ask, false).await, NOT_SIGNED);
    }
    assert!(matches!(session.subscribe_service(NOTHING).await, Response::Soks(_)));
}

#[actix::test]
async fn a_signature_by_another_key_than_that_of_the_session_is_none() {
    let world = World::new();
    let (mut session, queue, _) = with_queue(&world).await;
    let service = session.as_service.as_ref().unwrap().service;
    let mut ordinary = world.connect();
    ordinary.as_service = session.as_service.clone();
    session.as_service = world.connect_service(&service).as_service.take();
    for peer in [&session, &ordinary] {
        assert_eq!(peer.ask(queue.recipient(), Some(&queue.key), Command::Sub).await, NOT_SIGNED);
    }
}
