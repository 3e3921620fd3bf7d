//! Certificate chains, judged as the reference judges them.
//!
//! A chain proves nothing by itself: it is checked against its own last certificate, and whoever relies on it compares
//! the fingerprint of the identity certificate. These are not the rules of the web: a certificate authority needs no
//! basic constraints when it is the last of its chain, no name is checked, and a client's chain may be a single
//! self-signed certificate.

use std::cmp::Ordering;

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKeyRef, Public};
use openssl::x509::{X509, X509KeyUsage, X509Ref};
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};

/// The most certificates in a chain: leaf, identity, network, authority.
const MAX_CHAIN: usize = 4;

/// The version field of an X.509 v3 certificate.
const X509_V3: i32 = 2;

/// Checks a chain of 1 to [`MAX_CHAIN`] certificates, leaf first, against its last certificate.
pub(super) fn validate(
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), CertificateError> {
    if others.len() >= MAX_CHAIN {
        return Err(CertificateError::ApplicationVerificationFailure);
    }
    let leaf = parse(leaf)?;
    let others = others.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let now = Asn1Time::from_unix(now.as_secs().try_into().unwrap_or(i64::MAX)).map_err(bad_encoding)?;
    if leaf.version() != X509_V3 {
        return Err(CertificateError::BadEncoding);
    }
    let authority = others.last().unwrap_or(&leaf).clone();
    climb(leaf, others, &authority, &now)
}

/// Goes from issuer to issuer until the authority has signed.
fn climb(leaf: X509, mut others: Vec<X509>, authority: &X509Ref, now: &Asn1TimeRef) -> Result<(), CertificateError> {
    let mut current = leaf;
    for depth in 0.. {
        check_dates(&current, now)?;
        if issued(authority, &current) {
            return check_signature(&current, authority);
        }
        let issuer = others.iter().position(|other| issued(other, &current)).ok_or(CertificateError::UnknownIssuer)?;
        let issuer = others.remove(issuer);
        check_may_issue(&issuer, depth)?;
        check_signature(&current, &issuer)?;
        current = issuer;
    }
    Err(CertificateError::UnknownIssuer)
}

fn parse(certificate: &CertificateDer<'_>) -> Result<X509, CertificateError> {
    X509::from_der(certificate).map_err(bad_encoding)
}

fn bad_encoding(_: ErrorStack) -> CertificateError {
    CertificateError::BadEncoding
}

/// Whether `issuer` is named as the issuer of `subject`.
fn issued(issuer: &X509Ref, subject: &X509Ref) -> bool {
    matches!(issuer.subject_name().try_cmp(subject.issuer_name()), Ok(Ordering::Equal))
}

fn check_dates(certificate: &X509Ref, now: &Asn1TimeRef) -> Result<(), CertificateError> {
    if certificate.not_before().compare(now).map_err(bad_encoding)? == Ordering::Greater {
        return Err(CertificateError::NotValidYet);
    }
    if certificate.not_after().compare(now).map_err(bad_encoding)? == Ordering::Less {
        return Err(CertificateError::Expired);
    }
    Ok(())
}

fn check_signature(certificate: &X509Ref, issuer: &X509Ref) -> Result<(), CertificateError> {
    let key = issuer.public_key().map_err(bad_encoding)?;
    if !is_quick(&key) {
        return Err(CertificateError::BadSignature);
    }
    if certificate.verify(&key).unwrap_or(false) { Ok(()) } else { Err(CertificateError::BadSignature) }
}

/// Whether a signature by this key is verified in well under a millisecond: a stranger's chain must not cost more.
fn is_quick(key: &PKeyRef<Public>) -> bool {
    match key.id() {
        Id::ED25519 | Id::ED448 => true,
        Id::EC => key.bits() <= 384,
        Id::RSA => key.bits() <= 4096,
        _ => false,
    }
}

/// Whether an intermediate certificate may issue, with `depth` intermediates below it.
fn check_may_issue(issuer: &X509Ref, depth: u32) -> Result<(), CertificateError> {
    let der = issuer.to_der().map_err(bad_encoding)?;
    let may_sign = issuer.key_usage().is_none_or(|usage| usage.contains(X509KeyUsage::KEY_CERT_SIGN));
    let deep_enough = issuer.pathlen().is_none_or(|limit| depth <= limit);
    if is_authority(&der) == Some(true) && may_sign && deep_enough {
        return Ok(());
    }
    Err(CertificateError::InvalidPurpose)
}

/// Whether the certificate's basic constraints say that it is an authority; `None` when it has none.
///
/// OpenSSL knows, but its Rust crate has no way to ask.
fn is_authority(certificate: &[u8]) -> Option<bool> {
    let (_, certificate, _) = tlv(certificate)?;
    let (_, mut fields, _) = tlv(certificate)?;
    let mut extensions = loop {
        let (tag, content, rest) = tlv(fields)?;
        if tag == EXTENSIONS {
            break tlv(content)?.1;
        }
        fields = rest;
    };
    loop {
        let (_, extension, rest) = tlv(extensions)?;
        if let Some(value) = extension.strip_prefix(BASIC_CONSTRAINTS) {
            let value = value.strip_prefix(TRUE).unwrap_or(value);
            let (_, sequence, _) = tlv(value)?;
            let (_, constraints, _) = tlv(sequence)?;
            return Some(constraints.starts_with(TRUE));
        }
        extensions = rest;
    }
}

/// The tag of the extensions in a certificate: context-specific 3.
const EXTENSIONS: u8 = 0xa3;
/// The object identifier 2.5.29.19 in DER.
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];
/// The boolean `TRUE` in DER.
const TRUE: &[u8] = &[0x01, 0x01, 0xff];

/// Splits DER into the first element's tag, its content, and what follows. Lengths up to 65535.
fn tlv(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, content) = match *der.get(1..)? {
        [0x82, high, low, ref content @ ..] => (usize::from(u16::from_be_bytes([high, low])), content),
        [0x81, length, ref content @ ..] => (usize::from(length), content),
        [length, ref content @ ..] if length < 0x80 => (usize::from(length), content),
        _ => return None,
    };
    let (content, rest) = content.split_at_checked(length)?;
    Some((*der.first()?, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::testing::{Certified, DAY, KeyKind, Template};

    fn check(chain: &[&Certified]) -> Result<(), CertificateError> {
        let chain: Vec<_> = chain.iter().map(|certified| CertificateDer::from(certified.der())).collect();
        let (leaf, others) = chain.split_first().unwrap();
        validate(leaf, others, UnixTime::now())
    }

    fn authority<'a>(name: &'a str, issuer: Option<&'a Certified>) -> Certified {
        Template { authority: Some(true), ..Template::new(name, issuer) }.make()
    }

    #[test]
    fn accepts_one_to_four_certificates_and_no_more() {
        let root = authority("root", None);
        let network = authority("network", Some(&root));
        let identity = authority("identity", Some(&network));
        let another = authority("another", Some(&identity));
        let leaf = Template::new("leaf", Some(&identity)).make();
        let deep_leaf = Template::new("leaf", Some(&another)).make();
        assert_eq!(check(&[&root]), Ok(()));
        assert_eq!(check(&[&Template::new("leaf", Some(&root)).make(), &root]), Ok(()));
        assert_eq!(check(&[&Template::new("leaf", Some(&network)).make(), &network, &root]), Ok(()));
        assert_eq!(check(&[&leaf, &identity, &network, &root]), Ok(()));
        let five = check(&[&deep_leaf, &another, &identity, &network, &root]);
        assert_eq!(five, Err(CertificateError::ApplicationVerificationFailure));
    }

    #[test]
    fn the_last_certificate_needs_no_constraints_but_those_between_do() {
        let root = Template::new("root", None).make();
        assert_eq!(check(&[&Template::new("leaf", Some(&root)).make(), &root]), Ok(()));
        for authority in [None, Some(false)] {
            let between = Template { authority, ..Template::new("between", Some(&root)) }.make();
            let leaf = Template::new("leaf", Some(&between)).make();
            assert_eq!(check(&[&leaf, &between, &root]), Err(CertificateError::InvalidPurpose));
        }
    }

    #[test]
    fn refuses_dates_before_and_after() {
        let root = authority("root", None);
        let expired = Template { valid: (-2 * DAY, -DAY), ..Template::new("leaf", Some(&root)) }.make();
        let future = Template { valid: (DAY, 2 * DAY), ..Template::new("leaf", Some(&root)) }.make();
        assert_eq!(check(&[&expired, &root]), Err(CertificateError::Expired));
        assert_eq!(check(&[&future, &root]), Err(CertificateError::NotValidYet));
    }

    #[test]
    fn refuses_a_chain_whose_last_certificate_did_not_sign() {
        let root = authority("root", None);
        let leaf = Template::new("leaf", Some(&root)).make();
        assert_eq!(check(&[&leaf, &authority("root", None)]), Err(CertificateError::BadSignature));
        assert_eq!(check(&[&leaf, &authority("other", None)]), Err(CertificateError::UnknownIssuer));
        assert_eq!(check(&[&leaf]), Err(CertificateError::UnknownIssuer));
    }

    #[test]
    fn signatures_of_all_kinds_of_keys_are_checked() {
        for kind in [KeyKind::Ed25519, KeyKind::Ed448, KeyKind::P256] {
            let root = Template { kind, ..Template::new("root", None) }.make();
            assert_eq!(check(&[&Template::new("leaf", Some(&root)).make(), &root]), Ok(()));
        }
    }

    #[test]
    fn refuses_an_old_leaf_and_garbage() {
        let root = authority("root", None);
        let old = Template { version: 0, ..Template::new("leaf", Some(&root)) }.make();
        assert_eq!(check(&[&old, &root]), Err(CertificateError::BadEncoding));
        let garbage = CertificateDer::from(vec![0x30, 0x82, 0xff]);
        assert_eq!(validate(&garbage, &[], UnixTime::now()), Err(CertificateError::BadEncoding));
    }
}
