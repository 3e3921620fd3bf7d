//! What the log must not tell.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use rustix::process::Signal;
use smp_server::client::{
    Client, ConnectOptions, NewQueue, Notifier, NotifierCredentials, Queue, Request, Sender, open_link, read_link,
};
use smp_server::protocol::command::Command;
use smp_server::protocol::crypto::random_array;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use crate::support::{
    Relay, Server, Service, Store, contact_id, for_each_store, link_data, next_message, queues_with, service_id,
    signing_key,
};

for_each_store!(the_log_tells_no_queue_message_key_or_client, the_log_tells_no_secret_at_any_level);

/// An address that is nobody else's, so that it is found wherever it is written.
const CLIENT_HOST: Ipv4Addr = Ipv4Addr::new(127, 77, 66, 55);

const PASSWORD: &str = "a-very-secret-password";
const BODY: &[u8] = b"what nobody but the recipient may read";

/// A relay that logs at this level.
fn relay(store: Store, level: &str) -> Relay {
    let installation = store.installation();
    let settings = [
        ("AUTH", "create_password", PASSWORD),
        ("TRANSPORT", "log_tls_errors", "on"),
        ("TRANSPORT", "handshake_timeout", "2"),
        ("STORE_LOG", "message_queue_quota", "2"),
        ("STORE_LOG", "expire_messages_seconds", "1"),
        ("STORE_LOG", "expire_check_seconds", "1"),
    ];
    for (section, key, value) in settings {
        installation.set(section, key, value);
    }
    let mut command = installation.command(&["start"]);
    command.env("RUST_LOG", level);
    Relay::of(Server::start_by(command, installation))
}

/// What must not be found, under the names by which a failure tells of it.
#[derive(Default)]
struct Forbidden(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Forbidden {
    fn add(&mut self, name: &'static str, bytes: &[u8]) {
        self.0.entry(name).or_default().push(bytes.to_vec());
    }

    fn add_queue(&mut self, queue: &Queue) {
        self.add("recipient ID", &queue.ids.recipient_id.0);
        self.add("sender ID", &queue.ids.sender_id.0);
        if let Some(link_id) = &queue.ids.link_id {
            self.add("link ID", &link_id.0);
        }
        self.add("public key", &queue.key.public_key().unwrap().to_der());
        self.add("key of the delivery secret", &queue.ids.dh_key.0);
    }

    fn add_notifier(&mut self, notifier: &Notifier) {
        self.add("notifier ID", &notifier.id.0);
        self.add("notifier's public key", &notifier.key.public_key().unwrap().to_der());
    }

    fn add_service(&mut self, service: &Service, session: &Client) {
        self.add("service ID", &service_id(session).0);
        self.add("service's fingerprint", &service.fingerprint());
    }

    /// What of it stands in the log, in whatever encoding.
    fn found_in(&self, log: &str) -> Vec<String> {
        let lower = log.to_lowercase();
        let all = self.0.iter().flat_map(|(name, all)| all.iter().map(move |bytes| (name, bytes)));
        all.filter(|(_, bytes)| is_in(log, &lower, bytes)).map(|(name, _)| (*name).to_owned()).collect()
    }
}

fn is_in(log: &str, lower: &str, bytes: &[u8]) -> bool {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // As `Debug` writes a list of numbers.
    let list = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    log.contains(&URL_SAFE_NO_PAD.encode(bytes))
        || log.contains(&STANDARD_NO_PAD.encode(bytes))
        || lower.contains(&hex)
        || log.contains(&list)
        || std::str::from_utf8(bytes).is_ok_and(|text| log.contains(text))
}

async fn client(relay: &Relay) -> Client {
    client_with(relay, ConnectOptions::default()).await
}

async fn client_with(relay: &Relay, options: ConnectOptions) -> Client {
    let options = ConnectOptions { local_address: Some(IpAddr::V4(CLIENT_HOST)), ..options };
    relay.connect_with(&options).await.unwrap()
}

fn new_queue() -> NewQueue {
    NewQueue::messaging().with_password(Some(PASSWORD.as_bytes().into()))
}

/// The whole life of queues, with all that may be refused on the way.
async fn traffic(relay: &Relay, forbidden: &mut Forbidden) {
    let (mut client, mut other) = (client(relay).await, client(relay).await);
    let password = || Some(PASSWORD.as_bytes().into());
    let invitation = NewQueue::messaging().with_invitation(link_data("x")).with_password(password());
    let queue = invitation.create(&mut client).await.unwrap();
    let sender = Sender::with_key(queue.ids.sender_id.clone(), signing_key());
    forbidden.add_queue(&queue);
    open_link(&mut other, queue.ids.link_id.as_ref().unwrap(), sender.key.as_ref().unwrap()).await.unwrap();
    let link_id = contact_id();
    let contact = NewQueue::contact().with_contact_link(link_id.clone(), link_data("x")).with_password(password());
    forbidden.add_queue(&contact.create(&mut client).await.unwrap());
    read_link(&mut other, &link_id).await.unwrap();
    for _ in 0..4 {
        // The quota is 2.
        let _ = sender.send(&mut other, BODY).await;
    }
    let message = queue.message(&mut client).await.unwrap();
    forbidden.add("message ID", &message.id.0);
    queue.subscribe(&mut other).await.unwrap();
    queue.event(&mut client).await.unwrap();
    for command in [Command::Sub, Command::Get, Command::Del, Command::Que, Command::Off] {
        let forged = queue.request(command).authorized_by(&signing_key());
        other.request(forged).await.unwrap();
    }
    other.request(Request::plain(Command::Get)).await.unwrap();
    client.send_block(b"malformed").await.unwrap();
    client.receive().await.unwrap();
    queue.delete(&mut client).await.unwrap();
}

/// Notifiers that come, are told, lose their place and go.
async fn notifications(relay: &Relay, forbidden: &mut Forbidden) {
    let (mut client, mut other) = (client(relay).await, client(relay).await);
    let queue = new_queue().with_notifier(NotifierCredentials::generate()).create(&mut client).await.unwrap();
    let notifier = queue.notifier.clone().unwrap();
    forbidden.add_notifier(&notifier);
    notifier.subscribe(&mut client).await.unwrap();
    notifier.subscribe(&mut other).await.unwrap();
    notifier.event(&mut client).await.unwrap();
    queue.sender().send_notified(&mut client, BODY).await.unwrap();
    notifier.notification(&mut other).await.unwrap();
    let next = queue.enable_notifications(&mut client, NotifierCredentials::generate()).await.unwrap();
    forbidden.add_notifier(&next);
    notifier.event(&mut other).await.unwrap();
    next.subscribe(&mut other).await.unwrap();
    queue.disable_notifications(&mut client).await.unwrap();
    next.event(&mut other).await.unwrap();
}

/// Services of both kinds that take queues over from each other, and are refused.
async fn services(relay: &Relay, forbidden: &mut Forbidden) {
    let services = [Service::messaging(), Service::messaging()];
    let mut sessions =
        [client_with(relay, services[0].options()).await, client_with(relay, services[1].options()).await];
    for (service, session) in services.iter().zip(&sessions) {
        forbidden.add_service(service, session);
    }
    let queue = new_queue().create(&mut sessions[0]).await.unwrap();
    forbidden.add_queue(&queue);
    queue.subscribe(&mut sessions[1]).await.unwrap();
    queue.event(&mut sessions[0]).await.unwrap();
    let mut next = client_with(relay, services[1].options()).await;
    next.subscribe_service(queues_with([])).await.unwrap();
    next.request(queue.request(Command::Sub).signed_by_service(false)).await.unwrap();
    sessions[1].event_about(&service_id(&next)).await.unwrap();
    let service = Service::notifier();
    let mut session = client_with(relay, service.options()).await;
    forbidden.add_service(&service, &session);
    let notifier = queue.enable_notifications(&mut next, NotifierCredentials::generate()).await.unwrap();
    forbidden.add_notifier(&notifier);
    notifier.subscribe(&mut session).await.unwrap();
    queue.sender().send_notified(&mut client(relay).await, BODY).await.unwrap();
    notifier.notification(&mut session).await.unwrap();
    session.subscribe_service(queues_with([])).await.unwrap();
    queue.delete(&mut next).await.unwrap();
    let refused = service.with_role(smp_server::protocol::handshake::ServiceRole::Messaging);
    assert!(relay.connect_with(&refused.options()).await.is_err());
}

/// Peers that fail their handshake, from the same address.
async fn failed_handshakes(relay: &Relay) {
    let garbage = random_array::<512>();
    for bytes in [&garbage[..], b"GET / HTTP/1.1\r\n\r\n", b""] {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((CLIENT_HOST, 0).into()).unwrap();
        let mut socket = socket.connect(relay.server().address()).await.unwrap();
        let _ = socket.write_all(bytes).await;
        let mut buffer = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut buffer).await;
    }
}

/// What the server logged at this level under traffic, and what must not be in it.
async fn log_of(store: Store, level: &str) -> (String, Forbidden) {
    let relay = relay(store, level);
    let mut forbidden = Forbidden::default();
    traffic(&relay, &mut forbidden).await;
    notifications(&relay, &mut forbidden).await;
    services(&relay, &mut forbidden).await;
    failed_handshakes(&relay).await;
    // A message expires, which is logged.
    let mut client = client(&relay).await;
    let new = NewQueue::messaging().only_created().with_password(Some(PASSWORD.as_bytes().into()));
    let queue = new.create(&mut client).await.unwrap();
    next_message_expires(&mut client, &queue).await;
    forbidden.add_queue(&queue);
    let log = relay.end(Signal::TERM).await.output.join("\n");
    (log, forbidden)
}

async fn next_message_expires(client: &mut Client, queue: &Queue) {
    queue.sender().send(client, BODY).await.unwrap();
    crate::support::until("expiry", async || queue.info(client).await.unwrap().size == 0).await;
    queue.subscribe(client).await.unwrap();
    queue.sender().send(client, b"still there").await.unwrap();
    next_message(client, queue, b"still there").await;
}

async fn the_log_tells_no_queue_message_key_or_client(store: Store) {
    let (log, mut forbidden) = log_of(store, "info").await;
    forbidden.add("client address", CLIENT_HOST.to_string().as_bytes());
    assert!(log.contains("expired old messages"), "the log is on: {log}");
    assert_eq!(forbidden.found_in(&log), Vec::<String>::new(), "{log}");
}

async fn the_log_tells_no_secret_at_any_level(store: Store) {
    let (log, _) = log_of(store, "trace").await;
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log is on: {log}");
    let mut forbidden = Forbidden::default();
    forbidden.add("password", PASSWORD.as_bytes());
    forbidden.add("body", BODY);
    assert_eq!(forbidden.found_in(&log), Vec::<String>::new());
}

#[test]
fn what_is_forbidden_is_found_in_every_encoding() {
    let mut forbidden = Forbidden::default();
    forbidden.add("id", &[0xfb, 0xef, 0xbe, 1, 2, 3]);
    for log in ["x ++++AQID", "x ----AQID", "fbefbe010203", "FBEFBE010203", "[251, 239, 190, 1, 2, 3]"] {
        assert_eq!(forbidden.found_in(log), ["id"], "{log}");
    }
    assert!(forbidden.found_in("fbefbe0102").is_empty());
}
