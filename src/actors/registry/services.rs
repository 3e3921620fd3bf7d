//! Which connection a service has: the pure part, and what a shard is asked about it.
//!
//! The connection of a messaging service is the one subscriber of all queues of its service. Which queues those are, the
//! store knows: there is no entry for each of them here.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use actix::{Context, Handler, Message, MessageResult};

use super::core::RandomIdHasher;
use super::{ConnectionId, ConnectionRef, Epoch, SubscriptionRegistry};
use crate::actors::mailbox::Letter;
use crate::protocol::ServiceId;

/// Make a connection the one of its service.
#[derive(Message)]
#[rtype(result = "ServiceSubscribed")]
pub struct SubscribeService {
    /// The connection.
    pub connection: ConnectionRef,
    /// Its service.
    pub service: ServiceId,
}

/// Answer to [`SubscribeService`].
#[derive(Debug)]
pub struct ServiceSubscribed {
    /// Epoch of the connection's subscription: the same as before if it is the service's already.
    pub epoch: Epoch,
    /// Which connection the service had: to be told by the asker.
    pub displaced: Option<DisplacedService>,
}

/// A service's connection that another one has taken the place of.
#[derive(Debug)]
pub struct DisplacedService {
    /// The connection.
    pub connection: ConnectionRef,
    /// Which of its subscriptions.
    pub epoch: Epoch,
}

/// Forget the connection of a service, if it is this one.
#[derive(Message)]
#[rtype(result = "()")]
pub struct UnsubscribeService {
    /// The connection.
    pub connection: ConnectionId,
    /// Its service.
    pub service: ServiceId,
}

/// Which connections do these services have?
#[derive(Message)]
#[rtype(result = "Vec<Option<ConnectionRef>>")]
pub struct FindServices {
    /// The services.
    pub services: Vec<ServiceId>,
}

macro_rules! debug_names_nothing {
    ($($message:ident),*) => {$(
        impl std::fmt::Debug for $message {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($message))
            }
        }
    )*};
}

debug_names_nothing!(SubscribeService, UnsubscribeService, FindServices);

/// The services that have a connection. One connection a service at most.
#[derive(Debug, Default)]
pub struct ServiceConnections {
    entries: HashMap<ServiceId, (ConnectionRef, Epoch), BuildHasherDefault<RandomIdHasher>>,
    last_epoch: u64,
}

impl ServiceConnections {
    /// Makes `connection` the one of `service`. If it is so already, nothing changes.
    pub fn subscribe(&mut self, connection: &ConnectionRef, service: ServiceId) -> ServiceSubscribed {
        if let Some((current, epoch)) = self.entries.get(&service)
            && current.id == connection.id
        {
            return ServiceSubscribed { epoch: *epoch, displaced: None };
        }
        self.last_epoch += 1;
        let epoch = Epoch(self.last_epoch);
        let displaced = self.entries.insert(service, (Arc::clone(connection), epoch));
        let displaced = displaced.map(|(connection, epoch)| DisplacedService { connection, epoch });
        ServiceSubscribed { epoch, displaced }
    }

    /// Forgets the connection of `service` if it is `connection`.
    pub fn unsubscribe(&mut self, connection: ConnectionId, service: &ServiceId) {
        if self.entries.get(service).is_some_and(|(current, _)| current.id == connection) {
            self.entries.remove(service);
        }
    }

    /// The connections of `services`, in their order.
    pub fn find(&self, services: &[ServiceId]) -> Vec<Option<ConnectionRef>> {
        services.iter().map(|service| self.entries.get(service).map(|(connection, _)| Arc::clone(connection))).collect()
    }

    /// The connection of `service` and the epoch of its subscription.
    pub fn get(&self, service: &ServiceId) -> Option<&(ConnectionRef, Epoch)> {
        self.entries.get(service)
    }
}

impl Handler<Letter<SubscribeService>> for SubscriptionRegistry {
    type Result = MessageResult<Letter<SubscribeService>>;

    fn handle(&mut self, letter: Letter<SubscribeService>, _: &mut Context<Self>) -> Self::Result {
        let (SubscribeService { connection, service }, _place) = letter.open();
        MessageResult(self.services.subscribe(&connection, service))
    }
}

impl Handler<Letter<UnsubscribeService>> for SubscriptionRegistry {
    type Result = ();

    fn handle(&mut self, letter: Letter<UnsubscribeService>, _: &mut Context<Self>) {
        let (UnsubscribeService { connection, service }, _place) = letter.open();
        self.services.unsubscribe(connection, &service);
    }
}

impl Handler<Letter<FindServices>> for SubscriptionRegistry {
    type Result = MessageResult<Letter<FindServices>>;

    fn handle(&mut self, letter: Letter<FindServices>, _: &mut Context<Self>) -> Self::Result {
        let (FindServices { services }, _place) = letter.open();
        MessageResult(self.services.find(&services))
    }
}
