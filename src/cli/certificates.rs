//! The certificates of a server: an authority of its own, whose SHA-256 is the server's identity for ever, and a server
//! certificate signed by it, which can be replaced. Subjects, extensions and validity are those of the Haskell server.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, Id, PKey, PKeyRef, Private};
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier,
};
use openssl::x509::{X509, X509Builder, X509Extension, X509Name, X509NameRef, X509Ref};

use crate::protocol::certificate::Fingerprint;

/// Certificates live for longer than anybody will: clients pin the authority, so that nothing is gained by expiry.
const VALIDITY_DAYS: u32 = 999_999;
/// Bits of a random serial number: 20 bytes with a positive sign.
const SERIAL_BITS: i32 = 159;
/// Most characters of a common name (X.520).
pub const MAX_COMMON_NAME: usize = 64;

/// The signature algorithms that the server's certificates may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SignAlgorithm {
    /// Ed25519.
    #[value(name = "ED25519")]
    Ed25519,
    /// Ed448.
    #[value(name = "ED448")]
    Ed448,
}

impl SignAlgorithm {
    /// The algorithm of a certificate's key, if it is one of these.
    pub fn of(key: &PKeyRef<impl HasPublic>) -> Option<Self> {
        match key.id() {
            Id::ED25519 => Some(SignAlgorithm::Ed25519),
            Id::ED448 => Some(SignAlgorithm::Ed448),
            _ => None,
        }
    }

    fn generate(self) -> Result<PKey<Private>, ErrorStack> {
        match self {
            SignAlgorithm::Ed25519 => PKey::generate_ed25519(),
            SignAlgorithm::Ed448 => PKey::generate_ed448(),
        }
    }
}

/// A certificate with its key.
pub struct Credential {
    /// The certificate.
    pub certificate: X509,
    /// Its private key.
    pub key: PKey<Private>,
}

impl Credential {
    /// A new authority, which signs itself.
    pub fn new_authority(algorithm: SignAlgorithm) -> Result<Self, ErrorStack> {
        let key = algorithm.generate()?;
        let name = name(&[(Nid::COMMONNAME, "SMP server CA"), (Nid::ORGANIZATIONNAME, "SimpleX")])?;
        let mut builder = builder(&name, &name, &key)?;
        append_key_identifiers(&mut builder, None)?;
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
        builder.sign(&key, MessageDigest::null())?;
        Ok(Credential { certificate: builder.build(), key })
    }

    /// A new server certificate for `common_name`, signed by this authority.
    pub fn issue_server(&self, algorithm: SignAlgorithm, common_name: &str) -> Result<Credential, ErrorStack> {
        let key = algorithm.generate()?;
        let subject = name(&[(Nid::COMMONNAME, common_name)])?;
        let mut builder = builder(&subject, self.certificate.subject_name(), &key)?;
        for extension in server_extensions()? {
            builder.append_extension(extension)?;
        }
        append_key_identifiers(&mut builder, Some(&self.certificate))?;
        builder.sign(&self.key, MessageDigest::null())?;
        Ok(Credential { certificate: builder.build(), key })
    }
}

/// The identifiers of the certificate's own key and of its issuer's, which is itself if none is given.
fn append_key_identifiers(builder: &mut X509Builder, issuer: Option<&X509Ref>) -> Result<(), ErrorStack> {
    let own = SubjectKeyIdentifier::new().build(&builder.x509v3_context(issuer, None))?;
    builder.append_extension(own)?;
    let of_issuer = AuthorityKeyIdentifier::new().keyid(true).build(&builder.x509v3_context(issuer, None))?;
    builder.append_extension(of_issuer)
}

fn server_extensions() -> Result<[X509Extension; 3], ErrorStack> {
    Ok([
        BasicConstraints::new().build()?,
        KeyUsage::new().digital_signature().non_repudiation().key_agreement().build()?,
        ExtendedKeyUsage::new().server_auth().build()?,
    ])
}

fn name(entries: &[(Nid, &str)]) -> Result<X509Name, ErrorStack> {
    let mut builder = X509Name::builder()?;
    for (field, value) in entries {
        builder.append_entry_by_nid(*field, value)?;
    }
    Ok(builder.build())
}

fn builder(subject: &X509NameRef, issuer: &X509NameRef, key: &PKey<Private>) -> Result<X509Builder, ErrorStack> {
    const VERSION_3: i32 = 2;
    let mut serial = BigNum::new()?;
    serial.rand(SERIAL_BITS, MsbOption::MAYBE_ZERO, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(VERSION_3)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(subject)?;
    builder.set_issuer_name(issuer)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(VALIDITY_DAYS)?)?;
    builder.set_pubkey(key)?;
    Ok(builder)
}

/// The common name of a certificate, if it has one.
pub fn common_name(certificate: &X509Ref) -> Option<String> {
    let entry = certificate.subject_name().entries_by_nid(Nid::COMMONNAME).next()?;
    entry.data().to_string().ok()
}

/// The identity of the server whose authority this is: SHA-256 of the certificate's DER.
pub fn fingerprint(authority: &X509Ref) -> Result<Fingerprint, ErrorStack> {
    Ok(Fingerprint::of(&authority.to_der()?))
}

/// Bytes as addresses and the fingerprint file have them: Base64 with the URL alphabet, padded.
pub fn to_base64(bytes: &[u8]) -> String {
    URL_SAFE.encode(bytes)
}

#[cfg(test)]
mod tests {
    use openssl::stack::Stack;
    use openssl::x509::store::X509StoreBuilder;
    use openssl::x509::{X509PurposeId, X509StoreContext};

    use super::*;

    const ALGORITHMS: [SignAlgorithm; 2] = [SignAlgorithm::Ed25519, SignAlgorithm::Ed448];

    fn verifies(authority: &X509, certificate: &X509) -> bool {
        let mut store = X509StoreBuilder::new().unwrap();
        store.add_cert(authority.clone()).unwrap();
        store.set_purpose(X509PurposeId::SSL_SERVER).unwrap();
        let (store, chain) = (store.build(), Stack::new().unwrap());
        X509StoreContext::new().unwrap().init(&store, certificate, &chain, |context| context.verify_cert()).unwrap()
    }

    #[test]
    fn chains_of_each_algorithm_verify_and_only_under_their_own_authority() {
        for ca_algorithm in ALGORITHMS {
            let authority = Credential::new_authority(ca_algorithm).unwrap();
            let other = Credential::new_authority(ca_algorithm).unwrap();
            for algorithm in ALGORITHMS {
                let server = authority.issue_server(algorithm, "smp.example.com").unwrap();
                assert!(verifies(&authority.certificate, &server.certificate));
                assert!(!verifies(&other.certificate, &server.certificate));
                assert_eq!(SignAlgorithm::of(&server.certificate.public_key().unwrap()), Some(algorithm));
                assert_eq!(common_name(&server.certificate).as_deref(), Some("smp.example.com"));
            }
        }
    }

    /// What OpenSSL prints about a certificate, without spaces, which differ between its versions.
    fn text(certificate: &X509) -> String {
        String::from_utf8(certificate.to_text().unwrap()).unwrap().replace([' ', '\n'], "")
    }

    #[test]
    fn certificates_look_as_the_haskell_server_makes_them() {
        let authority = Credential::new_authority(SignAlgorithm::Ed448).unwrap();
        let server = authority.issue_server(SignAlgorithm::Ed448, "127.0.0.1").unwrap();
        for part in [
            "Version:3",
            "SignatureAlgorithm:ED448",
            "Subject:CN=SMPserverCA,O=SimpleX",
            "SubjectKeyIdentifier",
            "AuthorityKeyIdentifier",
            "BasicConstraints:criticalCA:TRUE",
        ] {
            assert!(text(&authority.certificate).contains(part), "{part}");
        }
        for part in [
            "Version:3",
            "SignatureAlgorithm:ED448",
            "Issuer:CN=SMPserverCA,O=SimpleX",
            "Subject:CN=127.0.0.1Subject",
            "BasicConstraints:CA:FALSE",
            "KeyUsage:DigitalSignature,NonRepudiation,KeyAgreement",
            "ExtendedKeyUsage:TLSWebServerAuthentication",
            "SubjectKeyIdentifier",
            "AuthorityKeyIdentifier",
        ] {
            assert!(text(&server.certificate).contains(part), "{part}");
        }
        let lifetime = server.certificate.not_before().diff(server.certificate.not_after()).unwrap();
        assert_eq!(lifetime.days, 999_999);
    }

    #[test]
    fn the_fingerprint_is_the_hash_of_the_authority() {
        let authority = Credential::new_authority(SignAlgorithm::Ed25519).unwrap();
        let hash = openssl::sha::sha256(&authority.certificate.to_der().unwrap());
        assert_eq!(fingerprint(&authority.certificate).unwrap().0, hash);
        assert_eq!(to_base64(&[0xff; 32]), "__________________________________________8=");
    }
}
