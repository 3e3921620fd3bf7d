//! Server addresses and names.

use bytes::Bytes;

/// `smp://fingerprint[:password]@host[,host][:port]`, also as `PRXY` carries it (without the password).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAddress {
    /// Host names, at least one.
    pub hosts: Vec<String>,
    /// Port, empty for the default.
    pub port: String,
    /// SHA-256 of the certificate authority's DER.
    pub fingerprint: Bytes,
}

/// A name to resolve, such as `alice.simplex`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameDomain(pub String);
