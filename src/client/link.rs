//! Short links (15+): data that a queue's owner publishes under a link ID.

use super::connection::Client;
use super::error::ClientError;
use super::request::Request;
use crate::protocol::command::{Command, LinkData};
use crate::protocol::crypto::PrivateAuthKey;
use crate::protocol::ids::EntityId;
use crate::protocol::response::Response;

/// Reads the data of a contact address (`LGET`): the sender's ID and the data.
pub async fn read_link(client: &mut Client, link_id: &EntityId) -> Result<(EntityId, LinkData), ClientError> {
    linked(client.request(Request::new(link_id.clone(), Command::Lget)).await?)
}

/// Secures the queue of an invitation with the sender's key and reads its data (`LKEY`).
pub async fn open_link(
    client: &mut Client,
    link_id: &EntityId,
    key: &PrivateAuthKey,
) -> Result<(EntityId, LinkData), ClientError> {
    let command = Command::Lkey(key.public_key()?);
    linked(client.request(Request::new(link_id.clone(), command).authorized_by(key)).await?)
}

fn linked(answer: Response) -> Result<(EntityId, LinkData), ClientError> {
    match answer {
        Response::Lnk(sender_id, data) => Ok((sender_id, data)),
        other => Err(ClientError::unexpected("LNK", other)),
    }
}
