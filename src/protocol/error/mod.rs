//! Errors as the protocol sends them. Spec: "Error responses".
//!
//! Texts in errors are diagnostics for the other side's operator: they must never carry secrets, IDs or addresses.

mod codec;

use serde::Deserialize;

/// `ERR`: why a command was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ErrorType {
    /// The block or transmission could not be read.
    Block,
    /// Another session's ID.
    Session,
    /// The command is unknown, malformed or not allowed.
    Cmd(CommandError),
    /// From a proxy.
    Proxy(ProxyError),
    /// Wrong authorization, or no such queue.
    Auth,
    /// The queue was blocked by the operator.
    Blocked(BlockingInfo),
    /// A service's signature is missing or not allowed.
    Service,
    /// A forwarded transmission could not be decrypted.
    Crypto,
    /// The queue is full.
    Quota,
    /// The store failed: diagnostic text without secrets.
    Store(String),
    /// `ACK` of a message that was not delivered.
    NoMsg,
    /// The message is larger than the version allows.
    LargeMsg,
    /// The relay's key has expired.
    Expired,
    /// The server failed.
    Internal,
    /// Name resolution failed.
    Name(NameError),
    /// Never sent by a server; read for compatibility.
    Duplicate,
}

/// `ERR CMD`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandError {
    /// No such command.
    Unknown,
    /// Malformed parameters.
    Syntax,
    /// Not allowed here.
    Prohibited,
    /// Authorization or entity ID missing.
    NoAuth,
    /// Authorization or entity ID where none belongs.
    HasAuth,
    /// Entity ID missing.
    NoEntity,
}

/// `ERR PROXY`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProxyError {
    /// The relay's own answer.
    Protocol(Box<ErrorType>),
    /// The relay could not be asked.
    Broker(BrokerError),
    /// Wrong password of the proxy, or it does not proxy.
    BasicAuth,
    /// No such session.
    NoSession,
}

/// `ERR PROXY BROKER`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BrokerError {
    /// The relay's answer could not be read.
    Response(String),
    /// Another answer than expected.
    Unexpected(String),
    /// Connecting failed. Sent without its detail.
    Network(NetworkError),
    /// No host of the address can be used.
    Host,
    /// Used by clients only.
    NoService,
    /// TLS or handshake.
    Transport(TransportErrorType),
    /// No answer in time.
    Timeout,
}

/// Detail of [`BrokerError::Network`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetworkError {
    /// TCP.
    Connect(String),
    /// TLS.
    Tls(String),
    /// Another certificate authority than the address names.
    UnknownCa,
    /// No detail.
    Failed,
    /// In time.
    Timeout,
    /// Subscribing.
    Subscribe(String),
}

/// Transport errors that are sent inside `ERR PROXY BROKER TRANSPORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransportErrorType {
    /// Malformed block.
    Block,
    /// No common version.
    Version,
    /// Too large to send.
    LargeMsg,
    /// TLS session ID differs.
    Session,
    /// The relay has no key to agree a secret with.
    NoAuth,
    /// Handshake.
    Handshake(HandshakeError),
}

/// Detail of [`TransportErrorType::Handshake`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HandshakeError {
    /// Malformed.
    Parse,
    /// Another identity than the address names.
    Identity,
    /// The session key's signature is wrong.
    BadAuth,
    /// The service is not accepted.
    BadService,
}

/// Why a queue was blocked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockingInfo {
    /// The reason.
    pub reason: BlockingReason,
    /// A notice to the client (18+).
    pub notice: Option<ClientNotice>,
}

/// What a client is told about a blocking, sent as JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct ClientNotice {
    /// For how many seconds the notice holds; for ever when absent.
    #[serde(default)]
    pub ttl: Option<i64>,
}

/// The reason of a blocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockingReason {
    /// Spam.
    Spam,
    /// Content.
    Content,
}

/// `ERR NAME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameError {
    /// Names are not resolved here.
    NoResolver,
    /// Not registered.
    NotFound,
    /// The resolver failed: diagnostic text.
    Resolver(String),
}
