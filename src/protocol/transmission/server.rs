//! The server's side: commands come in, responses go out.

use bytes::Bytes;

use super::{Authorization, AuthorizedBytes, RawTransmission, ServiceSignature, TransmissionParams, put_authorization};
use crate::protocol::block::split_batch;
use crate::protocol::command::Command;
use crate::protocol::encoding::{Encode, put_short};
use crate::protocol::error::ErrorType;
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::response::Response;

/// A command as a client sent it, well-formed and with the credentials that it needs, right or wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientTransmission {
    /// How the command is authorized.
    pub authorization: Authorization,
    /// The signature of the client's service.
    pub service_signature: Option<ServiceSignature>,
    /// What is authorized.
    pub authorized: AuthorizedBytes,
    /// Repeated in the answer.
    pub correlation_id: CorrelationId,
    /// What the command is about.
    pub entity_id: EntityId,
    /// The command.
    pub command: Command,
}

/// A transmission that is answered with an error without looking anything up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The transmission's, if it could be read.
    pub correlation_id: CorrelationId,
    /// The transmission's, if the command could be looked at.
    pub entity_id: EntityId,
    /// Why.
    pub error: ErrorType,
}

impl Refused {
    /// The answer to what can not be read: `BLOCK` with empty IDs.
    pub fn bad_block() -> Self {
        Refused { correlation_id: CorrelationId::NONE, entity_id: EntityId::NONE, error: ErrorType::Block }
    }
}

/// Reads all commands of a block's payload. A payload that can not be split is one refusal.
pub fn decode_commands(params: &TransmissionParams, payload: &Bytes) -> Vec<Result<ClientTransmission, Refused>> {
    match split_batch(payload) {
        Ok(transmissions) => transmissions.iter().map(|transmission| decode_command(params, transmission)).collect(),
        Err(_) => vec![Err(Refused::bad_block())],
    }
}

/// Reads one transmission. The first that is wrong decides the error: form of the transmission, session ID, size of the
/// authorization, name of the command, its parameters, presence of authorization and entity ID.
pub fn decode_command(params: &TransmissionParams, transmission: &Bytes) -> Result<ClientTransmission, Refused> {
    let raw = RawTransmission::decode(params, transmission).map_err(|_| Refused::bad_block())?;
    if !raw.belongs_to(params) {
        return Err(refused(raw.correlation_id, EntityId::NONE, ErrorType::Session));
    }
    let Ok(authorization) = Authorization::from_bytes(&raw.authorization) else {
        return Err(refused(raw.correlation_id, EntityId::NONE, ErrorType::Block));
    };
    let command = Command::decode(params.version, &raw.command).and_then(|command| {
        command.check_credentials(!authorization.is_none(), &raw.entity_id)?;
        Ok(command)
    });
    match command {
        Ok(command) => Ok(ClientTransmission {
            authorized: raw.authorized_bytes(params),
            authorization,
            service_signature: raw.service_signature,
            correlation_id: raw.correlation_id,
            entity_id: raw.entity_id,
            command,
        }),
        Err(error) => Err(refused(raw.correlation_id, raw.entity_id, error)),
    }
}

fn refused(correlation_id: CorrelationId, entity_id: EntityId, error: ErrorType) -> Refused {
    Refused { correlation_id, entity_id, error }
}

/// Appends a response as a transmission.
pub fn encode_response(
    params: &TransmissionParams,
    correlation_id: &CorrelationId,
    entity_id: &EntityId,
    response: &Response,
    out: &mut Vec<u8>,
) {
    put_authorization(out, params, &Authorization::None, None);
    if !params.implies_session_id() {
        put_short(out, &params.session_id.0);
    }
    correlation_id.encode(out);
    entity_id.encode(out);
    response.encode(params.version, out);
}
