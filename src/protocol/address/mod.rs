//! Server addresses and names.
//!
//! An address has a text form (configuration, `smp-server check`, links) and a binary one (`PRXY`). Neither resolves
//! nor connects anything here.

mod host;
mod name;

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet::URL_SAFE as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use zeroize::Zeroizing;

use super::encoding::{Decode, DecodeError, Encode, Reader, put_list, put_short, put_short_latin1};

pub use host::Host;
pub use name::NameDomain;

/// base64url with padding; read with or without it.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `smp://fingerprint@host[,host][:port]`, also as `PRXY` carries it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ServerAddress {
    /// Hosts, at least one.
    pub hosts: Vec<Host>,
    /// Port, empty for the default. `PRXY` may carry any text here.
    pub port: String,
    /// SHA-256 of the certificate authority's DER. Of another length it is read, but matches no server.
    pub fingerprint: Bytes,
}

impl ServerAddress {
    /// The port when an address names none.
    pub const DEFAULT_PORT: u16 = 5223;

    /// The port as a number, if it can be one.
    pub fn port_number(&self) -> Option<u16> {
        if self.port.is_empty() { Some(Self::DEFAULT_PORT) } else { self.port.parse().ok() }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, password: Option<&str>) -> fmt::Result {
        write!(f, "smp://{}", BASE64_URL.encode(&self.fingerprint))?;
        if let Some(password) = password {
            write!(f, ":{password}")?;
        }
        for (index, host) in self.hosts.iter().enumerate() {
            let separator = if index == 0 { '@' } else { ',' };
            let before_port = index + 1 == self.hosts.len() && !self.port.is_empty();
            match host {
                // Without brackets, as the reference prints it, the port would be read as a part of the address.
                Host::Ipv6(_) if before_port => write!(f, "{separator}[{host}]")?,
                _ => write!(f, "{separator}{host}")?,
            }
        }
        if self.port.is_empty() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// Reads an address that has no password.
impl FromStr for ServerAddress {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        let ServerAddressWithPassword { address, password } = text.parse()?;
        if password.is_none() { Ok(address) } else { Err(DecodeError) }
    }
}

impl Encode for ServerAddress {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.hosts, |out, host| put_short_latin1(out, &host.to_string()));
        put_short_latin1(out, &self.port);
        put_short(out, &self.fingerprint);
    }
}

impl Decode for ServerAddress {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ServerAddress {
            hosts: reader.list(|reader| reader.short_latin1()?.parse())?,
            port: reader.short_latin1()?,
            fingerprint: reader.short()?,
        })
    }
}

/// `smp://fingerprint[:password]@host[,host][:port]`: an address with the password for creating queues there.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddressWithPassword {
    /// The address.
    pub address: ServerAddress,
    /// The password, if there is one.
    pub password: Option<Zeroizing<String>>,
}

impl fmt::Debug for ServerAddressWithPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddressWithPassword").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Shows the password: for files and terminals of the operator, never for logs.
impl fmt::Display for ServerAddressWithPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.write(f, self.password.as_ref().map(|password| password.as_str()))
    }
}

impl FromStr for ServerAddressWithPassword {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        let (credentials, location) =
            text.strip_prefix("smp://").and_then(|rest| rest.split_once('@')).ok_or(DecodeError)?;
        let (fingerprint, password) = match credentials.split_once(':') {
            None => (credentials, None),
            Some((fingerprint, password)) => (fingerprint, Some(parse_password(password)?)),
        };
        let (hosts, rest) = parse_hosts(location)?;
        let address = ServerAddress { hosts, port: parse_port(rest)?, fingerprint: parse_fingerprint(fingerprint)? };
        Ok(ServerAddressWithPassword { address, password })
    }
}

fn parse_fingerprint(text: &str) -> Result<Bytes, DecodeError> {
    let bytes = BASE64_URL.decode(text).map_err(|_| DecodeError)?;
    if bytes.is_empty() { Err(DecodeError) } else { Ok(Bytes::from(bytes)) }
}

fn parse_password(text: &str) -> Result<Zeroizing<String>, DecodeError> {
    let valid = !text.is_empty() && text.bytes().all(is_password_byte);
    if valid { Ok(Zeroizing::new(text.to_owned())) } else { Err(DecodeError) }
}

fn parse_hosts(text: &str) -> Result<(Vec<Host>, &str), DecodeError> {
    let (host, mut rest) = Host::parse_prefix(text)?;
    let mut hosts = vec![host];
    while let Some(more) = rest.strip_prefix(',') {
        let (host, after) = Host::parse_prefix(more)?;
        hosts.push(host);
        rest = after;
    }
    Ok((hosts, rest))
}

/// Nothing, or `:` and decimal digits; leading zeros are dropped, and numbers above 65535 are left to fail later.
fn parse_port(text: &str) -> Result<String, DecodeError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let digits = text.strip_prefix(':').ok_or(DecodeError)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecodeError);
    }
    let significant = digits.trim_start_matches('0');
    Ok(if significant.is_empty() { "0" } else { significant }.to_owned())
}

/// A password as commands carry it: printable ISO 8859-1 characters except space and those that an address needs.
pub(super) fn basic_auth(reader: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
    let password = reader.short()?;
    if password.iter().copied().all(is_password_byte) { Ok(password) } else { Err(DecodeError) }
}

fn is_password_byte(byte: u8) -> bool {
    // 0xAD is a soft hyphen, which is not printed.
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) && !matches!(byte, b'@' | b':' | b'/')
}
