//! Commands to bytes and back, in the form of each version.

use bytes::Bytes;

use super::{
    Command, IdsHash, LinkData, MessageFlags, NewNotifier, NewQueueRequest, QueueMode, QueueRequest, ServiceQueues,
};
use crate::protocol::address::basic_auth;
use crate::protocol::encoding::{
    Decode, DecodeError, Encode, Reader, put_bool, put_i64, put_large, put_list, put_optional, put_short,
};
use crate::protocol::error::{CommandError, ErrorType};
use crate::protocol::version::Version;

impl Encode for MessageFlags {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bool(out, self.notification);
    }
}

/// Flags up to the next space, of which only the first is known.
impl Decode for MessageFlags {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let notification = reader.bool()?;
        reader.word();
        Ok(MessageFlags { notification })
    }
}

impl Command {
    /// Reads a command: `CMD UNKNOWN` for a name that is none, `CMD SYNTAX` for parameters that do not fit the version.
    ///
    /// Names are known in all versions, as in the reference; only parameters depend on the version.
    pub fn decode(version: Version, source: &Bytes) -> Result<Command, ErrorType> {
        let mut reader = Reader::new(source);
        let read = reader_of(reader.word()).ok_or(ErrorType::Cmd(CommandError::Unknown))?;
        read(version, &mut reader)
            .and_then(|command| reader.end().map(|()| command))
            .map_err(|_| ErrorType::Cmd(CommandError::Syntax))
    }

    /// Appends the command in the form of `version`. What that version can not carry is left out.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name().as_bytes());
        let end_of_name = out.len();
        out.push(b' ');
        match self {
            Command::Sub
            | Command::Ldel
            | Command::Ndel
            | Command::Get
            | Command::Off
            | Command::Del
            | Command::Que
            | Command::Ping
            | Command::Lget
            | Command::Nsub => out.truncate(end_of_name),
            Command::Subs(_) | Command::Nsubs(_) if version < Version::SERVICE_HASHES => out.truncate(end_of_name),
            Command::New(request) => request.encode(version, out),
            Command::Subs(queues) | Command::Nsubs(queues) => queues.encode(out),
            Command::Key(key) | Command::Skey(key) | Command::Lkey(key) => key.encode(out),
            Command::Rkey(keys) => put_list(out, keys, |out, key| key.encode(out)),
            Command::Lset(link, data) => {
                link.encode(out);
                data.encode(out);
            }
            Command::Nkey(key, dh_key) => {
                key.encode(out);
                dh_key.encode(out);
            }
            Command::Ack(id) => put_short(out, id),
            Command::Send(flags, body) => {
                flags.encode(out);
                out.push(b' ');
                out.extend_from_slice(body);
            }
            Command::Prxy(address, password) => {
                address.encode(out);
                put_optional(out, password.as_ref(), |out, password| put_short(out, password));
            }
            Command::Pfwd(version, key, transmission) => {
                version.encode(out);
                key.encode(out);
                out.extend_from_slice(transmission);
            }
            Command::Rfwd(transmission) => out.extend_from_slice(transmission),
            Command::Rslv(name) => out.extend_from_slice(name.as_str().as_bytes()),
        }
    }
}

type ReadParameters = fn(Version, &mut Reader<'_>) -> Result<Command, DecodeError>;

/// How the parameters of the command of this name are read; the reader stands before the space.
fn reader_of(name: &[u8]) -> Option<ReadParameters> {
    let read: ReadParameters = match name {
        b"NEW" => |v, r| r.spaced(|r| NewQueueRequest::decode(v, r)).map(|request| Command::New(Box::new(request))),
        b"SUB" => |_, _| Ok(Command::Sub),
        b"SUBS" => |v, r| service_queues(v, r).map(Command::Subs),
        b"KEY" => |_, r| r.spaced(Reader::get).map(Command::Key),
        b"RKEY" => |_, r| r.spaced(|r| r.list(Reader::get)).map(Command::Rkey),
        b"LSET" => |_, r| r.spaced(|r| Ok(Command::Lset(r.get()?, r.get()?))),
        b"LDEL" => |_, _| Ok(Command::Ldel),
        b"NKEY" => |_, r| r.spaced(|r| Ok(Command::Nkey(r.get()?, r.get()?))),
        b"NDEL" => |_, _| Ok(Command::Ndel),
        b"GET" => |_, _| Ok(Command::Get),
        b"ACK" => |_, r| r.spaced(Reader::short).map(Command::Ack),
        b"OFF" => |_, _| Ok(Command::Off),
        b"DEL" => |_, _| Ok(Command::Del),
        b"QUE" => |_, _| Ok(Command::Que),
        b"SKEY" => |_, r| r.spaced(Reader::get).map(Command::Skey),
        b"SEND" => |_, r| r.spaced(send),
        b"PING" => |_, _| Ok(Command::Ping),
        b"LKEY" => |_, r| r.spaced(Reader::get).map(Command::Lkey),
        b"LGET" => |_, _| Ok(Command::Lget),
        b"NSUB" => |_, _| Ok(Command::Nsub),
        b"NSUBS" => |v, r| service_queues(v, r).map(Command::Nsubs),
        b"PRXY" => |_, r| r.spaced(|r| Ok(Command::Prxy(r.get()?, r.optional(basic_auth)?))),
        b"PFWD" => |_, r| r.spaced(|r| Ok(Command::Pfwd(r.get()?, r.get()?, r.tail()))),
        b"RFWD" => |_, r| r.spaced(|r| Ok(Command::Rfwd(r.tail()))),
        b"RSLV" => |_, r| r.spaced(resolve),
        _ => return None,
    };
    Some(read)
}

/// Flags up to the next space, of which only the first is known; all that follows is the body.
fn send(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    let flags = reader.get()?;
    reader.space()?;
    Ok(Command::Send(flags, reader.tail()))
}

/// A name; what follows it is left for parameters of later versions.
fn resolve(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    let name = reader.get()?;
    reader.tail();
    Ok(Command::Rslv(name))
}

fn service_queues(version: Version, reader: &mut Reader<'_>) -> Result<ServiceQueues, DecodeError> {
    if version < Version::SERVICE_HASHES {
        return Ok(ServiceQueues { count: -1, hash: IdsHash::default() });
    }
    reader.spaced(Reader::get)
}

impl NewQueueRequest {
    fn encode(&self, version: Version, out: &mut Vec<u8>) {
        self.recipient_key.encode(out);
        self.dh_key.encode(out);
        if version >= Version::SENDER_SECURES {
            put_optional(out, self.password.as_ref(), |out, password| put_short(out, password));
        } else if let Some(password) = &self.password {
            out.push(b'A');
            put_short(out, password);
        }
        out.push(if self.subscribe { b'S' } else { b'C' });
        if version >= Version::SHORT_LINKS {
            put_optional(out, self.queue.as_ref(), |out, queue| queue.encode(out));
        } else if version >= Version::SENDER_SECURES {
            put_bool(out, matches!(self.queue, Some(QueueRequest::Messaging(_))));
        }
        if version >= Version::NOTIFIER_IN_NEW {
            put_optional(out, self.notifier.as_ref(), |out, notifier| notifier.encode(out));
        }
    }

    fn decode(version: Version, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(NewQueueRequest {
            recipient_key: reader.get()?,
            dh_key: reader.get()?,
            password: password(version, reader)?,
            subscribe: subscription_mode(reader)?,
            queue: queue_request(version, reader)?,
            notifier: if version >= Version::NOTIFIER_IN_NEW { reader.optional(Reader::get)? } else { None },
        })
    }
}

fn password(version: Version, reader: &mut Reader<'_>) -> Result<Option<Bytes>, DecodeError> {
    if version >= Version::SENDER_SECURES {
        return reader.optional(basic_auth);
    }
    if reader.rest().first() != Some(&b'A') {
        return Ok(None);
    }
    reader.u8()?;
    basic_auth(reader).map(Some)
}

fn subscription_mode(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match reader.u8()? {
        b'S' => Ok(true),
        b'C' => Ok(false),
        _ => Err(DecodeError),
    }
}

fn queue_request(version: Version, reader: &mut Reader<'_>) -> Result<Option<QueueRequest>, DecodeError> {
    if version >= Version::SHORT_LINKS {
        return reader.optional(Reader::get);
    }
    if version < Version::SENDER_SECURES {
        return Ok(None);
    }
    let sender_can_secure = reader.bool()?;
    Ok(Some(if sender_can_secure { QueueRequest::Messaging(None) } else { QueueRequest::Contact(None) }))
}

impl Encode for QueueRequest {
    fn encode(&self, out: &mut Vec<u8>) {
        self.mode().encode(out);
        match self {
            QueueRequest::Messaging(link) => put_optional(out, link.as_ref(), |out, (sender, data)| {
                sender.encode(out);
                data.encode(out);
            }),
            QueueRequest::Contact(link) => put_optional(out, link.as_ref(), |out, (link, (sender, data))| {
                link.encode(out);
                sender.encode(out);
                data.encode(out);
            }),
        }
    }
}

impl Decode for QueueRequest {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.get()? {
            QueueMode::Messaging => QueueRequest::Messaging(reader.optional(|r| Ok((r.get()?, r.get()?)))?),
            QueueMode::Contact => QueueRequest::Contact(reader.optional(|r| Ok((r.get()?, (r.get()?, r.get()?))))?),
        })
    }
}

impl Encode for QueueMode {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            QueueMode::Messaging => b'M',
            QueueMode::Contact => b'C',
        });
    }
}

impl Decode for QueueMode {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            b'M' => Ok(QueueMode::Messaging),
            b'C' => Ok(QueueMode::Contact),
            _ => Err(DecodeError),
        }
    }
}

impl Encode for LinkData {
    fn encode(&self, out: &mut Vec<u8>) {
        put_large(out, &self.fixed);
        put_large(out, &self.user);
    }
}

impl Decode for LinkData {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(LinkData { fixed: reader.large()?, user: reader.large()? })
    }
}

impl Encode for NewNotifier {
    fn encode(&self, out: &mut Vec<u8>) {
        self.key.encode(out);
        self.dh_key.encode(out);
    }
}

impl Decode for NewNotifier {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(NewNotifier { key: reader.get()?, dh_key: reader.get()? })
    }
}

/// The form of version 19 and later.
impl Encode for ServiceQueues {
    fn encode(&self, out: &mut Vec<u8>) {
        put_i64(out, self.count);
        put_short(out, &self.hash.0);
    }
}

impl Decode for ServiceQueues {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.i64()?;
        let bytes = reader.short_slice()?;
        let mut hash = IdsHash::default();
        // The length on the wire is free: only the common part counts.
        hash.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(ServiceQueues { count, hash })
    }
}
