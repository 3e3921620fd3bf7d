//! Services: clients that receive messages, or notifications, of many queues.

use crate::protocol::ServiceId;
use crate::protocol::command::ServiceQueues;
use crate::protocol::handshake::ServiceRole;

/// What became of a service that has shown its certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enrolled {
    /// It was here before, under this ID.
    Known(ServiceId),
    /// It is kept under the ID that it came with.
    New,
    /// A service with this certificate has another role.
    OtherRole,
}

/// What is kept of a service's queues beside what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceCheck {
    /// The service.
    pub service: ServiceId,
    /// Its role.
    pub role: ServiceRole,
    /// What was kept.
    pub kept: ServiceQueues,
    /// What was counted.
    pub counted: ServiceQueues,
}
