//! A connection to a relay: requests out, answers and events in.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::ClientError;
use super::request::Request;
use super::service::ServiceSession;
use crate::protocol::address::ServerAddress;
use crate::protocol::block::BatchWriter;
use crate::protocol::command::Command;
use crate::protocol::crypto::random_correlation_id;
use crate::protocol::handshake::ClientSession;
use crate::protocol::ids::{CorrelationId, EntityId};
use crate::protocol::response::Response;
use crate::protocol::transmission::{
    Authorization, ServerTransmission, ServiceSignature, TransmissionParams, decode_responses, encode_command,
};
use crate::protocol::version::Version;
use crate::transport::block_io::{BlockIo, Incoming};
use crate::transport::block_stream::{SecureStream, SmpStream};
use crate::transport::client::{ClientConnection, ConnectOptions, connect};
use crate::transport::tls::TlsStream;

/// Events that may wait to be taken; the connection fails with more. 255 messages of 16 KiB fit many times.
const MAX_EVENTS: usize = 4096;
/// How long a request waits for its answers, and a wait for its event, unless set otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// What a relay sent unasked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it is about.
    pub entity_id: EntityId,
    /// `MSG`, `END`, `DELD`, ..., or `ERR` when the relay could not read a block.
    pub response: Response,
}

/// One connection to a relay.
pub struct Client {
    stream: SmpStream<TlsStream>,
    session: ClientSession,
    /// The service that the client is.
    pub(super) service: Option<ServiceSession>,
    timeout: Duration,
    /// Commands that are not answered, with what they are about.
    asked: HashMap<CorrelationId, EntityId>,
    /// Answers that nobody has taken.
    answers: HashMap<CorrelationId, Response>,
    events: VecDeque<Event>,
}

impl Client {
    /// Connects to the relay at `address`.
    pub async fn connect(address: &ServerAddress, options: &ConnectOptions) -> Result<Self, ClientError> {
        Ok(Client::new(connect(address, options).await?, options))
    }

    /// A client over a connection that was made with these options.
    pub fn new(connection: ClientConnection, options: &ConnectOptions) -> Self {
        let service = connection.service_id.zip(options.service.clone());
        Client {
            stream: connection.stream,
            session: connection.session,
            service: service.map(|(id, credentials)| ServiceSession { id, credentials }),
            timeout: DEFAULT_TIMEOUT,
            asked: HashMap::new(),
            answers: HashMap::new(),
            events: VecDeque::new(),
        }
    }

    /// Waits this long for answers and events.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// What was agreed with the relay.
    pub fn session(&self) -> &ClientSession {
        &self.session
    }

    /// The agreed version.
    pub fn version(&self) -> Version {
        self.session.version
    }

    /// The service that the client is, if the agreed version has services of its role.
    pub fn service(&self) -> Option<&ServiceSession> {
        self.service.as_ref()
    }

    /// Sends a command and waits for its answer, which may be `ERR`.
    pub async fn request(&mut self, request: Request) -> Result<Response, ClientError> {
        let ids = self.submit(&[request]).await?;
        match ids.into_iter().next() {
            Some(id) => self.answer(&id).await,
            None => Err(ClientError::TooLarge),
        }
    }

    /// Sends commands in as few blocks as they fit in, and waits for the answers to all of them, in their order.
    pub async fn request_all(&mut self, requests: &[Request]) -> Result<Vec<Response>, ClientError> {
        let ids = self.submit(requests).await?;
        let mut answers = Vec::with_capacity(ids.len());
        for id in &ids {
            answers.push(self.answer(id).await?);
        }
        Ok(answers)
    }

    /// Sends commands in as few blocks as they fit in, without waiting for answers. Answers their correlation IDs.
    pub async fn submit(&mut self, requests: &[Request]) -> Result<Vec<CorrelationId>, ClientError> {
        let mut batch = BatchWriter::new();
        let mut ids = Vec::with_capacity(requests.len());
        for request in requests {
            let id = request.correlation_id.clone().unwrap_or_else(random_correlation_id);
            self.encode(request, &id, &mut batch)?;
            ids.push(id);
        }
        self.asked.extend(ids.iter().cloned().zip(requests.iter().map(|request| request.entity_id.clone())));
        for payload in batch.finish() {
            self.send_block(&payload).await?;
        }
        Ok(ids)
    }

    fn encode(&self, request: &Request, id: &CorrelationId, batch: &mut BatchWriter) -> Result<(), ClientError> {
        let mut failed = None;
        let mut authorize = |authorized: &[u8]| {
            self.authorize(request, authorized, id).unwrap_or_else(|error| {
                failed = Some(error);
                (Authorization::None, None)
            })
        };
        let params = self.params();
        let pushed =
            batch.push(|out| encode_command(&params, id, &request.entity_id, &request.command, &mut authorize, out));
        match failed {
            Some(error) => Err(error),
            None => pushed.map_err(|_| ClientError::TooLarge),
        }
    }

    fn authorize(
        &self,
        request: &Request,
        authorized: &[u8],
        id: &CorrelationId,
    ) -> Result<(Authorization, Option<ServiceSignature>), ClientError> {
        let Some(key) = &request.key else { return Ok((Authorization::None, None)) };
        let relay_key = self.session.server_key.as_ref();
        let signs = request.service_signs.unwrap_or_else(|| request.command.uses_service_signature());
        let Some(service) = self.service.as_ref().filter(|_| signs) else {
            return Ok((key.authorize(authorized, id, relay_key)?, None));
        };
        let authorization = key.authorize(&service.bound_to_service(authorized), id, relay_key)?;
        Ok((authorization, Some(service.sign(authorized)?)))
    }

    /// Waits for the answer to a command that was submitted.
    pub async fn answer(&mut self, id: &CorrelationId) -> Result<Response, ClientError> {
        self.within_timeout(async |client: &mut Client| {
            loop {
                if let Some(answer) = client.answers.remove(id) {
                    return Ok(answer);
                }
                if !client.asked.contains_key(id) {
                    return Err(ClientError::NotAsked("nothing"));
                }
                client.take_block().await?;
            }
        })
        .await
    }

    /// The next event, waiting for one.
    pub async fn event(&mut self) -> Result<Event, ClientError> {
        self.event_where(|_| true).await
    }

    /// The next event about this entity, waiting for one. Others stay.
    pub async fn event_about(&mut self, entity_id: &EntityId) -> Result<Event, ClientError> {
        self.event_where(|event| event.entity_id == *entity_id).await
    }

    async fn event_where(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Event, ClientError> {
        self.within_timeout(async |client: &mut Client| {
            loop {
                let found = client.events.iter().position(&wanted).and_then(|at| client.events.remove(at));
                if let Some(event) = found {
                    return Ok(event);
                }
                client.take_block().await?;
            }
        })
        .await
    }

    /// An event that has arrived already. Reads nothing.
    pub fn waiting_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether nothing comes for this long. What comes instead can be taken as an event or answer.
    pub async fn is_silent_for(&mut self, time: Duration) -> Result<bool, ClientError> {
        if !self.events.is_empty() {
            return Ok(false);
        }
        match tokio::time::timeout(time, self.take_block()).await {
            Ok(taken) => taken.map(|()| false),
            Err(_) => Ok(true),
        }
    }

    /// Sends `PING` and waits for `PONG`: everything that the relay sent before it has arrived then.
    pub async fn ping(&mut self) -> Result<(), ClientError> {
        match self.request(Request::plain(Command::Ping)).await? {
            Response::Pong => Ok(()),
            other => Err(ClientError::unexpected("PONG", other)),
        }
    }

    /// Sends a block with any payload. Answers to it are to be read with [`Client::receive`].
    pub async fn send_block(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        self.stream.start_write(payload)?;
        self.flush().await
    }

    /// Sends any bytes, at most a block's, inside TLS but without making a block of them.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.stream.stream_mut().write(bytes)?;
        self.flush().await
    }

    /// The transmissions of the next block, as they are: nothing is matched.
    pub async fn receive(&mut self) -> Result<Vec<ServerTransmission>, ClientError> {
        self.within_timeout(async |client: &mut Client| poll_fn(|cx| client.poll_transmissions(cx)).await).await
    }

    /// What transmissions look like in this session, to make some by hand.
    pub fn params(&self) -> TransmissionParams {
        self.session.transmission_params()
    }

    /// Says goodbye.
    pub fn close(mut self) {
        self.stream.close();
    }

    /// Waits until the relay closes. What it still sends is dropped.
    pub async fn closed(&mut self) -> Result<(), ClientError> {
        self.within_timeout(async |client: &mut Client| {
            loop {
                match client.stream.read().await {
                    Ok(Incoming::Closed) | Err(_) => return Ok(()),
                    Ok(_) => {}
                }
            }
        })
        .await
    }

    async fn within_timeout<T>(
        &mut self,
        wait: impl AsyncFnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let timeout = self.timeout;
        limit(timeout, wait(self)).await
    }

    /// Waits until the kernel has what was written. Reads meanwhile, or two full directions would wait for each other.
    async fn flush(&mut self) -> Result<(), ClientError> {
        let timeout = self.timeout;
        limit(timeout, poll_fn(|cx| self.poll_flush(cx))).await
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        loop {
            if let Poll::Ready(flushed) = self.stream.poll_write(cx, &mut false) {
                return Poll::Ready(flushed.map_err(ClientError::from));
            }
            match self.poll_transmissions(cx) {
                Poll::Ready(transmissions) => self.file(transmissions?)?,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads one block and sorts what is in it.
    async fn take_block(&mut self) -> Result<(), ClientError> {
        let transmissions = poll_fn(|cx| self.poll_transmissions(cx)).await?;
        self.file(transmissions)
    }

    fn poll_transmissions(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<ServerTransmission>, ClientError>> {
        self.stream.poll_read(cx).map(|incoming| match incoming? {
            Incoming::Payload(payload) => Ok(decode_responses(&self.params(), &payload)),
            Incoming::BadBlock => Err(ClientError::BadBlock),
            Incoming::Closed => Err(ClientError::Closed),
        })
    }

    fn file(&mut self, transmissions: Vec<ServerTransmission>) -> Result<(), ClientError> {
        for ServerTransmission { correlation_id, entity_id, response } in transmissions {
            let response = response.map_err(ClientError::Malformed)?;
            if correlation_id == CorrelationId::NONE {
                self.file_event(Event { entity_id, response })?;
            } else {
                self.file_answer(correlation_id, &entity_id, response)?;
            }
        }
        Ok(())
    }

    fn file_event(&mut self, event: Event) -> Result<(), ClientError> {
        if self.events.len() >= MAX_EVENTS {
            return Err(ClientError::TooManyEvents);
        }
        self.events.push_back(event);
        Ok(())
    }

    /// An answer repeats the entity ID of the command, unless the relay could not read that far.
    fn file_answer(&mut self, id: CorrelationId, entity_id: &EntityId, answer: Response) -> Result<(), ClientError> {
        let asked = self.asked.remove(&id).ok_or(ClientError::NotAsked(answer.name()))?;
        let unread = matches!(answer, Response::Err(_)) && entity_id.is_empty();
        if asked != *entity_id && !unread {
            return Err(ClientError::OtherEntity(answer.name()));
        }
        self.answers.insert(id, answer);
        Ok(())
    }
}

async fn limit<T>(timeout: Duration, wait: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    tokio::time::timeout(timeout, wait).await.unwrap_or(Err(ClientError::Timeout(timeout)))
}
