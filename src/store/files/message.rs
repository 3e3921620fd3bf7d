//! The lines of messages: in a messages log with the recipient ID of the queue, in a journal without. Pure.

use bytes::Bytes;

use super::text::{Fields, LineError, Put, put_base64};
use crate::protocol::QueueId;
use crate::protocol::command::MessageFlags;
use crate::store::record::{Message, MessageContent};

/// The largest body of a message, in bytes.
pub const MAX_BODY_BYTES: usize = 16_088;

/// Reads a line of a messages log: `v3 QUEUE `, then as [`read`].
///
/// # Errors
/// What is wrong with it.
pub fn read_logged(line: &[u8]) -> Result<(QueueId, Message), LineError> {
    let mut fields = Fields::of(line);
    fields.expect(b"v3 ", "not a message of a known version")?;
    let queue = fields.queue_id()?;
    fields.space()?;
    Ok((queue, read_fields(fields)?))
}

/// Reads a line of a journal: `ID SECONDS flags=T BODY`, or `quota` after the time, or only the body, as older versions
/// wrote it.
///
/// # Errors
/// What is wrong with it.
pub fn read(line: &[u8]) -> Result<Message, LineError> {
    read_fields(Fields::of(line))
}

fn read_fields(mut fields: Fields<'_>) -> Result<Message, LineError> {
    let id = fields.message_id()?;
    let timestamp = fields.spaced(Fields::time)?;
    fields.space()?;
    let content = match fields.rest() {
        b"quota" => MessageContent::Quota,
        _ => read_content(fields)?,
    };
    Ok(Message { id, sequence: 0, timestamp, content })
}

/// Flags and body. A body is empty only behind flags: a line without either was cut.
fn read_content(mut fields: Fields<'_>) -> Result<MessageContent, LineError> {
    let mut flags = MessageFlags::default();
    match fields.take(b"flags=") {
        true => {
            flags.notification = fields.flag("a message's flags are neither T nor F")?;
            // Later flags are not known.
            fields.until(b" ");
            fields.space()?;
        }
        false if fields.rest().is_empty() => return Err(LineError("the body is missing")),
        false => {}
    }
    let body = fields.base64("a message's body is not in Base64")?;
    fields.end()?;
    if body.len() > MAX_BODY_BYTES {
        return Err(LineError("a message's body is too large"));
    }
    Ok(MessageContent::Sent { flags, body: Bytes::copy_from_slice(&body) })
}

/// Appends the line of a messages log, without its end.
pub fn write_logged(line: &mut Vec<u8>, queue: &QueueId, message: &Message) {
    line.extend_from_slice(b"v3 ");
    queue.put(line);
    line.push(b' ');
    write(line, message);
}

/// Appends the line of a journal, without its end.
pub fn write(line: &mut Vec<u8>, message: &Message) {
    message.id.put(line);
    line.push(b' ');
    message.timestamp.put(line);
    match &message.content {
        MessageContent::Quota => line.extend_from_slice(b" quota"),
        MessageContent::Sent { flags, body } => {
            line.extend_from_slice(if flags.notification { b" flags=T " } else { b" flags=F " });
            put_base64(line, body);
        }
    }
}
