//! Handshakes of the reference, both sides, and what must not be agreed.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::protocol::block::pad;
use crate::protocol::certificate::{Credentials, Fingerprint, certificate_key};
use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};
use crate::protocol::crypto::{DhKeyPair, SecretDhKey, SigningKey, sha256};
use crate::protocol::ids::SessionId;
use crate::protocol::keys::PublicAuthKey;

/// What all handshakes of the vectors are made with.
struct Fixture {
    vectors: Value,
    session_id: SessionId,
    server: Credentials,
}

impl Fixture {
    fn new() -> Self {
        let vectors = vectors("handshake.json");
        let session_id = SessionId(array(&vectors["session_id"]));
        let server = credentials(&vectors, "server_cert_chain", "server_sign_key_private_der");
        Fixture { vectors, session_id, server }
    }

    fn key(&self, name: &str) -> DhKeyPair {
        SecretDhKey::from_bytes(array(&self.vectors["keys"][name]["private_raw"])).into()
    }

    fn leaf_key(&self) -> PublicAuthKey {
        certificate_key(&self.server.chain()[0]).expect("a key")
    }

    fn start(&self, versions: VersionRange) -> (ServerHandshake, Bytes) {
        let key = self.key("server_session");
        let (handshake, hello) =
            ServerHandshake::start_with_key(&self.server, self.session_id, versions, key).expect("a hello");
        (handshake, hello.into())
    }

    fn client(&self) -> ClientHandshake<'static> {
        ClientHandshake {
            session_id: self.session_id,
            versions: VersionRange::SUPPORTED,
            server: self.server.fingerprint(),
            key: Some(self.key("client_session")),
            proxy: false,
            service: None,
        }
    }

    /// The hello of a client in this version, to be changed by tests.
    fn client_hello(&self, version: Version) -> ClientHello {
        let key_hash = Bytes::copy_from_slice(&self.server.fingerprint().0);
        let key = Some(self.key("client_session").public);
        ClientHello { version, key_hash, key, proxy: false, service: None }
    }

    fn accept(&self, hello: &ClientHello) -> Result<ServerSession, Rejection> {
        self.accept_bytes(hello.encoded())
    }

    fn accept_bytes(&self, hello: Vec<u8>) -> Result<ServerSession, Rejection> {
        self.start(VersionRange::SUPPORTED).0.accept(&hello.into(), &[] as &[Bytes])
    }
}

fn credentials(vectors: &Value, chain: &str, key: &str) -> Credentials {
    let certificates = vectors[chain].as_array().expect("certificates").iter();
    let chain = certificates.map(|certificate| Bytes::from(bytes(&certificate["der"]))).collect();
    let key = SigningKey::from_der(&bytes(&vectors[key])).expect("a key");
    Credentials::new(chain, key).expect("credentials")
}

/// The service of a handshake: a chain of one is only in the client's hello.
fn service_credentials(vectors: &Value, case: &Value) -> Credentials {
    if !case["name"].as_str().expect("a name").contains("self-signed") {
        return credentials(vectors, "service_cert_chain", "service_sign_key_private_der");
    }
    let hello: ClientHello = read(&bytes(&case["messages"][1]["payload"]).into()).expect("a hello");
    let key = SigningKey::from_der(&bytes(&vectors["service_self_signed_sign_key_private_der"])).expect("a key");
    Credentials::new(hello.service.expect("a service").key.chain, key).expect("credentials")
}

fn server_versions(case: &Value) -> VersionRange {
    let version =
        |at: usize| Version(u16::try_from(case["server_versions"][at].as_u64().expect("a version")).expect("u16"));
    let supported = VersionRange::new(version(0), version(1)).expect("a range");
    offered_versions(supported, case["alpn"].is_string()).expect("a range")
}

fn client_versions(case: &Value) -> VersionRange {
    let name = case["name"].as_str().expect("a name");
    let (min, max) = match name.strip_prefix("client range up to ").and_then(|name| name.split(',').next()) {
        Some(max) => (6, max.parse().expect("a version")),
        None if name == "client and server have no common version" => (8, 20),
        None => (6, 20),
    };
    VersionRange::new(Version(min), Version(max)).expect("a range")
}

/// Makes one handshake of the vectors, comparing every message, and says what became of it.
fn run(fixture: &Fixture, case: &Value) {
    let name = case["name"].as_str().expect("a name");
    let credentials = case["service"].as_str().map(|_| service_credentials(&fixture.vectors, case));
    let service_key = SigningKey::ed25519(&array(&fixture.vectors["keys"]["service_session"]["private_raw"]));
    let service = credentials.as_ref().map(|credentials| ServiceIdentity {
        role: ServiceRole::decode_all(&bytes_of(case["service"].as_str().expect("a role"))).expect("a role"),
        credentials,
        session_key: &service_key,
    });
    let (server, hello) = fixture.start(server_versions(case));
    assert_eq!(hello, bytes(&case["messages"][0]["payload"]), "{name}: server hello");
    check_block(&case["messages"][0], &hello);
    let client = ClientHandshake {
        versions: client_versions(case),
        proxy: case["proxy_server"].as_bool().expect("a flag"),
        key: fixture.client().key.filter(|_| !name.contains("without session key")),
        service,
        ..fixture.client()
    };
    let (hello, session) = match client.answer(&hello, &fixture.leaf_key()) {
        Ok(answer) => answer,
        Err(error) => {
            assert_eq!((case["client_result"].as_str(), error), (Some("TEVersion"), TransportErrorType::Version));
            return;
        }
    };
    assert_eq!(hello, bytes(&case["messages"][1]["payload"]), "{name}: client hello");
    check_block(&case["messages"][1], &hello);
    let peer_chain = credentials.as_ref().map_or(&[][..], Credentials::chain);
    let accepted = server.accept(&hello.into(), peer_chain).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    check_service(fixture, case, &session, accepted.service.as_ref());
    if case["client_result"].is_u64() {
        check_session(case, session, accepted);
    }
}

fn bytes_of(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn check_block(message: &Value, payload: &[u8]) {
    if message["block_sha256"].is_string() {
        let mut block = Vec::new();
        pad(payload, 16384, &mut block).expect("fits");
        assert_eq!(sha256(&block).as_slice(), bytes(&message["block_sha256"]));
    }
}

fn check_service(fixture: &Fixture, case: &Value, session: &ClientSession, service: Option<&PeerService>) {
    let reply = &case["messages"][2]["payload"];
    assert_eq!(session.expects_service_reply, reply.is_string());
    assert_eq!(service.is_some(), reply.is_string());
    let Some(service) = service else { return };
    assert_eq!(service.key, array(&fixture.vectors["keys"]["service_session"]["public_raw"]));
    if service.chain.len() == 2 {
        assert_eq!(service.fingerprint.0, array(&fixture.vectors["service_cert_hash"]));
    }
    let id = EntityId(bytes(&fixture.vectors["service_id"]).into());
    let (made, result) = match case["server_result"].as_str() {
        None => (ServiceReply::Accepted(id.clone()), Ok(id)),
        Some(_) => {
            let error = failed(HandshakeError::BadService);
            (ServiceReply::Refused(error.clone()), Err(error))
        }
    };
    assert_eq!(made.encoded(), bytes(reply));
    assert_eq!(session.service_id(&bytes(reply).into()), result);
}

fn check_session(case: &Value, client: ClientSession, server: ServerSession) {
    let version = Version(u16::try_from(case["client_result"].as_u64().expect("a version")).expect("u16"));
    assert_eq!((client.version, server.version), (version, version));
    assert_eq!(server.transmission_params(), client.transmission_params());
    assert_eq!(server.proxy, case["proxy_server"].as_bool().expect("a flag") && version >= Version(14));
    // Below 7 the client does not send its key.
    assert_eq!(server.secret.is_some(), client.secret.is_some() && version >= Version(7));
    let encrypted = case["block_encryption"].as_bool().expect("a flag");
    assert_eq!((client.block_keys.is_some(), server.block_keys.is_some()), (encrypted, encrypted));
    let blocks = &case["first_blocks_after_handshake"];
    for (at, keys) in [server.block_keys, client.block_keys].into_iter().enumerate() {
        let payload = blocks["payloads"][at].as_str().expect("text").as_bytes();
        let mut block = Vec::new();
        match keys {
            Some(mut keys) => keys.seal_block(payload, &mut block).expect("fits"),
            None => pad(payload, 16384, &mut block).expect("fits"),
        }
        assert_eq!(sha256(&block).as_slice(), bytes(&blocks["blocks"][at]["block_sha256"]));
    }
}

#[test]
fn handshakes_are_those_of_the_reference_on_both_sides() {
    let fixture = Fixture::new();
    assert_eq!(cases(&fixture.vectors["handshakes"], |case| run(&fixture, case)), 27);
}

#[test]
fn replies_to_services_are_those_of_the_reference() {
    let errors = [
        TransportErrorType::Block,
        TransportErrorType::Version,
        TransportErrorType::LargeMsg,
        TransportErrorType::Session,
        TransportErrorType::NoAuth,
        failed(HandshakeError::Parse),
        failed(HandshakeError::Identity),
        failed(HandshakeError::BadAuth),
        failed(HandshakeError::BadService),
    ];
    let mut errors = errors.into_iter();
    let checked = cases(&vectors("handshake.json")["server_response"], |case| {
        let reply = ServiceReply::Refused(errors.next().expect("an error"));
        assert_eq!(reply.encoded(), bytes(&case["payload"]));
        assert_eq!(ServiceReply::decode_all(&bytes(&case["payload"]).into()), Ok(reply));
    });
    assert_eq!(checked, 9);
}

#[test]
fn bytes_after_the_hellos_are_ignored() {
    let fixture = Fixture::new();
    for version in 6..=20 {
        let mut hello = fixture.client_hello(Version(version)).encoded();
        hello.extend_from_slice(b"an extension of the future");
        let session = fixture.accept_bytes(hello).unwrap_or_else(|error| panic!("version {version}: {error:?}"));
        assert_eq!(session.secret.is_some(), version >= 7);
    }
    let (_, hello) = fixture.start(VersionRange::SUPPORTED);
    let hello = [&hello, b"more".as_slice()].concat().into();
    assert!(fixture.client().answer(&hello, &fixture.leaf_key()).is_ok());
}

#[test]
fn versions_that_were_not_offered_are_refused_without_a_word() {
    let fixture = Fixture::new();
    for version in [0, 5, 21, u16::MAX] {
        let error = fixture.accept(&fixture.client_hello(Version(version))).err();
        assert_eq!(error, Some(Rejection::Silent(TransportErrorType::Version)));
    }
    assert!(fixture.accept(&fixture.client_hello(Version(13))).is_ok());
}

#[test]
fn a_client_of_another_server_is_refused_before_its_version_is_looked_at() {
    let fixture = Fixture::new();
    for key_hash in [&[0; 32][..], b"", &fixture.server.fingerprint().0[..31]] {
        let hello = ClientHello { key_hash: Bytes::copy_from_slice(key_hash), ..fixture.client_hello(Version(5)) };
        assert_eq!(fixture.accept(&hello).err(), Some(Rejection::Silent(failed(HandshakeError::Identity))));
    }
}

#[test]
fn without_alpn_only_version_6_is_offered() {
    let range = |min, max| VersionRange::new(Version(min), Version(max)).expect("a range");
    assert_eq!(offered_versions(VersionRange::SUPPORTED, true), Some(VersionRange::SUPPORTED));
    assert_eq!(offered_versions(VersionRange::SUPPORTED, false), Some(range(6, 6)));
    assert_eq!(offered_versions(range(8, 20), false), None);
}

#[test]
fn a_malformed_key_counts_as_absent_where_nothing_follows_it() {
    let fixture = Fixture::new();
    let without_key = |version| ClientHello { key: None, ..fixture.client_hello(Version(version)) }.encoded();
    let broken = |version| [without_key(version), b"\x03abc".to_vec()].concat();
    assert!(fixture.accept_bytes(broken(13)).is_ok_and(|session| session.secret.is_none()));
    assert_eq!(fixture.accept_bytes(without_key(16)).ok().map(|session| session.block_keys.is_none()), Some(true));
    let mut hello = fixture.client_hello(Version(16)).encoded();
    hello[40] ^= 1;
    assert_eq!(fixture.accept_bytes(hello).err(), Some(Rejection::Silent(failed(HandshakeError::Parse))));
}

#[test]
fn keys_that_agree_no_secret_are_refused() {
    let fixture = Fixture::new();
    let hello = ClientHello { key: Some(PublicDhKey([0; 32])), ..fixture.client_hello(Version(20)) };
    assert_eq!(fixture.accept(&hello).err(), Some(Rejection::Silent(failed(HandshakeError::BadAuth))));
}

#[test]
fn a_service_with_other_certificates_than_in_tls_or_a_wrong_signature_is_told() {
    let fixture = Fixture::new();
    let service = credentials(&fixture.vectors, "service_cert_chain", "service_sign_key_private_der");
    let hello = |session_key: &PublicAuthKey, signer: &Credentials| {
        let signed_key = signer.sign_session_key(session_key).expect("signed").signed_key;
        let key = CertificateChainKey { chain: service.chain().to_vec(), signed_key };
        let hello = ServiceHello { role: ServiceRole::Messaging, key };
        ClientHello { service: Some(hello), ..fixture.client_hello(Version(20)) }.encoded()
    };
    let accept =
        |hello: Vec<u8>, chain: &[Bytes]| fixture.start(VersionRange::SUPPORTED).0.accept(&hello.into(), chain).err();
    let session_key = SigningKey::generate_ed25519().public_key().expect("a key");
    let refused = Some(Rejection::Service(failed(HandshakeError::BadAuth)));
    assert_eq!(accept(hello(&session_key, &service), service.chain()), None);
    assert_eq!(accept(hello(&session_key, &service), &[]), refused);
    assert_eq!(accept(hello(&session_key, &service), fixture.server.chain()), refused);
    assert_eq!(accept(hello(&session_key, &fixture.server), service.chain()), refused);
    let dh_key = PublicAuthKey::X25519(fixture.key("client_session").public);
    assert_eq!(accept(hello(&dh_key, &service), service.chain()), refused);
}

#[test]
fn a_client_talks_only_to_the_server_it_means() {
    let fixture = Fixture::new();
    let (_, hello) = fixture.start(VersionRange::SUPPORTED);
    let answer = |client: ClientHandshake<'_>, leaf: &PublicAuthKey| client.answer(&hello, leaf).err();
    let bad_auth = Some(failed(HandshakeError::BadAuth));
    assert_eq!(answer(fixture.client(), &fixture.leaf_key()), None);
    let other = ClientHandshake { server: Fingerprint([0; 32]), ..fixture.client() };
    assert_eq!(answer(other, &fixture.leaf_key()), bad_auth);
    let other_key = SigningKey::generate_ed25519().public_key().expect("a key");
    assert_eq!(answer(fixture.client(), &other_key), bad_auth);
    let other = ClientHandshake { session_id: SessionId([0; 32]), ..fixture.client() };
    assert_eq!(answer(other, &fixture.leaf_key()), Some(TransportErrorType::Session));
}

#[test]
fn every_new_session_has_a_key_of_its_own() {
    let fixture = Fixture::new();
    let start = || ServerHandshake::start(&fixture.server, fixture.session_id, VersionRange::SUPPORTED);
    assert_ne!(start().expect("a hello").1, start().expect("a hello").1);
}

fn hellos() -> impl Strategy<Value = ClientHello> {
    let chain = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from), 1..5);
    let signed = (chain, prop::collection::vec(any::<u8>(), 0..200))
        .prop_map(|(chain, signed_key)| CertificateChainKey { chain, signed_key: signed_key.into() });
    let role = prop_oneof![Just(ServiceRole::Messaging), Just(ServiceRole::Notifier), Just(ServiceRole::Proxy)];
    let service = prop::option::of((role, signed).prop_map(|(role, key)| ServiceHello { role, key }));
    let key = prop::option::of(any::<[u8; 32]>().prop_map(PublicDhKey));
    (6u16..=20, prop::collection::vec(any::<u8>(), 0..256), key, any::<bool>(), service).prop_map(
        |(version, key_hash, key, proxy, service)| ClientHello {
            version: Version(version),
            key_hash: key_hash.into(),
            key: key.filter(|_| version >= 7),
            proxy: proxy && version >= 14,
            service: service.filter(|_| version >= 16),
        },
    )
}

proptest! {
    #[test]
    fn client_hellos_come_back(hello in hellos()) {
        prop_assert_eq!(ClientHello::decode_all(&hello.encoded().into())?, hello);
    }

    #[test]
    fn no_bytes_panic(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let payload = Bytes::from(payload);
        let _ = (read::<ClientHello>(&payload), read::<ServerHello>(&payload), read::<ServiceReply>(&payload));
    }
}
