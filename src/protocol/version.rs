//! Protocol versions and their negotiation.

use super::encoding::{Decode, DecodeError, Encode, Reader, put_u16};

/// A version of SMP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Version(pub u16);

impl Version {
    /// The oldest version spoken here: batches, `NEW` with a subscription mode.
    pub const SUBSCRIPTION_MODE: Version = Version(6);
    /// Session ID implied; commands may be authorized by a DH authenticator.
    pub const AUTHENTICATED_COMMANDS: Version = Version(7);
    /// Forwarding through a proxy.
    pub const PROXY: Version = Version(8);
    /// `SKEY`: the sender can secure the queue.
    pub const SENDER_SECURES: Version = Version(9);
    /// `DELD` events.
    pub const DELETED_EVENT: Version = Version(10);
    /// Blocks are encrypted inside TLS.
    pub const ENCRYPTED_BLOCK: Version = Version(11);
    /// `ERR BLOCKED`.
    pub const BLOCKED_ENTITY: Version = Version(12);
    /// `proxyServer` in the client's hello.
    pub const PROXY_SERVER_HELLO: Version = Version(14);
    /// Short links, several recipient keys.
    pub const SHORT_LINKS: Version = Version(15);
    /// Client services and their certificates.
    pub const SERVICES: Version = Version(16);
    /// Notifier credentials in `NEW`.
    pub const NOTIFIER_IN_NEW: Version = Version(17);
    /// Notices in `BLOCKED`.
    pub const CLIENT_NOTICES: Version = Version(18);
    /// Counts and hashes in `SUBS`, `NSUBS`, `SOKS`, `ENDS`.
    pub const SERVICE_HASHES: Version = Version(19);
    /// The newest version: name resolution.
    pub const NAMES: Version = Version(20);
}

/// An inclusive range of versions, `min <= max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct VersionRange {
    min: Version,
    max: Version,
}

impl VersionRange {
    /// All that this implementation speaks.
    pub const SUPPORTED: VersionRange = VersionRange { min: Version::SUBSCRIPTION_MODE, max: Version::NAMES };

    /// The oldest version alone: for clients that do not name the protocol in TLS.
    pub const ONLY_OLDEST: VersionRange =
        VersionRange { min: Version::SUBSCRIPTION_MODE, max: Version::SUBSCRIPTION_MODE };

    /// A range, or `None` if `min > max`.
    pub fn new(min: Version, max: Version) -> Option<Self> {
        (min <= max).then_some(VersionRange { min, max })
    }

    /// The oldest version of the range.
    pub fn min(self) -> Version {
        self.min
    }

    /// The newest version of the range.
    pub fn max(self) -> Version {
        self.max
    }

    /// Whether `version` lies within.
    pub fn contains(self, version: Version) -> bool {
        self.min <= version && version <= self.max
    }

    /// What both ranges have, or `None` if they do not meet.
    pub fn intersect(self, other: VersionRange) -> Option<VersionRange> {
        VersionRange::new(self.min.max(other.min), self.max.min(other.max))
    }
}

impl Encode for Version {
    fn encode(&self, out: &mut Vec<u8>) {
        put_u16(out, self.0);
    }
}

impl Decode for Version {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u16().map(Version)
    }
}

impl Encode for VersionRange {
    fn encode(&self, out: &mut Vec<u8>) {
        self.min.encode(out);
        self.max.encode(out);
    }
}

impl Decode for VersionRange {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        VersionRange::new(reader.get()?, reader.get()?).ok_or(DecodeError)
    }
}
