//! Values there and back, and the bytes of the reference's own keys, certificates and statuses.

use proptest::prelude::*;
use serde_json::Value;
use tokio_postgres::types::{FromSql, ToSql};

use super::*;
use crate::protocol::crypto::test_vectors::{array, bytes, cases, unhex, vectors};
use crate::protocol::error::{BlockingReason, ClientNotice};
use crate::protocol::keys::PublicDhKey;

fn written(value: &(impl ToSql + Sync), ty: &Type) -> Vec<u8> {
    let mut out = BytesMut::new();
    assert!(matches!(value.to_sql_checked(ty, &mut out).unwrap(), IsNull::No));
    out.to_vec()
}

fn read<'a, T: FromSql<'a>>(ty: &Type, raw: &'a [u8]) -> Option<T> {
    assert!(T::accepts(ty));
    T::from_sql(ty, raw).ok()
}

fn assert_round_trip<T>(value: &T, ty: &Type)
where
    T: ToSql + Sync + for<'a> FromSql<'a> + PartialEq + std::fmt::Debug,
{
    assert_eq!(read::<T>(ty, &written(value, ty)).as_ref(), Some(value));
}

fn keys() -> impl Strategy<Value = Vec<PublicAuthKey>> {
    let key = (0..3_u8, any::<[u8; 32]>()).prop_map(|(kind, raw)| match kind {
        0 => PublicAuthKey::Ed25519(raw),
        1 => {
            let mut long = [kind; 57];
            long[..32].copy_from_slice(&raw);
            PublicAuthKey::Ed448(Box::new(long))
        }
        _ => PublicAuthKey::X25519(PublicDhKey(raw)),
    });
    prop::collection::vec(key, 1..6)
}

proptest! {
    #[test]
    fn keys_are_read_back(keys in keys()) {
        assert_round_trip(&keys[0], &Type::BYTEA);
        assert_round_trip(&KeyList(keys), &Type::BYTEA);
    }

    #[test]
    fn certificates_are_read_back(chain in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 1..5)) {
        assert_round_trip(&CertificateChain(chain.into_iter().map(Bytes::from).collect()), &Type::BYTEA);
    }

    #[test]
    fn days_are_the_seconds_of_their_start(day in -20_000..2_000_000_i32, second in 0..SECONDS_PER_DAY) {
        assert_round_trip(&Day(day), &Type::INT8);
        assert_eq!(day_of(day_seconds(Day(day)) + second), Some(Day(day)));
    }
}

#[test]
fn ids_and_secrets_are_their_own_bytes() {
    assert_eq!(written(&QueueId([7; 24]), &Type::BYTEA), [7; 24]);
    assert_eq!(written(&DhSecret([8; 32]), &Type::BYTEA), [8; 32]);
    assert_round_trip(&MessageId([9; 24]), &Type::BYTEA);
    assert_round_trip(&ServiceId([9; 24]), &Type::BYTEA);
    assert!(read::<QueueId>(&Type::BYTEA, &[7; 23]).is_none() && read::<DhSecret>(&Type::BYTEA, &[7; 33]).is_none());
}

#[test]
fn short_texts_stand_for_modes_and_roles() {
    for (mode, text) in [(QueueMode::Messaging, "M"), (QueueMode::Contact, "C")] {
        assert_eq!(written(&mode, &Type::TEXT), text.as_bytes());
        assert_round_trip(&mode, &Type::TEXT);
    }
    for (role, text) in [(ServiceRole::Messaging, "M"), (ServiceRole::Notifier, "N"), (ServiceRole::Proxy, "P")] {
        assert_eq!(written(&role, &Type::TEXT), text.as_bytes());
        assert_round_trip(&role, &Type::TEXT);
    }
    assert!(read::<QueueMode>(&Type::TEXT, b"MM").is_none() && read::<ServiceRole>(&Type::TEXT, b"").is_none());
}

#[test]
fn statuses_are_read_back() {
    let blocked = |reason, notice| QueueStatus::Blocked(BlockingInfo { reason, notice });
    for (status, text) in [
        (QueueStatus::Active, "active"),
        (QueueStatus::Off, "off"),
        (blocked(BlockingReason::Spam, None), "blocked,reason=spam"),
        (blocked(BlockingReason::Content, Some(ClientNotice { ttl: None })), "blocked,reason=content,notice={}"),
    ] {
        assert_eq!(written(&status, &Type::TEXT), text.as_bytes());
        assert_round_trip(&status, &Type::TEXT);
    }
    for malformed in ["", "active ", "blocked", "blocked,", "blocked,reason=other", "blocked,reason=spam,notice={"] {
        assert!(read::<QueueStatus>(&Type::TEXT, malformed.as_bytes()).is_none(), "{malformed}");
    }
}

#[test]
fn lists_that_are_empty_cut_or_too_long_are_errors() {
    assert!(read::<KeyList>(&Type::BYTEA, &[0]).is_none() && read::<KeyList>(&Type::BYTEA, &[]).is_none());
    let keys = KeyList(vec![PublicAuthKey::Ed25519([1; 32]); 255]);
    let raw = written(&keys, &Type::BYTEA);
    assert_round_trip(&keys, &Type::BYTEA);
    assert!(read::<KeyList>(&Type::BYTEA, &raw[..raw.len() - 1]).is_none());
    assert!(read::<KeyList>(&Type::BYTEA, &[&raw[..], &[0]].concat()).is_none());
    let more = KeyList(vec![PublicAuthKey::Ed25519([1; 32]); 256]);
    assert!(more.to_sql(&Type::BYTEA, &mut BytesMut::new()).is_err());
}

/// Checks the queues and services of one of the reference's store logs; says how many queues.
fn check_file(file: &Value) -> usize {
    cases(&file["services"], check_service);
    cases(&file["queues"], check_queue)
}

fn check_queue(queue: &Value) {
    let ders: Vec<Vec<u8>> = queue["recipient_keys"].as_array().unwrap().iter().map(bytes).collect();
    let mut raw = vec![ders.len() as u8];
    ders.iter().for_each(|der| raw.extend([&[der.len() as u8][..], der].concat()));
    let keys: KeyList = read(&Type::BYTEA, &raw).unwrap();
    assert_eq!(keys.0.iter().map(PublicAuthKey::to_der).collect::<Vec<_>>(), ders);
    assert_eq!(written(&keys, &Type::BYTEA), raw);
    let secret = DhSecret(array(&queue["rcv_dh_secret"]));
    assert_eq!(written(&secret, &Type::BYTEA), bytes(&queue["rcv_dh_secret"]));
    let blocked = queue["status"]["blocked"].as_str().map(|info| format!("blocked,{info}"));
    let text = blocked.as_deref().or(queue["status"].as_str()).unwrap();
    let status: QueueStatus = read(&Type::TEXT, text.as_bytes()).unwrap();
    assert_eq!(written(&status, &Type::TEXT), text.as_bytes());
    if let Some(seconds) = queue["updated_at"].as_i64() {
        let day: Day = read(&Type::INT8, &seconds.to_be_bytes()).unwrap();
        assert_eq!(written(&day, &Type::INT8), seconds.to_be_bytes());
    }
}

fn check_service(service: &Value) {
    let chain: Vec<Bytes> = service["cert_chain"].as_array().unwrap().iter().map(|der| bytes(der).into()).collect();
    let mut raw = vec![chain.len() as u8];
    for certificate in &chain {
        raw.extend([&(certificate.len() as u16).to_be_bytes()[..], certificate].concat());
    }
    assert_eq!(written(&CertificateChain(chain), &Type::BYTEA), raw);
}

#[test]
fn what_the_reference_has_stored_is_read_and_written_alike() {
    let expected = vectors("store/expected.json");
    assert_eq!(check_file(&expected["smp-server-store.log"]), 16);
    assert_eq!(check_file(&expected["smp-server-store-old.log"]), 8);
}

#[test]
fn keys_in_lists_stand_behind_their_lengths() {
    let keys = KeyList(vec![PublicAuthKey::Ed25519([0xab; 32])]);
    let expected = unhex(&format!("012c302a300506032b6570032100{}", "ab".repeat(32)));
    assert_eq!(written(&keys, &Type::BYTEA), expected);
}
