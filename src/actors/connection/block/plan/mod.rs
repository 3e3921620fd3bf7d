//! From a verified command to its first step.

mod new;

use bytes::Bytes;

use super::step::{Look, Segment, Sending, Step, Then};
use super::verify::{is_contact, is_secured_messaging};
use crate::actors::connection::services::JobContext;
use crate::protocol::command::{Command, LinkData, MessageFlags, QueueMode};
use crate::protocol::crypto::random_message_id;
use crate::protocol::error::{BrokerError, CommandError, ErrorType, NameError, ProxyError, TransportErrorType};
use crate::protocol::handshake::ServiceRole;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::message::max_body_length;
use crate::protocol::response::Response;
use crate::protocol::transmission::ClientTransmission;
use crate::protocol::{EntityId, MessageId, QueueId};
use crate::store::op::SendMessage;
use crate::store::{Op, QueueRecord, QueueStatus};

/// Plans a command whose authorization was verified. `record` is there for every command that names a queue.
pub fn plan(
    cx: &JobContext,
    segment: &mut Segment,
    transmission: ClientTransmission,
    record: Option<QueueRecord>,
) -> Result<Step, ErrorType> {
    match transmission.command {
        Command::New(request) => new::plan(cx, &transmission.correlation_id, *request),
        Command::Ping => Ok(Step::answered(Response::Pong)),
        Command::Prxy(..) => Err(ErrorType::Proxy(ProxyError::BasicAuth)),
        Command::Pfwd(..) => Err(ErrorType::Proxy(ProxyError::NoSession)),
        Command::Rfwd(_) => {
            Err(ErrorType::Proxy(ProxyError::Broker(BrokerError::Transport(TransportErrorType::NoAuth))))
        }
        Command::Rslv(_) => Err(ErrorType::Name(NameError::NoResolver)),
        Command::Subs(expected) | Command::Nsubs(expected) => Ok(Step::SubscribeService { expected }),
        command => {
            let record = record.ok_or(ErrorType::Internal)?;
            plan_for_queue(cx, segment, command, record)
        }
    }
}

/// Most recipient keys of a queue. Each costs a verification of every command that none of them authorizes: with the 255
/// that a list can have, a block of commands would cost seconds.
const MAX_RECIPIENT_KEYS: usize = 16;

/// Plans a command of a queue. A blocked queue can only be suspended and deleted.
fn plan_for_queue(
    cx: &JobContext,
    segment: &mut Segment,
    command: Command,
    record: QueueRecord,
) -> Result<Step, ErrorType> {
    let queue = record.recipient_id;
    match command {
        Command::Off => return Ok(change(Op::SuspendQueue { queue }, Then::Ok)),
        Command::Del => {
            return Ok(change(Op::DeleteQueue { queue }, Then::Deleted { queue, service: record.recipient_service }));
        }
        Command::Send(flags, body) => return send(cx, &record, flags, body),
        _ => {}
    }
    if let QueueStatus::Blocked(info) = &record.status {
        return Err(ErrorType::Blocked(info.clone()));
    }
    match command {
        Command::Sub => Ok(subscribe(cx, &record)),
        Command::Get => Ok(Step::Get { queue }),
        Command::Ack(id) => acknowledge(cx, segment, &record, &id),
        Command::Que => Ok(Step::Info(Box::new(record))),
        Command::Key(key) => Ok(change(Op::SecureQueue { queue, key }, Then::Ok)),
        Command::Skey(key) => {
            in_mode(&record, QueueMode::Messaging).map(|()| change(Op::SecureQueue { queue, key }, Then::Ok))
        }
        Command::Rkey(keys) if keys.len() > MAX_RECIPIENT_KEYS => Err(ErrorType::Cmd(CommandError::Prohibited)),
        Command::Rkey(keys) => {
            in_mode(&record, QueueMode::Contact).map(|()| change(Op::SetRecipientKeys { queue, keys }, Then::Ok))
        }
        Command::Lkey(key) => {
            in_mode(&record, QueueMode::Messaging)?;
            let link_id = record.link_id.ok_or(ErrorType::Auth)?;
            let then = Then::Link { link_id, sender_id: record.sender_id };
            Ok(change(Op::SecureQueue { queue, key }, then))
        }
        Command::Lget => get_link(&record),
        Command::Lset(link_id, data) => set_link(&record, &link_id, data),
        Command::Ldel => Ok(match record.link_id {
            Some(_) => change(Op::DeleteLink { queue }, Then::Ok),
            None => Step::answered(Response::Ok),
        }),
        Command::Nkey(key, dh_key) => set_notifier(queue, key, &dh_key),
        Command::Ndel => Ok(change(Op::DeleteNotifier { queue }, Then::Ok)),
        Command::Nsub => subscribe_notifier(cx, &record),
        _ => Err(ErrorType::Cmd(CommandError::Prohibited)),
    }
}

/// A queue belongs to the service whose client subscribes to it, or to none.
fn subscribe(cx: &JobContext, record: &QueueRecord) -> Step {
    let (queue, service) = (record.recipient_id, cx.session.service_in(ServiceRole::Messaging));
    let answer = Response::Sok(service.map(|id| EntityId(id.into())));
    match record.recipient_service == service {
        true => Step::Subscribe { queue, answer, look: Look::Needed, joins: false },
        false => change(Op::AssociateRecipient { queue, service }, Then::Associated { queue, answer }),
    }
}

/// A notifier belongs to the service whose client subscribes to it, or to none.
fn subscribe_notifier(cx: &JobContext, record: &QueueRecord) -> Result<Step, ErrorType> {
    let own = record.notifier.as_ref().ok_or(ErrorType::Internal)?;
    let (queue, notifier, service) = (record.recipient_id, own.id, cx.session.service_in(ServiceRole::Notifier));
    let answer = Response::Sok(service.map(|id| EntityId(id.into())));
    Ok(match own.service == service {
        true => Step::SubscribeNotifier { notifier, answer, associated: false, was: own.service },
        false => {
            let op = Op::AssociateNotifier { queue, notifier, service };
            change(op, Then::NotifierAssociated { notifier, answer })
        }
    })
}

fn set_notifier(queue: QueueId, key: PublicAuthKey, dh_key: &PublicDhKey) -> Result<Step, ErrorType> {
    let (notifier, dh_key) = new::notifier(key, dh_key)?;
    let then = Then::Notifier { id: notifier.id, dh_key };
    Ok(change(Op::SetNotifier { queue, notifier: Box::new(notifier) }, then))
}

fn change(op: Op, then: Then) -> Step {
    Step::Change { op: Some(op), then }
}

fn in_mode(record: &QueueRecord, mode: QueueMode) -> Result<(), ErrorType> {
    if record.mode == Some(mode) { Ok(()) } else { Err(ErrorType::Auth) }
}

fn get_link(record: &QueueRecord) -> Result<Step, ErrorType> {
    match record.link_id {
        Some(link_id) if is_contact(record) => Ok(Step::Link { link_id, sender_id: record.sender_id }),
        _ => Err(ErrorType::Auth),
    }
}

/// The link ID can not be changed, and a secured messaging queue needs no link.
fn set_link(record: &QueueRecord, link_id: &EntityId, data: LinkData) -> Result<Step, ErrorType> {
    let link_id = required_id(link_id)?;
    if is_secured_messaging(record) || record.link_id.is_some_and(|set| set != link_id) {
        return Err(ErrorType::Auth);
    }
    Ok(change(Op::SetLink { queue: record.recipient_id, link_id, data }, Then::Ok))
}

/// An empty ID acknowledges whatever was delivered.
fn acknowledge(cx: &JobContext, segment: &mut Segment, record: &QueueRecord, id: &Bytes) -> Result<Step, ErrorType> {
    let queue = record.recipient_id;
    let id = match id.len() {
        0 => None,
        _ => Some(MessageId::from_slice(id).ok_or(ErrorType::NoMsg)?),
    };
    let mut core = cx.core.borrow_mut();
    let acknowledging = core.subscriptions.acknowledge(queue, id).ok_or(ErrorType::NoMsg)?;
    let op = Op::Acknowledge {
        queue,
        message: Some(acknowledging.message.id),
        with_next: !acknowledging.got && segment.may_answer_with_message(core.outbound.room()),
    };
    Ok(change(op, Then::Acknowledged { queue, acknowledging, dh_secret: record.dh_secret.clone() }))
}

fn send(cx: &JobContext, record: &QueueRecord, flags: MessageFlags, body: Bytes) -> Result<Step, ErrorType> {
    if body.len() > max_body_length(cx.session.params.version) {
        return Err(ErrorType::LargeMsg);
    }
    match &record.status {
        QueueStatus::Active => {}
        QueueStatus::Off => return Err(ErrorType::Auth),
        QueueStatus::Blocked(info) => return Err(ErrorType::Blocked(info.clone())),
    }
    let (queue, id, timestamp) = (record.recipient_id, random_message_id(), cx.services.clock.now());
    let settings = &cx.services.settings;
    let op = Op::Send(Box::new(SendMessage {
        queue,
        id,
        timestamp,
        flags,
        body: body.clone(),
        expire_before: settings.expire_on_send.then(|| settings.expire_before(timestamp)).flatten(),
        delete_link: record.link_id.is_some() && is_secured_messaging(record),
    }));
    let sending = Sending {
        queue,
        id,
        timestamp,
        flags,
        body,
        dh_secret: record.dh_secret.clone(),
        service: record.recipient_service,
    };
    Ok(change(op, Then::Sent(Box::new(sending))))
}

/// The queue that a client's ID names where only IDs made by servers and clients as specified are taken.
fn required_id(id: &EntityId) -> Result<QueueId, ErrorType> {
    id.queue().ok_or(ErrorType::Cmd(CommandError::Prohibited))
}
