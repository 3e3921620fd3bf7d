//! Responses to bytes and back, in the form of each version.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::from_slice;

use super::{QueueIds, Response};
use crate::protocol::command::{IdsHash, QueueMode, ServiceQueues};
use crate::protocol::encoding::{DecodeError, Encode, Reader, put_bool, put_i64, put_optional, put_short};
use crate::protocol::error::{BlockingInfo, CommandError, ErrorType};
use crate::protocol::version::Version;

impl Response {
    /// Reads a response: `CMD UNKNOWN` for a name that is none, `CMD SYNTAX` for what does not fit the version.
    pub fn decode(version: Version, source: &Bytes) -> Result<Response, ErrorType> {
        let mut reader = Reader::new(source);
        let read = reader_of(reader.word()).ok_or(ErrorType::Cmd(CommandError::Unknown))?;
        read(version, &mut reader)
            .and_then(|response| reader.end().map(|()| response))
            .map_err(|_| ErrorType::Cmd(CommandError::Syntax))
    }

    /// Appends the response in the form of `version`: what that version does not know is replaced by what it does
    /// (`SOK` by `OK`, `DELD` by `END`, `BLOCKED` by `AUTH`) or left out.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        match self {
            Response::Sok(_) if version < Version::SERVICES => Response::Ok.encode(version, out),
            Response::Deld if version < Version::DELETED_EVENT => Response::End.encode(version, out),
            _ => {
                out.extend_from_slice(self.name().as_bytes());
                self.encode_parameters(version, out);
            }
        }
    }

    fn encode_parameters(&self, version: Version, out: &mut Vec<u8>) {
        let end_of_name = out.len();
        out.push(b' ');
        match self {
            Response::Ids(ids) => ids.encode(version, out),
            Response::Lnk(sender, data) => {
                sender.encode(out);
                data.encode(out);
            }
            Response::Sok(service) => put_optional(out, service.as_ref(), |out, id| id.encode(out)),
            Response::Soks(queues) | Response::Ends(queues) => put_service_queues(version, queues, out),
            Response::Msg { id, body } => {
                put_short(out, id);
                out.extend_from_slice(body);
            }
            Response::Nid(notifier, key) => {
                notifier.encode(out);
                key.encode(out);
            }
            Response::Nmsg { nonce, meta } => {
                out.extend_from_slice(nonce);
                put_short(out, meta);
            }
            Response::Pkey(session, versions, key) => {
                put_short(out, session);
                versions.encode(out);
                key.encode(out);
            }
            Response::Rres(bytes) | Response::Pres(bytes) | Response::Rname(bytes) => out.extend_from_slice(bytes),
            // Serialization of this structure has no way to fail; were it to, the client reports a syntax error.
            Response::Info(info) => out.extend_from_slice(&serde_json::to_vec(info).unwrap_or_default()),
            Response::Err(error) => put_error(version, error, out),
            Response::Alls | Response::End | Response::Deld | Response::Ok | Response::Pong => {
                out.truncate(end_of_name)
            }
        }
    }
}

/// An error at top level. Inside `PROXY PROTOCOL` it is passed on as the relay sent it.
fn put_error(version: Version, error: &ErrorType, out: &mut Vec<u8>) {
    match error {
        ErrorType::Blocked(_) if version < Version::BLOCKED_ENTITY => ErrorType::Auth.encode(out),
        ErrorType::Blocked(info) if version < Version::CLIENT_NOTICES => {
            ErrorType::Blocked(BlockingInfo { notice: None, ..info.clone() }).encode(out);
        }
        _ => error.encode(out),
    }
}

type ReadParameters = fn(Version, &mut Reader<'_>) -> Result<Response, DecodeError>;

/// How the parameters of the response of this name are read; the reader stands before the space.
fn reader_of(name: &[u8]) -> Option<ReadParameters> {
    let read: ReadParameters = match name {
        b"IDS" => |v, r| r.spaced(|r| QueueIds::decode(v, r)).map(|ids| Response::Ids(Box::new(ids))),
        b"LNK" => |_, r| r.spaced(|r| Ok(Response::Lnk(r.get()?, r.get()?))),
        b"SOK" => |_, r| r.spaced(|r| r.optional(Reader::get)).map(Response::Sok),
        b"SOKS" => |v, r| r.spaced(|r| service_queues(v, r)).map(Response::Soks),
        b"MSG" => |_, r| r.spaced(|r| Ok(Response::Msg { id: r.short()?, body: r.tail() })),
        b"ALLS" => |_, _| Ok(Response::Alls),
        b"NID" => |_, r| r.spaced(|r| Ok(Response::Nid(r.get()?, r.get()?))),
        b"NMSG" => |_, r| r.spaced(|r| Ok(Response::Nmsg { nonce: r.array()?, meta: r.short()? })),
        b"PKEY" => |_, r| r.spaced(|r| Ok(Response::Pkey(r.short()?, r.get()?, r.get()?))),
        b"RRES" => |_, r| r.spaced(|r| Ok(Response::Rres(r.tail()))),
        b"PRES" => |_, r| r.spaced(|r| Ok(Response::Pres(r.tail()))),
        b"END" => |_, _| Ok(Response::End),
        b"ENDS" => |v, r| r.spaced(|r| service_queues(v, r)).map(Response::Ends),
        b"DELD" => |_, _| Ok(Response::Deld),
        b"INFO" => |_, r| r.spaced(|r| from_slice(&r.tail()).map(Response::Info).map_err(|_| DecodeError)),
        b"OK" => |_, _| Ok(Response::Ok),
        b"ERR" => |_, r| r.spaced(Reader::get).map(Response::Err),
        b"PONG" => |_, _| Ok(Response::Pong),
        b"RNAME" => |_, r| r.spaced(json_object).map(Response::Rname),
        _ => return None,
    };
    Some(read)
}

/// JSON that is passed on unread, checked to be an object.
fn json_object(reader: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
    let json = reader.tail();
    let text = std::str::from_utf8(&json).map_err(|_| DecodeError)?;
    let valid = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if valid { Ok(json) } else { Err(DecodeError) }
}

impl QueueIds {
    fn encode(&self, version: Version, out: &mut Vec<u8>) {
        self.recipient_id.encode(out);
        self.sender_id.encode(out);
        self.dh_key.encode(out);
        if version >= Version::SHORT_LINKS {
            put_optional(out, self.mode, |out, mode| mode.encode(out));
            put_optional(out, self.link_id.as_ref(), |out, id| id.encode(out));
        } else if version >= Version::SENDER_SECURES {
            put_bool(out, self.mode == Some(QueueMode::Messaging));
        }
        if version >= Version::SERVICES {
            put_optional(out, self.service_id.as_ref(), |out, id| id.encode(out));
        }
        if version >= Version::NOTIFIER_IN_NEW {
            put_optional(out, self.notifier.as_ref(), |out, (id, key)| {
                id.encode(out);
                key.encode(out);
            });
        }
    }

    fn decode(version: Version, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let optional_id = |reader: &mut Reader<'_>, since| {
            if version >= since { reader.optional(Reader::get) } else { Ok(None) }
        };
        Ok(QueueIds {
            recipient_id: reader.get()?,
            sender_id: reader.get()?,
            dh_key: reader.get()?,
            mode: queue_mode(version, reader)?,
            link_id: optional_id(reader, Version::SHORT_LINKS)?,
            service_id: optional_id(reader, Version::SERVICES)?,
            notifier: if version >= Version::NOTIFIER_IN_NEW {
                reader.optional(|reader| Ok((reader.get()?, reader.get()?)))?
            } else {
                None
            },
        })
    }
}

fn queue_mode(version: Version, reader: &mut Reader<'_>) -> Result<Option<QueueMode>, DecodeError> {
    if version >= Version::SHORT_LINKS {
        return reader.optional(Reader::get);
    }
    if version < Version::SENDER_SECURES {
        return Ok(None);
    }
    let sender_can_secure = reader.bool()?;
    Ok(Some(if sender_can_secure { QueueMode::Messaging } else { QueueMode::Contact }))
}

fn put_service_queues(version: Version, queues: &ServiceQueues, out: &mut Vec<u8>) {
    if version >= Version::SERVICE_HASHES { queues.encode(out) } else { put_i64(out, queues.count) }
}

fn service_queues(version: Version, reader: &mut Reader<'_>) -> Result<ServiceQueues, DecodeError> {
    if version >= Version::SERVICE_HASHES {
        return reader.get();
    }
    Ok(ServiceQueues { count: reader.i64()?, hash: IdsHash::default() })
}
