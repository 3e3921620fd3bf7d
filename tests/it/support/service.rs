//! Services, each with a certificate of its own.

use std::sync::Arc;

use smp_server::cli::certificates::{Credential, SignAlgorithm};
use smp_server::client::{Client, ConnectOptions, ServiceCredentials};
use smp_server::protocol::Version;
use smp_server::protocol::certificate::Credentials;
use smp_server::protocol::command::{IdsHash, ServiceQueues};
use smp_server::protocol::crypto::SigningKey;
use smp_server::protocol::handshake::ServiceRole;
use smp_server::protocol::ids::EntityId;

use super::relay::Relay;

/// A service, whether it is connected or not.
#[derive(Clone)]
pub struct Service {
    credentials: Arc<Credentials>,
    role: ServiceRole,
}

impl Service {
    /// One that receives messages.
    pub fn messaging() -> Self {
        Service::new(ServiceRole::Messaging)
    }

    /// One that receives notifications.
    pub fn notifier() -> Self {
        Service::new(ServiceRole::Notifier)
    }

    /// With a new certificate.
    pub fn new(role: ServiceRole) -> Self {
        let authority = Credential::new_authority(SignAlgorithm::Ed25519).expect("an authority");
        let leaf = authority.issue_server(SignAlgorithm::Ed25519, "service").expect("a certificate");
        let chain = [&leaf, &authority].map(|credential| credential.certificate.to_der().expect("DER").into());
        let key = SigningKey::from_der(&leaf.key.private_key_to_pkcs8().expect("DER")).expect("a key");
        let credentials = Credentials::new(chain.to_vec(), key).expect("credentials");
        Service { credentials: Arc::new(credentials), role }
    }

    /// Another role for the same certificate.
    pub fn with_role(&self, role: ServiceRole) -> Self {
        Service { role, ..self.clone() }
    }

    /// What the relay knows it by.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.credentials.fingerprint().0
    }

    /// How it connects; each time with another key of the session.
    pub fn options(&self) -> ConnectOptions {
        let session_key = SigningKey::generate_ed25519();
        let service = ServiceCredentials { role: self.role, credentials: self.credentials.clone(), session_key };
        ConnectOptions { service: Some(Arc::new(service)), ..ConnectOptions::default() }
    }

    /// A session of the newest version.
    pub async fn connect(&self, relay: &Relay) -> Client {
        relay.connect_with(&self.options()).await.expect("connected as a service")
    }

    /// A session of this version.
    pub async fn connect_in(&self, relay: &Relay, version: u16) -> Client {
        let options = self.options().with_version(Version(version));
        relay.connect_with(&options).await.expect("connected as a service")
    }
}

/// The ID that the relay has given the service of this session.
pub fn service_id(client: &Client) -> EntityId {
    client.service().expect("a service's session").id.clone()
}

/// Count and hash of these queues, or notifiers.
pub fn queues_with<'a>(ids: impl IntoIterator<Item = &'a EntityId>) -> ServiceQueues {
    let ids: Vec<&EntityId> = ids.into_iter().collect();
    ServiceQueues { count: ids.len() as i64, hash: IdsHash::of(ids.iter().map(|id| &id.0[..])) }
}
