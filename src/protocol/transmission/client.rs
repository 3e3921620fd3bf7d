//! The client's side: commands go out, responses come in.

use bytes::Bytes;

use super::{Authorization, RawTransmission, ServiceSignature, TransmissionParams, put_authorization};
use crate::protocol::block::split_batch;
use crate::protocol::command::Command;
use crate::protocol::encoding::Encode;
use crate::protocol::error::ErrorType;
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::response::Response;

/// A response as a server sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerTransmission {
    /// That of the command it answers; empty for events, and for what the server could not read.
    pub correlation_id: CorrelationId,
    /// What the response is about.
    pub entity_id: EntityId,
    /// The response, or why it could not be read (never [`Response::Err`]'s error, which is a response).
    pub response: Result<Response, ErrorType>,
}

/// Appends a command as a transmission. `authorize` gets the bytes to authorize, and gives the authorization and the
/// signature of the client's service, if it has one.
pub fn encode_command(
    params: &TransmissionParams,
    correlation_id: &CorrelationId,
    entity_id: &EntityId,
    command: &Command,
    authorize: impl FnOnce(&[u8]) -> (Authorization, Option<ServiceSignature>),
    out: &mut Vec<u8>,
) {
    let prefix = params.session_prefix().0;
    let mut authorized = prefix.to_vec();
    correlation_id.encode(&mut authorized);
    entity_id.encode(&mut authorized);
    command.encode(params.version, &mut authorized);
    let (authorization, service_signature) = authorize(&authorized);
    put_authorization(out, params, &authorization, service_signature.as_ref());
    let sent = if params.implies_session_id() { &authorized[prefix.len()..] } else { &authorized[..] };
    out.extend_from_slice(sent);
}

/// Reads all responses of a block's payload. A payload that can not be split is one error.
pub fn decode_responses(params: &TransmissionParams, payload: &Bytes) -> Vec<ServerTransmission> {
    match split_batch(payload) {
        Ok(transmissions) => transmissions.iter().map(|transmission| decode_response(params, transmission)).collect(),
        Err(_) => vec![unreadable(CorrelationId::NONE, ErrorType::Block)],
    }
}

/// Reads one transmission. Servers authorize nothing: what stands in place of an authorization is not looked at.
fn decode_response(params: &TransmissionParams, transmission: &Bytes) -> ServerTransmission {
    let Ok(raw) = RawTransmission::decode(params, transmission) else {
        return unreadable(CorrelationId::NONE, ErrorType::Block);
    };
    if !raw.belongs_to(params) {
        return unreadable(raw.correlation_id, ErrorType::Session);
    }
    let response = Response::decode(params.version, &raw.command).and_then(|response| {
        response.check_entity(&raw.entity_id)?;
        Ok(response)
    });
    ServerTransmission { correlation_id: raw.correlation_id, entity_id: raw.entity_id, response }
}

fn unreadable(correlation_id: CorrelationId, error: ErrorType) -> ServerTransmission {
    ServerTransmission { correlation_id, entity_id: EntityId::NONE, response: Err(error) }
}
