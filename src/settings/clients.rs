//! `[AUTH]`, `[INACTIVE_CLIENTS]`, `[SUBSCRIPTIONS]` and `[INFORMATION]`: what clients may do and are told.

use std::time::Duration;

use super::keys;
use super::password::{ALLOWED_PASSWORD, Password};
use super::reader::Reader;

/// Who may create queues.
#[derive(Clone, Debug)]
pub struct Auth {
    /// Whether anybody may.
    pub new_queues: bool,
    /// The password that they must know, if one is set.
    pub create_password: Option<Password>,
}

impl Auth {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Auth {
            new_queues: reader.switch(&keys::NEW_QUEUES),
            create_password: reader.parse(&keys::CREATE_PASSWORD, ALLOWED_PASSWORD, Password::new),
        }
    }
}

/// When clients without subscriptions are disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InactiveClients {
    /// Time without a command or message after which a client is inactive.
    pub ttl: Duration,
    /// How often inactive clients are looked for.
    pub check_interval: Duration,
}

impl InactiveClients {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        const YEAR_SECONDS: u64 = 365 * 86_400;
        let disconnect = reader.switch(&keys::DISCONNECT);
        let inactive = InactiveClients {
            ttl: reader.seconds(&keys::INACTIVE_TTL, 1..=YEAR_SECONDS),
            check_interval: reader.seconds(&keys::INACTIVE_CHECK_INTERVAL, 1..=YEAR_SECONDS),
        };
        disconnect.then_some(inactive)
    }
}

/// How subscribers learn that a subscription is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscriptions {
    /// `END` and `DELD` of a connection are collected for so long; zero: sent at once.
    pub end_interval: Duration,
}

impl Subscriptions {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let milliseconds = reader.number(&keys::END_INTERVAL_MS, 0..=600_000, "milliseconds");
        Subscriptions { end_interval: Duration::from_millis(milliseconds) }
    }
}

/// What the operator tells about the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Information {
    /// Where the source code of the running version is, which the licence asks for.
    pub source_code: Option<String>,
}

impl Information {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let source_code = reader.find(&keys::SOURCE_CODE).map(|found| found.value.to_owned());
        Information { source_code: source_code.filter(|uri| !uri.is_empty()) }
    }
}
