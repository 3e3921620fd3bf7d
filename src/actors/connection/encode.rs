//! Responses to block payloads.

use tracing::debug;

use super::core::Answer;
use crate::protocol::block::{BatchWriter, MAX_TRANSMISSIONS};
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::protocol::transmission::{TransmissionParams, encode_response};

/// Encodes a connection's responses.
#[derive(Clone, Debug)]
pub struct Encoder {
    params: TransmissionParams,
}

impl Encoder {
    /// Most notices that are taken for a payload.
    pub const MAX_NOTICES: usize = MAX_TRANSMISSIONS;

    /// For a session with these parameters.
    pub fn new(params: TransmissionParams) -> Self {
        Encoder { params }
    }

    /// The answers in their order, in as few payloads as they fit.
    pub fn payloads(&self, answers: &[Answer]) -> Vec<Vec<u8>> {
        let mut batch = BatchWriter::new();
        for (correlation_id, entity_id, response) in answers {
            let mut put = |response: &Response| {
                batch.push(|out| encode_response(&self.params, correlation_id, entity_id, response, out))
            };
            if put(response).is_err() {
                // A large answer under a correlation ID of more than 180 bytes, where the protocol's clients use 24.
                debug!("an answer was too large to send");
                let _ = put(&Response::Err(ErrorType::Internal));
            }
        }
        batch.finish()
    }
}
