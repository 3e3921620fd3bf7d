//! Services that shake hands get their IDs from the store. Spec: "Service certificates".

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::connection::Services;
use crate::protocol::ServiceId;
use crate::protocol::crypto::random_service_id;
use crate::protocol::handshake::PeerService;
use crate::store::{Enrolled, ServiceRecord};
use crate::transport::accept::ServiceDirectory;

/// Keeps each service that shows a certificate for the first time, and finds it again.
pub struct Enrolment {
    services: Arc<Services>,
}

impl Enrolment {
    /// In the store of these services.
    pub fn new(services: &Arc<Services>) -> Arc<Self> {
        Arc::new(Enrolment { services: Arc::clone(services) })
    }

    async fn enrol(&self, service: &PeerService) -> Option<ServiceId> {
        let record = ServiceRecord {
            id: random_service_id(),
            role: service.role,
            certificate_chain: service.chain.clone(),
            certificate_hash: Bytes::copy_from_slice(&service.fingerprint.0),
            created_at: self.services.clock.today(),
        };
        let id = record.id;
        match self.services.store.enrol(record).await {
            Ok(Enrolled::New) => Some(id),
            Ok(Enrolled::Known(id)) => Some(id),
            Ok(Enrolled::OtherRole) => None,
            Err(failure) => {
                self.services.store_failures.report(&failure);
                None
            }
        }
    }
}

impl ServiceDirectory for Enrolment {
    fn enrol<'a>(&'a self, service: &'a PeerService) -> BoxFuture<'a, Option<ServiceId>> {
        Enrolment::enrol(self, service).boxed()
    }
}
