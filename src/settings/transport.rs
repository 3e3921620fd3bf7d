//! `[TRANSPORT]`: where the server listens, what it speaks and how much it takes on.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::keys;
use super::reader::Reader;
use crate::protocol::address::ServerAddress;
use crate::protocol::{Version, VersionRange};

/// How the server meets its clients.
#[derive(Clone, Debug)]
pub struct Transport {
    /// Host names, comma-separated; only for the address that is printed on start.
    pub host: String,
    /// Ports to listen on, at least one, all different but for 0, which lets the system choose.
    pub ports: Vec<u16>,
    /// Whether failed handshakes are logged.
    pub log_tls_errors: bool,
    /// The versions of SMP that are offered.
    pub versions: VersionRange,
    /// Connections at a time, those in a handshake included.
    pub max_connections: usize,
    /// Handshakes (TLS and SMP) in progress at a time.
    pub max_handshakes: usize,
    /// Time for a TLS and SMP handshake together.
    pub handshake_timeout: Duration,
    /// Encoded blocks that may wait to be sent to a client.
    pub client_blocks: usize,
    /// A client that takes no byte for so long, while something waits for it, is disconnected.
    pub send_timeout: Duration,
    /// Worker threads; `None`: one for each core.
    pub workers: Option<NonZeroUsize>,
    /// Whether an X448 key share is accepted, which saves existing clients a round trip.
    pub x448: bool,
}

impl Transport {
    /// The port that stands in the server's address: none if clients find it by themselves.
    pub fn address_port(&self) -> Option<u16> {
        self.ports.first().copied().filter(|_| !self.ports.contains(&ServerAddress::DEFAULT_PORT))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Transport {
            host: reader.find(&keys::HOST).map(|found| found.value.to_owned()).unwrap_or_default(),
            ports: read_ports(reader),
            log_tls_errors: reader.switch(&keys::LOG_TLS_ERRORS),
            versions: read_versions(reader),
            max_connections: reader.number(&keys::MAX_CONNECTIONS, 1..=10_000_000, "connections"),
            max_handshakes: reader.number(&keys::MAX_HANDSHAKES, 1..=100_000, "handshakes"),
            handshake_timeout: reader.seconds(&keys::HANDSHAKE_TIMEOUT, 1..=600),
            client_blocks: reader.number(&keys::CLIENT_BLOCKS, 1..=4096, "blocks"),
            send_timeout: reader.seconds(&keys::SEND_TIMEOUT, 1..=3600),
            workers: read_workers(reader),
            x448: reader.switch(&keys::X448),
        }
    }
}

fn read_ports(reader: &mut Reader<'_>) -> Vec<u16> {
    let allowed = "different port numbers from 0 to 65535, separated by commas";
    reader.parse(&keys::PORT, allowed, parse_ports).unwrap_or_default()
}

fn parse_ports(text: &str) -> Option<Vec<u16>> {
    let ports: Vec<u16> = text.split(',').map(|port| port.trim().parse().ok()).collect::<Option<_>>()?;
    let repeated = |(i, port): (usize, &u16)| *port != 0 && ports[..i].contains(port);
    (!ports.iter().enumerate().any(repeated)).then_some(ports)
}

fn read_versions(reader: &mut Reader<'_>) -> VersionRange {
    let spoken = VersionRange::SUPPORTED;
    let range = spoken.min().0..=spoken.max().0;
    let min = reader.optional_number(&keys::MIN_SMP_VERSION, range.clone(), "a version");
    let max = reader.optional_number(&keys::MAX_SMP_VERSION, range, "a version");
    let (Some(min), Some(max)) = (min, max) else { return spoken };
    VersionRange::new(Version(min), Version(max)).unwrap_or_else(|| {
        reader.wrong(&keys::MIN_SMP_VERSION, &format!("it is above {} = {max}", keys::MAX_SMP_VERSION.title()));
        spoken
    })
}

fn read_workers(reader: &mut Reader<'_>) -> Option<NonZeroUsize> {
    const MOST: usize = 1024;
    let count = |text: &str| text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= MOST);
    let parse = |text: &str| if text == "auto" { Some(None) } else { count(text).map(Some) };
    reader.parse(&keys::WORKERS, "`auto` (one for each core) or a whole number from 1 to 1024", parse).flatten()
}
