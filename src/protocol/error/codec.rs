//! Errors to bytes and back: words separated by spaces.

use bytes::Bytes;

use super::{
    BlockingInfo, BlockingReason, BrokerError, ClientNotice, CommandError, ErrorType, HandshakeError, NameError,
    NetworkError, ProxyError, TransportErrorType,
};
use crate::protocol::encoding::{Decode, DecodeError, Encode, Reader, put_short_latin1};

/// How deep errors may be nested (`PROXY PROTOCOL PROXY PROTOCOL ..`). A relay's error about a relay is 2 deep; the limit
/// keeps a block of nested errors from using the stack.
const MAX_DEPTH: usize = 16;

/// Declares words that stand alone, in both directions.
macro_rules! words {
    ($type:ty { $($value:path = $word:literal),+ $(,)? } $(also { $($also:literal => $as:path),+ })?) => {
        impl Encode for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(match self { $($value => $word),+ });
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match reader.word() {
                    $($word => Ok($value),)+
                    $($($also => Ok($as),)+)?
                    _ => Err(DecodeError),
                }
            }
        }
    };
}

words!(CommandError {
    CommandError::Unknown = b"UNKNOWN",
    CommandError::Syntax = b"SYNTAX",
    CommandError::Prohibited = b"PROHIBITED",
    CommandError::NoAuth = b"NO_AUTH",
    CommandError::HasAuth = b"HAS_AUTH",
    CommandError::NoEntity = b"NO_ENTITY",
} also {
    // Servers of older versions say so.
    b"NO_QUEUE" => CommandError::NoEntity
});

words!(HandshakeError {
    HandshakeError::Parse = b"PARSE",
    HandshakeError::Identity = b"IDENTITY",
    HandshakeError::BadAuth = b"BAD_AUTH",
    HandshakeError::BadService = b"BAD_SERVICE",
});

impl Encode for ErrorType {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ErrorType::Block => out.extend_from_slice(b"BLOCK"),
            ErrorType::Session => out.extend_from_slice(b"SESSION"),
            ErrorType::Cmd(error) => put_nested(out, b"CMD ", error),
            ErrorType::Proxy(error) => put_nested(out, b"PROXY ", error),
            ErrorType::Auth => out.extend_from_slice(b"AUTH"),
            ErrorType::Blocked(info) => put_nested(out, b"BLOCKED ", info),
            ErrorType::Service => out.extend_from_slice(b"SERVICE"),
            ErrorType::Crypto => out.extend_from_slice(b"CRYPTO"),
            ErrorType::Quota => out.extend_from_slice(b"QUOTA"),
            ErrorType::Store(text) => put_text(out, b"STORE ", text),
            ErrorType::Expired => out.extend_from_slice(b"EXPIRED"),
            ErrorType::NoMsg => out.extend_from_slice(b"NO_MSG"),
            ErrorType::LargeMsg => out.extend_from_slice(b"LARGE_MSG"),
            ErrorType::Internal => out.extend_from_slice(b"INTERNAL"),
            ErrorType::Name(error) => put_nested(out, b"NAME ", error),
            ErrorType::Duplicate => out.extend_from_slice(b"DUPLICATE_"),
        }
    }
}

impl Decode for ErrorType {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        error_type(reader, MAX_DEPTH)
    }
}

fn error_type(reader: &mut Reader<'_>, depth: usize) -> Result<ErrorType, DecodeError> {
    match reader.word() {
        b"BLOCK" => Ok(ErrorType::Block),
        b"SESSION" => Ok(ErrorType::Session),
        b"CMD" => detail(reader).map(ErrorType::Cmd),
        b"PROXY" => reader.spaced(|reader| proxy_error(reader, depth)).map(ErrorType::Proxy),
        b"AUTH" => Ok(ErrorType::Auth),
        b"BLOCKED" => detail(reader).map(ErrorType::Blocked),
        b"SERVICE" => Ok(ErrorType::Service),
        b"CRYPTO" => Ok(ErrorType::Crypto),
        b"QUOTA" => Ok(ErrorType::Quota),
        b"STORE" => text(reader).map(ErrorType::Store),
        b"EXPIRED" => Ok(ErrorType::Expired),
        b"NO_MSG" => Ok(ErrorType::NoMsg),
        b"LARGE_MSG" => Ok(ErrorType::LargeMsg),
        b"INTERNAL" => Ok(ErrorType::Internal),
        b"NAME" => detail(reader).map(ErrorType::Name),
        b"DUPLICATE_" => Ok(ErrorType::Duplicate),
        _ => Err(DecodeError),
    }
}

impl Encode for ProxyError {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ProxyError::Protocol(error) => put_nested(out, b"PROTOCOL ", &**error),
            ProxyError::Broker(error) => put_nested(out, b"BROKER ", error),
            ProxyError::BasicAuth => out.extend_from_slice(b"BASIC_AUTH"),
            ProxyError::NoSession => out.extend_from_slice(b"NO_SESSION"),
        }
    }
}

impl Decode for ProxyError {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        proxy_error(reader, MAX_DEPTH)
    }
}

fn proxy_error(reader: &mut Reader<'_>, depth: usize) -> Result<ProxyError, DecodeError> {
    match reader.word() {
        b"PROTOCOL" => {
            let depth = depth.checked_sub(1).ok_or(DecodeError)?;
            reader.spaced(|reader| error_type(reader, depth)).map(|error| ProxyError::Protocol(Box::new(error)))
        }
        b"BROKER" => detail(reader).map(ProxyError::Broker),
        b"BASIC_AUTH" => Ok(ProxyError::BasicAuth),
        b"NO_SESSION" => Ok(ProxyError::NoSession),
        _ => Err(DecodeError),
    }
}

impl Encode for BrokerError {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            BrokerError::Response(text) => put_short_text(out, b"RESPONSE ", text),
            BrokerError::Unexpected(text) => put_short_text(out, b"UNEXPECTED ", text),
            // Released clients fail on a detail here, so it is never sent.
            BrokerError::Network(_) => out.extend_from_slice(b"NETWORK"),
            BrokerError::Host => out.extend_from_slice(b"HOST"),
            BrokerError::NoService => out.extend_from_slice(b"NO_SERVICE"),
            BrokerError::Transport(error) => put_nested(out, b"TRANSPORT ", error),
            BrokerError::Timeout => out.extend_from_slice(b"TIMEOUT"),
        }
    }
}

impl Decode for BrokerError {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.word() {
            b"RESPONSE" => short_text(reader).map(BrokerError::Response),
            b"UNEXPECTED" => short_text(reader).map(BrokerError::Unexpected),
            b"NETWORK" if reader.remaining() == 0 => Ok(BrokerError::Network(NetworkError::Failed)),
            b"NETWORK" => detail(reader).map(BrokerError::Network),
            b"HOST" => Ok(BrokerError::Host),
            b"NO_SERVICE" => Ok(BrokerError::NoService),
            b"TRANSPORT" => detail(reader).map(BrokerError::Transport),
            b"TIMEOUT" => Ok(BrokerError::Timeout),
            _ => Err(DecodeError),
        }
    }
}

impl Encode for NetworkError {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            NetworkError::Connect(text) => put_short_text(out, b"CONNECT ", text),
            NetworkError::Tls(text) => put_short_text(out, b"TLS ", text),
            NetworkError::UnknownCa => out.extend_from_slice(b"UNKNOWNCA"),
            NetworkError::Failed => out.extend_from_slice(b"FAILED"),
            NetworkError::Timeout => out.extend_from_slice(b"TIMEOUT"),
            NetworkError::Subscribe(text) => put_short_text(out, b"SUBSCRIBE ", text),
        }
    }
}

impl Decode for NetworkError {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.word() {
            b"CONNECT" => short_text(reader).map(NetworkError::Connect),
            b"TLS" => short_text(reader).map(NetworkError::Tls),
            b"UNKNOWNCA" => Ok(NetworkError::UnknownCa),
            b"FAILED" => Ok(NetworkError::Failed),
            b"TIMEOUT" => Ok(NetworkError::Timeout),
            b"SUBSCRIBE" => short_text(reader).map(NetworkError::Subscribe),
            _ => Err(DecodeError),
        }
    }
}

impl Encode for TransportErrorType {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            TransportErrorType::Block => out.extend_from_slice(b"BLOCK"),
            TransportErrorType::Version => out.extend_from_slice(b"VERSION"),
            TransportErrorType::LargeMsg => out.extend_from_slice(b"LARGE_MSG"),
            TransportErrorType::Session => out.extend_from_slice(b"SESSION"),
            TransportErrorType::NoAuth => out.extend_from_slice(b"NO_AUTH"),
            TransportErrorType::Handshake(error) => put_nested(out, b"HANDSHAKE ", error),
        }
    }
}

impl Decode for TransportErrorType {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.word() {
            b"BLOCK" => Ok(TransportErrorType::Block),
            b"VERSION" => Ok(TransportErrorType::Version),
            b"LARGE_MSG" => Ok(TransportErrorType::LargeMsg),
            b"SESSION" => Ok(TransportErrorType::Session),
            b"NO_AUTH" => Ok(TransportErrorType::NoAuth),
            b"HANDSHAKE" => detail(reader).map(TransportErrorType::Handshake),
            _ => Err(DecodeError),
        }
    }
}

impl Encode for NameError {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            NameError::NoResolver => out.extend_from_slice(b"NO_RESOLVER"),
            NameError::NotFound => out.extend_from_slice(b"NOT_FOUND"),
            NameError::Resolver(text) => put_text(out, b"RESOLVER ", text),
        }
    }
}

impl Decode for NameError {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.word() {
            b"NO_RESOLVER" => Ok(NameError::NoResolver),
            b"NOT_FOUND" => Ok(NameError::NotFound),
            b"RESOLVER" => text(reader).map(NameError::Resolver),
            _ => Err(DecodeError),
        }
    }
}

/// `reason=spam` or `reason=content`, then `,notice=` and JSON. The same text stands in store logs.
impl Encode for BlockingInfo {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.reason {
            BlockingReason::Spam => b"reason=spam",
            BlockingReason::Content => b"reason=content",
        });
        if let Some(notice) = self.notice {
            out.extend_from_slice(b",notice=");
            out.extend_from_slice(notice.to_json().as_bytes());
        }
    }
}

impl Decode for BlockingInfo {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.literal(b"reason=")?;
        let rest = reader.tail();
        let reasons = [(&b"spam"[..], BlockingReason::Spam), (b"content", BlockingReason::Content)];
        let (notice, reason) = reasons
            .into_iter()
            .find_map(|(word, reason)| rest.strip_prefix(word).map(|rest| (rest, reason)))
            .ok_or(DecodeError)?;
        let notice = match notice.strip_prefix(b",notice=") {
            Some(json) => Some(ClientNotice::from_json(json)?),
            None if notice.is_empty() => None,
            None => return Err(DecodeError),
        };
        Ok(BlockingInfo { reason, notice })
    }
}

impl ClientNotice {
    /// The notice as JSON text.
    pub fn to_json(self) -> String {
        self.ttl.map_or_else(|| String::from("{}"), |ttl| format!("{{\"ttl\":{ttl}}}"))
    }

    /// Reads JSON text; members that are not known are skipped.
    pub fn from_json(json: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(json).map_err(|_| DecodeError)
    }
}

impl BlockingInfo {
    /// Reads the whole of a text such as `reason=spam,notice={"ttl":3600}`.
    pub fn from_text(text: &str) -> Result<Self, DecodeError> {
        Self::decode_all(&Bytes::copy_from_slice(text.as_bytes()))
    }
}

fn put_nested(out: &mut Vec<u8>, word: &[u8], detail: &impl Encode) {
    out.extend_from_slice(word);
    detail.encode(out);
}

/// UTF-8 text up to the end of the transmission.
fn put_text(out: &mut Vec<u8>, word: &[u8], text: &str) {
    out.extend_from_slice(word);
    out.extend_from_slice(text.as_bytes());
}

fn put_short_text(out: &mut Vec<u8>, word: &[u8], text: &str) {
    out.extend_from_slice(word);
    put_short_latin1(out, text);
}

fn detail<T: Decode>(reader: &mut Reader<'_>) -> Result<T, DecodeError> {
    reader.spaced(Reader::get)
}

fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    reader.space()?;
    Ok(String::from_utf8_lossy(&reader.tail()).into_owned())
}

fn short_text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    reader.spaced(Reader::short_latin1)
}
