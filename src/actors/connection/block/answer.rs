//! From finished steps to answers.

use super::step::{Activation, Planned, Segment, ServiceActivation, Step};
use crate::actors::connection::core::Answer;
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;

/// An answer, and the subscription that it puts in force.
pub struct Finished {
    /// The answer.
    pub answer: Answer,
    /// The subscription.
    pub activation: Option<Activation>,
    /// The same of the client's service.
    pub service_activation: Option<ServiceActivation>,
}

/// The answers of a segment in the order of its commands.
pub fn answers(segment: Segment) -> Vec<Finished> {
    segment.steps.into_iter().map(finish).collect()
}

fn finish(planned: Planned) -> Finished {
    let Planned { correlation_id, entity_id, step, activation, service_activation } = planned;
    let response = match step {
        Step::Answered(response) => response,
        // Every phase moves its steps on; one that was left behind must still be answered.
        _ => Response::Err(ErrorType::Internal),
    };
    Finished { answer: (correlation_id, entity_id, response), activation, service_activation }
}
