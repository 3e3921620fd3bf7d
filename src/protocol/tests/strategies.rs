//! Values for property tests: everything that version 20 can carry.

use bytes::Bytes;
use proptest::option;
use proptest::prelude::*;

use crate::protocol::address::{Host, NameDomain, ServerAddress};
use crate::protocol::certificate::CertificateChainKey;
use crate::protocol::command::{
    Command, IdsHash, LinkData, MessageFlags, NewNotifier, NewQueueRequest, QueueMode, QueueRequest, ServiceQueues,
};
use crate::protocol::error::{
    BlockingInfo, BlockingReason, BrokerError, ClientNotice, CommandError, ErrorType, HandshakeError, NameError,
    NetworkError, ProxyError, TransportErrorType,
};
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::response::{
    InfoTime, MessageInfo, QueueIds, QueueInfo, Response, SubscriptionInfo, SubscriptionKind,
};
use crate::protocol::transmission::{Authorization, Signature};
use crate::protocol::version::{Version, VersionRange};

pub fn bytes(longest: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..=longest).prop_map(Bytes::from)
}

pub fn entity_id() -> impl Strategy<Value = EntityId> {
    bytes(255).prop_map(EntityId)
}

pub fn correlation_id() -> impl Strategy<Value = CorrelationId> {
    bytes(255).prop_map(CorrelationId)
}

pub fn any_version() -> impl Strategy<Value = Version> {
    (6u16..=20).prop_map(Version)
}

fn dh_key() -> impl Strategy<Value = PublicDhKey> {
    any::<[u8; 32]>().prop_map(PublicDhKey)
}

fn auth_key() -> impl Strategy<Value = PublicAuthKey> {
    prop_oneof![
        any::<[u8; 32]>().prop_map(PublicAuthKey::Ed25519),
        prop::array::uniform(any::<u8>()).prop_map(|key| PublicAuthKey::Ed448(Box::new(key))),
        dh_key().prop_map(PublicAuthKey::X25519),
    ]
}

pub fn authorization() -> impl Strategy<Value = Authorization> {
    prop_oneof![
        Just(Authorization::None),
        prop::array::uniform(any::<u8>()).prop_map(|bytes| Authorization::Signature(Signature::Ed25519(bytes))),
        prop::array::uniform(any::<u8>()).prop_map(|bytes| Authorization::Signature(Signature::Ed448(Box::new(bytes)))),
        prop::array::uniform(any::<u8>()).prop_map(Authorization::Authenticator),
    ]
}

fn service_queues() -> impl Strategy<Value = ServiceQueues> {
    any::<(i64, [u8; 16])>().prop_map(|(count, hash)| ServiceQueues { count, hash: IdsHash(hash) })
}

fn link_data() -> impl Strategy<Value = LinkData> {
    (bytes(1000), bytes(1000)).prop_map(|(fixed, user)| LinkData { fixed, user })
}

fn password() -> impl Strategy<Value = Bytes> {
    "[!-.0-9;-?A-~]{0,255}".prop_map(Bytes::from)
}

fn queue_request() -> impl Strategy<Value = QueueRequest> {
    let link = || option::of((entity_id(), link_data()));
    prop_oneof![
        link().prop_map(QueueRequest::Messaging),
        option::of((entity_id(), (entity_id(), link_data()))).prop_map(QueueRequest::Contact),
    ]
}

fn new_notifier() -> impl Strategy<Value = NewNotifier> {
    (auth_key(), dh_key()).prop_map(|(key, dh_key)| NewNotifier { key, dh_key })
}

fn new_queue_request() -> impl Strategy<Value = NewQueueRequest> {
    let parts = (
        auth_key(),
        dh_key(),
        option::of(password()),
        any::<bool>(),
        option::of(queue_request()),
        option::of(new_notifier()),
    );
    parts.prop_map(|(recipient_key, dh_key, password, subscribe, queue, notifier)| NewQueueRequest {
        recipient_key,
        dh_key,
        password,
        subscribe,
        queue,
        notifier,
    })
}

fn host() -> impl Strategy<Value = Host> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|octets| Host::Ipv4(octets.into())),
        any::<[u8; 16]>().prop_map(|octets| Host::Ipv6(octets.into())),
        "[a-z2-7]{1,56}".prop_map(|name| Host::Onion(format!("{name}.onion"))),
        "[g-z][a-z_-]{0,20}(\\.[g-z][a-z]{0,10}){0,3}".prop_map(Host::Domain),
    ]
}

pub fn server_address() -> impl Strategy<Value = ServerAddress> {
    (prop::collection::vec(host(), 1..5), option::of(any::<u16>()), bytes(40)).prop_map(|(hosts, port, fingerprint)| {
        ServerAddress { hosts, port: port.map(|port| port.to_string()).unwrap_or_default(), fingerprint }
    })
}

fn name_domain() -> impl Strategy<Value = NameDomain> {
    "[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,1}(\\.[a-z0-9]{1,20}){1,4}"
        .prop_map(|name| NameDomain::parse(&name).expect("a name"))
}

pub fn command() -> impl Strategy<Value = Command> {
    let plain = prop::sample::select(vec![
        Command::Sub,
        Command::Ldel,
        Command::Ndel,
        Command::Get,
        Command::Off,
        Command::Del,
        Command::Que,
        Command::Ping,
        Command::Lget,
        Command::Nsub,
    ]);
    let queue = prop_oneof![
        new_queue_request().prop_map(|request| Command::New(Box::new(request))),
        auth_key().prop_map(Command::Key),
        prop::collection::vec(auth_key(), 1..10).prop_map(Command::Rkey),
        (entity_id(), link_data()).prop_map(|(link, data)| Command::Lset(link, data)),
        (auth_key(), dh_key()).prop_map(|(key, dh_key)| Command::Nkey(key, dh_key)),
        bytes(255).prop_map(Command::Ack),
        auth_key().prop_map(Command::Skey),
        (any::<bool>(), bytes(2000))
            .prop_map(|(notification, body)| Command::Send(MessageFlags { notification }, body)),
        auth_key().prop_map(Command::Lkey),
    ];
    let other = prop_oneof![
        service_queues().prop_map(Command::Subs),
        service_queues().prop_map(Command::Nsubs),
        (server_address(), option::of(password())).prop_map(|(address, password)| Command::Prxy(address, password)),
        (any::<u16>(), dh_key(), bytes(500)).prop_map(|(v, key, sent)| Command::Pfwd(Version(v), key, sent)),
        bytes(500).prop_map(Command::Rfwd),
        name_domain().prop_map(Command::Rslv),
    ];
    prop_oneof![1 => plain, 4 => queue, 2 => other]
}

fn latin1() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..=255).prop_map(|bytes| bytes.into_iter().map(char::from).collect())
}

fn blocking_info() -> impl Strategy<Value = BlockingInfo> {
    let notice = option::of(option::of(any::<i64>()).prop_map(|ttl| ClientNotice { ttl }));
    (prop::sample::select(vec![BlockingReason::Spam, BlockingReason::Content]), notice)
        .prop_map(|(reason, notice)| BlockingInfo { reason, notice })
}

fn broker_error() -> impl Strategy<Value = BrokerError> {
    let transport = prop::sample::select(vec![
        TransportErrorType::Block,
        TransportErrorType::Version,
        TransportErrorType::LargeMsg,
        TransportErrorType::Session,
        TransportErrorType::NoAuth,
        TransportErrorType::Handshake(HandshakeError::Parse),
        TransportErrorType::Handshake(HandshakeError::Identity),
        TransportErrorType::Handshake(HandshakeError::BadAuth),
        TransportErrorType::Handshake(HandshakeError::BadService),
    ]);
    prop_oneof![
        latin1().prop_map(BrokerError::Response),
        latin1().prop_map(BrokerError::Unexpected),
        Just(BrokerError::Network(NetworkError::Failed)),
        Just(BrokerError::Host),
        Just(BrokerError::NoService),
        transport.prop_map(BrokerError::Transport),
        Just(BrokerError::Timeout),
    ]
}

pub fn network_error() -> impl Strategy<Value = NetworkError> {
    prop_oneof![
        latin1().prop_map(NetworkError::Connect),
        latin1().prop_map(NetworkError::Tls),
        Just(NetworkError::UnknownCa),
        Just(NetworkError::Failed),
        Just(NetworkError::Timeout),
        latin1().prop_map(NetworkError::Subscribe),
    ]
}

pub fn error_type() -> impl Strategy<Value = ErrorType> {
    let plain = prop::sample::select(vec![
        ErrorType::Block,
        ErrorType::Session,
        ErrorType::Cmd(CommandError::Unknown),
        ErrorType::Cmd(CommandError::Syntax),
        ErrorType::Cmd(CommandError::Prohibited),
        ErrorType::Cmd(CommandError::NoAuth),
        ErrorType::Cmd(CommandError::HasAuth),
        ErrorType::Cmd(CommandError::NoEntity),
        ErrorType::Auth,
        ErrorType::Service,
        ErrorType::Crypto,
        ErrorType::Quota,
        ErrorType::NoMsg,
        ErrorType::LargeMsg,
        ErrorType::Expired,
        ErrorType::Internal,
        ErrorType::Duplicate,
        ErrorType::Name(NameError::NoResolver),
        ErrorType::Name(NameError::NotFound),
        ErrorType::Proxy(ProxyError::BasicAuth),
        ErrorType::Proxy(ProxyError::NoSession),
    ]);
    let leaf = prop_oneof![
        plain,
        any::<String>().prop_map(ErrorType::Store),
        any::<String>().prop_map(|text| ErrorType::Name(NameError::Resolver(text))),
        blocking_info().prop_map(ErrorType::Blocked),
        broker_error().prop_map(|error| ErrorType::Proxy(ProxyError::Broker(error))),
    ];
    leaf.prop_recursive(4, 8, 1, |inner| {
        inner.prop_map(|error| ErrorType::Proxy(ProxyError::Protocol(Box::new(error))))
    })
}

fn queue_ids() -> impl Strategy<Value = QueueIds> {
    let parts = (
        entity_id(),
        entity_id(),
        dh_key(),
        option::of(prop::sample::select(vec![QueueMode::Messaging, QueueMode::Contact])),
        option::of(entity_id()),
        option::of(entity_id()),
        option::of((entity_id(), dh_key())),
    );
    parts.prop_map(|(recipient_id, sender_id, dh_key, mode, link_id, service_id, notifier)| QueueIds {
        recipient_id,
        sender_id,
        dh_key,
        mode,
        link_id,
        service_id,
        notifier,
    })
}

fn queue_info() -> impl Strategy<Value = QueueInfo> {
    let kinds = vec![
        SubscriptionKind::NoSub,
        SubscriptionKind::SubPending,
        SubscriptionKind::SubThread,
        SubscriptionKind::ProhibitSub,
    ];
    let subscription = (prop::sample::select(kinds), option::of(any::<String>()))
        .prop_map(|(kind, delivered)| SubscriptionInfo { kind, delivered });
    let time = (0i64..100_000_000_000, 0u32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| InfoTime { seconds, nanoseconds });
    let message =
        (any::<String>(), time, any::<bool>()).prop_map(|(id, timestamp, quota)| MessageInfo { id, timestamp, quota });
    (any::<bool>(), any::<bool>(), option::of(subscription), any::<u64>(), option::of(message)).prop_map(
        |(secured, notifications, subscription, size, message)| QueueInfo {
            secured,
            notifications,
            subscription,
            size,
            message,
        },
    )
}

fn proxy_key() -> impl Strategy<Value = Response> {
    (bytes(255), any::<u16>(), any::<u16>(), prop::collection::vec(bytes(500), 1..4), bytes(200)).prop_map(
        |(session, a, b, chain, signed_key)| {
            let versions = VersionRange::new(Version(a.min(b)), Version(a.max(b))).expect("a range");
            Response::Pkey(session, versions, CertificateChainKey { chain, signed_key })
        },
    )
}

pub fn response() -> impl Strategy<Value = Response> {
    let plain = prop::sample::select(vec![
        Response::Alls,
        Response::End,
        Response::Deld,
        Response::Ok,
        Response::Pong,
        Response::Rname(Bytes::from_static(br#"{"name":"alice.simplex"}"#)),
    ]);
    let queue = prop_oneof![
        queue_ids().prop_map(|ids| Response::Ids(Box::new(ids))),
        (entity_id(), link_data()).prop_map(|(sender, data)| Response::Lnk(sender, data)),
        (bytes(255), bytes(2000)).prop_map(|(id, body)| Response::Msg { id, body }),
        (entity_id(), dh_key()).prop_map(|(notifier, key)| Response::Nid(notifier, key)),
        (any::<[u8; 24]>(), bytes(255)).prop_map(|(nonce, meta)| Response::Nmsg { nonce, meta }),
        queue_info().prop_map(Response::Info),
        error_type().prop_map(Response::Err),
    ];
    let other = prop_oneof![
        option::of(entity_id()).prop_map(Response::Sok),
        service_queues().prop_map(Response::Soks),
        service_queues().prop_map(Response::Ends),
        proxy_key(),
        bytes(500).prop_map(Response::Rres),
        bytes(500).prop_map(Response::Pres),
    ];
    prop_oneof![1 => plain, 3 => queue, 2 => other]
}
