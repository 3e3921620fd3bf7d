//! Certificates and sockets for tests.

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::BasicConstraints;
use openssl::x509::{X509, X509Builder, X509Name};
use tokio::net::{TcpListener, TcpStream};

use crate::protocol::certificate::Credentials;
use crate::protocol::crypto::SigningKey;

/// Seconds in a day.
pub const DAY: i64 = 86_400;

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    Ed25519,
    Ed448,
    P256,
}

impl KeyKind {
    pub fn generate(self) -> PKey<Private> {
        match self {
            KeyKind::Ed25519 => PKey::generate_ed25519(),
            KeyKind::Ed448 => PKey::generate_ed448(),
            KeyKind::P256 => PKey::ec_gen("P-256"),
        }
        .unwrap()
    }
}

/// A certificate to be made.
pub struct Template<'a> {
    pub kind: KeyKind,
    pub name: &'a str,
    /// Signed by itself when there is none.
    pub issuer: Option<&'a Certified>,
    /// Whether basic constraints say that it is an authority; without basic constraints when `None`.
    pub authority: Option<bool>,
    /// From and until, seconds from now.
    pub valid: (i64, i64),
    /// The version field; 2 is X.509 v3.
    pub version: i32,
}

impl<'a> Template<'a> {
    pub fn new(name: &'a str, issuer: Option<&'a Certified>) -> Self {
        Template { kind: KeyKind::Ed25519, name, issuer, authority: None, valid: (-DAY, DAY), version: 2 }
    }

    pub fn make(&self) -> Certified {
        let key = self.kind.generate();
        let mut builder = X509::builder().unwrap();
        builder.set_version(self.version).unwrap();
        let serial = BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap();
        builder.set_serial_number(&serial).unwrap();
        builder.set_subject_name(&name(self.name)).unwrap();
        builder.set_pubkey(&key).unwrap();
        self.set_validity(&mut builder);
        if let Some(authority) = self.authority {
            let mut constraints = BasicConstraints::new();
            if authority {
                constraints.critical().ca();
            }
            builder.append_extension(constraints.build().unwrap()).unwrap();
        }
        let (issuer_name, issuer_key) = match self.issuer {
            Some(issuer) => (issuer.certificate.subject_name().to_owned().unwrap(), &issuer.key),
            None => (name(self.name), &key),
        };
        builder.set_issuer_name(&issuer_name).unwrap();
        let digest = match issuer_key.id() {
            openssl::pkey::Id::EC => MessageDigest::sha256(),
            _ => MessageDigest::null(),
        };
        builder.sign(issuer_key, digest).unwrap();
        Certified { certificate: builder.build(), key }
    }

    fn set_validity(&self, builder: &mut X509Builder) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
        let at = |offset: i64| Asn1Time::from_unix(now + offset).unwrap();
        builder.set_not_before(&at(self.valid.0)).unwrap();
        builder.set_not_after(&at(self.valid.1)).unwrap();
    }
}

fn name(common_name: &str) -> X509Name {
    let mut builder = X509Name::builder().unwrap();
    builder.append_entry_by_text("CN", common_name).unwrap();
    builder.build()
}

/// A certificate and its key.
pub struct Certified {
    pub certificate: X509,
    pub key: PKey<Private>,
}

impl Certified {
    pub fn der(&self) -> Vec<u8> {
        self.certificate.to_der().unwrap()
    }
}

/// The credentials of a chain, leaf first.
pub fn credentials_of(chain: &[&Certified]) -> Credentials {
    let key = SigningKey::from_der(&chain[0].key.private_key_to_pkcs8().unwrap()).unwrap();
    Credentials::new(chain.iter().map(|certified| certified.der().into()).collect(), key).unwrap()
}

/// Credentials of a new relay: authority and server with keys of this kind.
pub fn credentials(kind: KeyKind) -> Credentials {
    let ca = Template { kind, authority: Some(true), ..Template::new("SMP server CA", None) }.make();
    let server = Template { kind, ..Template::new("localhost", Some(&ca)) }.make();
    credentials_of(&[&server, &ca])
}

/// A connection over loopback: the client's end and the server's.
pub async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}
