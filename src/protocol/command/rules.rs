//! What a command demands of the transmission that carries it. Spec: "Command authentication".

use super::Command;
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::ids::EntityId;

/// Who sends a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Party {
    /// Whoever creates a queue.
    Creator,
    /// A queue's recipient.
    Recipient,
    /// A service that receives for many recipients.
    RecipientService,
    /// A queue's sender.
    Sender,
    /// Any client.
    IdleClient,
    /// A proxy to a relay.
    ProxyService,
    /// A sender who has a link.
    SenderLink,
    /// A client of a proxy.
    ProxiedClient,
    /// A queue's notifier.
    Notifier,
    /// A service that is notified for many recipients.
    NotifierService,
    /// A client that resolves names.
    Resolver,
}

/// What credentials a command must come with.
enum Credentials {
    /// Authorization, no entity.
    Creation,
    /// An entity, authorization or not.
    Entity,
    /// An entity, no authorization.
    EntityOnly,
    /// Neither.
    Nothing,
    /// Authorization and an entity.
    Both,
}

impl Command {
    /// The command's name, as it is sent.
    pub fn name(&self) -> &'static str {
        match self {
            Command::New(_) => "NEW",
            Command::Sub => "SUB",
            Command::Subs(_) => "SUBS",
            Command::Key(_) => "KEY",
            Command::Rkey(_) => "RKEY",
            Command::Lset(..) => "LSET",
            Command::Ldel => "LDEL",
            Command::Nkey(..) => "NKEY",
            Command::Ndel => "NDEL",
            Command::Get => "GET",
            Command::Ack(_) => "ACK",
            Command::Off => "OFF",
            Command::Del => "DEL",
            Command::Que => "QUE",
            Command::Skey(_) => "SKEY",
            Command::Send(..) => "SEND",
            Command::Ping => "PING",
            Command::Lkey(_) => "LKEY",
            Command::Lget => "LGET",
            Command::Nsub => "NSUB",
            Command::Nsubs(_) => "NSUBS",
            Command::Prxy(..) => "PRXY",
            Command::Pfwd(..) => "PFWD",
            Command::Rfwd(_) => "RFWD",
            Command::Rslv(_) => "RSLV",
        }
    }

    /// Who sends it.
    pub fn party(&self) -> Party {
        match self {
            Command::New(_) => Party::Creator,
            Command::Sub
            | Command::Key(_)
            | Command::Rkey(_)
            | Command::Lset(..)
            | Command::Ldel
            | Command::Nkey(..)
            | Command::Ndel
            | Command::Get
            | Command::Ack(_)
            | Command::Off
            | Command::Del
            | Command::Que => Party::Recipient,
            Command::Subs(_) => Party::RecipientService,
            Command::Skey(_) | Command::Send(..) => Party::Sender,
            Command::Ping => Party::IdleClient,
            Command::Rfwd(_) => Party::ProxyService,
            Command::Lkey(_) | Command::Lget => Party::SenderLink,
            Command::Prxy(..) | Command::Pfwd(..) => Party::ProxiedClient,
            Command::Nsub => Party::Notifier,
            Command::Nsubs(_) => Party::NotifierService,
            Command::Rslv(_) => Party::Resolver,
        }
    }

    /// Whether a service signs this command too (in its own session, 16+): it may associate a queue with the service.
    pub fn uses_service_signature(&self) -> bool {
        matches!(self, Command::New(_) | Command::Sub | Command::Nsub)
    }

    /// Whether authorization and entity ID are there or absent as this command demands; `authorized` says whether the
    /// transmission has an authorization, right or wrong.
    pub fn check_credentials(&self, authorized: bool, entity: &EntityId) -> Result<(), ErrorType> {
        let entity = !entity.is_empty();
        let error = match (self.credentials(), authorized, entity) {
            (Credentials::Creation, true, false)
            | (Credentials::Entity, _, true)
            | (Credentials::EntityOnly, false, true)
            | (Credentials::Nothing, false, false)
            | (Credentials::Both, true, true) => return Ok(()),
            (Credentials::Creation, false, _) | (Credentials::Both, _, _) => CommandError::NoAuth,
            (Credentials::Entity | Credentials::EntityOnly, _, false) => CommandError::NoEntity,
            (Credentials::Creation | Credentials::EntityOnly, true, true) | (Credentials::Nothing, _, _) => {
                CommandError::HasAuth
            }
        };
        Err(ErrorType::Cmd(error))
    }

    fn credentials(&self) -> Credentials {
        match self {
            Command::New(_) => Credentials::Creation,
            Command::Send(..) => Credentials::Entity,
            Command::Lget | Command::Pfwd(..) => Credentials::EntityOnly,
            Command::Ping | Command::Prxy(..) | Command::Rfwd(_) | Command::Rslv(_) => Credentials::Nothing,
            Command::Sub
            | Command::Subs(_)
            | Command::Key(_)
            | Command::Rkey(_)
            | Command::Lset(..)
            | Command::Ldel
            | Command::Nkey(..)
            | Command::Ndel
            | Command::Get
            | Command::Ack(_)
            | Command::Off
            | Command::Del
            | Command::Que
            | Command::Skey(_)
            | Command::Lkey(_)
            | Command::Nsub
            | Command::Nsubs(_) => Credentials::Both,
        }
    }
}
