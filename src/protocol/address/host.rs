//! Hosts of a server: names and IP addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::protocol::encoding::DecodeError;

/// One host of a server.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Host {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address, printed without brackets.
    Ipv6(Ipv6Addr),
    /// A Tor onion service: lower-case letters and digits, then `.onion`.
    Onion(String),
    /// A domain name, as it was written.
    Domain(String),
}

impl Host {
    /// Reads a host at the start of `text`, and gives what follows it.
    ///
    /// Only the first form that fits is taken: `1.2.3.4.5` is an IPv4 address with something behind it. Where the
    /// reference wraps a last part above 255 to a byte, this reads a domain name, as both do for the other parts.
    pub(super) fn parse_prefix(text: &str) -> Result<(Host, &str), DecodeError> {
        ipv4_prefix(text)
            .or_else(|| ipv6_prefix(text))
            .or_else(|| onion_prefix(text))
            .or_else(|| domain_prefix(text))
            .ok_or(DecodeError)
    }
}

fn ipv4_prefix(text: &str) -> Option<(Host, &str)> {
    let mut octets = [0; 4];
    let mut rest = text;
    for (index, octet) in octets.iter_mut().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('.')?;
        }
        let (digits, after) = split_while(rest, |c| c.is_ascii_digit());
        *octet = digits.parse().ok()?;
        rest = after;
    }
    Some((Host::Ipv4(Ipv4Addr::from(octets)), rest))
}

fn ipv6_prefix(text: &str) -> Option<(Host, &str)> {
    let (address, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => split_while(text, |c| c.is_ascii_hexdigit() || c == ':'),
    };
    Some((Host::Ipv6(address.parse().ok()?), rest))
}

fn onion_prefix(text: &str) -> Option<(Host, &str)> {
    let (name, rest) = split_while(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let rest = rest.strip_prefix(".onion")?;
    Some((Host::Onion(format!("{name}.onion")), rest))
}

fn domain_prefix(text: &str) -> Option<(Host, &str)> {
    let (name, rest) = split_while(text, |c| !":#,;/ \n\r\t[]".contains(c));
    let valid = !name.is_empty() && !name.ends_with(".onion");
    valid.then(|| (Host::Domain(name.to_owned()), rest))
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

impl FromStr for Host {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        match Host::parse_prefix(text)? {
            (host, "") => Ok(host),
            _ => Err(DecodeError),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ipv4(address) => address.fmt(f),
            // Dots inside an IPv6 address can not be read back.
            Host::Ipv6(address) if address.to_ipv4_mapped().is_some() => {
                let [.., high, low] = address.segments();
                write!(f, "::ffff:{high:x}:{low:x}")
            }
            Host::Ipv6(address) => address.fmt(f),
            Host::Onion(name) | Host::Domain(name) => f.write_str(name),
        }
    }
}
