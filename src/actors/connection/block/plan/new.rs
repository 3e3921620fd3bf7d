//! `NEW`: planning a queue. Spec: "Create queue command".

use super::super::step::{Creation, Step, Then};
use super::required_id;
use crate::actors::connection::services::JobContext;
use crate::protocol::command::{LinkData, NewQueueRequest, QueueRequest};
use crate::protocol::crypto::{SecretDhKey, random_queue_id, sender_id_for};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::response::QueueIds;
use crate::protocol::{CorrelationId, EntityId, QueueId};
use crate::store::{DhSecret, NewQueue, Notifier, Op, QueueRecord, QueueStatus};

/// Plans the creation of a queue.
pub fn plan(cx: &JobContext, correlation_id: &CorrelationId, request: NewQueueRequest) -> Result<Step, ErrorType> {
    if !may_create(cx, &request) {
        return Err(ErrorType::Auth);
    }
    // What a service does not subscribe to at once would never be counted as subscribed.
    if cx.session.service.is_some() && !request.subscribe {
        return Err(ErrorType::Cmd(CommandError::Prohibited));
    }
    let creation = Box::new(create(cx, correlation_id, request)?);
    let op = Op::CreateQueue(Box::new(creation.queue.clone()));
    Ok(Step::Change { op: Some(op), then: Then::Created(creation) })
}

fn may_create(cx: &JobContext, request: &NewQueueRequest) -> bool {
    let settings = &cx.services.settings;
    let password = request.password.as_deref().unwrap_or_default();
    settings.new_queues && settings.create_password.as_ref().is_none_or(|set| set.matches(password))
}

fn create(cx: &JobContext, correlation_id: &CorrelationId, request: NewQueueRequest) -> Result<Creation, ErrorType> {
    let secret = SecretDhKey::generate();
    let dh_secret = agree(&secret, &request.dh_key)?;
    let notifier = request.notifier.map(|asked| notifier(asked.key, &asked.dh_key)).transpose()?;
    let mode = request.queue.as_ref().map(QueueRequest::mode);
    let ids = ChosenIds::of(request.queue, correlation_id)?;
    let recipient_id = random_queue_id();
    let record = QueueRecord {
        recipient_id,
        sender_id: ids.sender_id,
        recipient_keys: vec![request.recipient_key],
        dh_secret,
        sender_key: None,
        mode,
        status: QueueStatus::Active,
        link_id: ids.link.as_ref().map(|link| link.0),
        notifier: notifier.as_ref().map(|(notifier, _)| notifier.clone()),
        recipient_service: cx.session.service_in(ServiceRole::Messaging),
        updated_at: Some(cx.services.clock.today()),
    };
    let answer = QueueIds {
        recipient_id: recipient_id.into(),
        sender_id: ids.sender_id.into(),
        dh_key: secret.public_key(),
        mode,
        link_id: record.link_id.map(EntityId::from),
        service_id: record.recipient_service.map(|id| EntityId(id.into())),
        notifier: notifier.map(|(notifier, dh_key)| (notifier.id.into(), dh_key)),
    };
    let queue = NewQueue { record, link_data: ids.link.map(|link| link.1) };
    let mark = cx.services.registry.mark(&recipient_id);
    Ok(Creation { queue, ids: answer, subscribe: request.subscribe, ids_by_client: ids.by_client, mark })
}

/// A notifier with a new ID, and the server's half of its secret.
pub fn notifier(key: PublicAuthKey, dh_key: &PublicDhKey) -> Result<(Notifier, PublicDhKey), ErrorType> {
    let secret = SecretDhKey::generate();
    let shared = agree(&secret, dh_key)?;
    Ok((Notifier { id: random_queue_id(), key, dh_secret: shared, service: None }, secret.public_key()))
}

/// A key of small order agrees on nothing: whoever sends it has made a mistake, or wants to.
fn agree(secret: &SecretDhKey, dh_key: &PublicDhKey) -> Result<DhSecret, ErrorType> {
    let shared = secret.agree(dh_key).map_err(|_| ErrorType::Cmd(CommandError::Syntax))?;
    Ok(DhSecret(*shared.as_bytes()))
}

/// Sender and link ID of a new queue.
struct ChosenIds {
    sender_id: QueueId,
    link: Option<(QueueId, LinkData)>,
    by_client: bool,
}

impl ChosenIds {
    /// A client that sets link data also chooses the sender ID, which has to be the hash of the correlation ID: so it can
    /// not be used to ask whether a queue with some ID exists.
    fn of(request: Option<QueueRequest>, correlation_id: &CorrelationId) -> Result<Self, ErrorType> {
        let (sender, link) = match request {
            Some(QueueRequest::Messaging(Some((sender, data)))) => (sender, (random_queue_id(), data)),
            Some(QueueRequest::Contact(Some((link, (sender, data))))) => (sender, (required_id(&link)?, data)),
            _ => return Ok(ChosenIds { sender_id: random_queue_id(), link: None, by_client: false }),
        };
        let sender_id = sender_id_for(correlation_id);
        if sender.queue() != Some(sender_id) {
            return Err(ErrorType::Cmd(CommandError::Prohibited));
        }
        Ok(ChosenIds { sender_id, link: Some(link), by_client: true })
    }
}

impl Creation {
    /// Draws other IDs, after those drawn before were taken.
    pub fn redraw(&mut self) {
        let (recipient_id, sender_id) = (random_queue_id(), random_queue_id());
        self.queue.record.recipient_id = recipient_id;
        self.queue.record.sender_id = sender_id;
        self.ids.recipient_id = recipient_id.into();
        self.ids.sender_id = sender_id.into();
        if let (Some(notifier), Some(ids)) = (&mut self.queue.record.notifier, &mut self.ids.notifier) {
            notifier.id = random_queue_id();
            ids.0 = notifier.id.into();
        }
    }
}
