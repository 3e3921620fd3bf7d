//! Values built from the `fields` of vectors, without the decoders under test.

use serde_json::Value;

use super::vectors::{bytes, list, optional_bytes, text, unhex};
use crate::protocol::address::{NameDomain, ServerAddress};
use crate::protocol::certificate::CertificateChainKey;
use crate::protocol::command::{
    Command, IdsHash, LinkData, MessageFlags, NewNotifier, NewQueueRequest, QueueMode, QueueRequest, ServiceQueues,
};
use crate::protocol::ids::EntityId;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::response::{QueueIds, Response};
use crate::protocol::version::{Version, VersionRange};

fn entity(fields: &Value, key: &str) -> EntityId {
    EntityId(bytes(fields, key))
}

fn auth_key(fields: &Value, key: &str) -> PublicAuthKey {
    PublicAuthKey::from_der(&bytes(fields, key)).expect("a key")
}

fn dh_key(fields: &Value, key: &str) -> PublicDhKey {
    PublicDhKey::from_der(&bytes(fields, key)).expect("a key")
}

fn link_data(fields: &Value) -> LinkData {
    LinkData { fixed: bytes(fields, "fixed_data"), user: bytes(fields, "user_data") }
}

fn service_queues(fields: &Value) -> ServiceQueues {
    let hash = bytes(fields, "ids_hash");
    ServiceQueues { count: fields["count"].as_i64().expect("a count"), hash: IdsHash(hash[..].try_into().expect("16")) }
}

fn address(fields: &Value) -> ServerAddress {
    ServerAddress {
        hosts: list(fields, "hosts").iter().map(|host| host.as_str().expect("text").parse().expect("a host")).collect(),
        port: text(fields, "port").to_owned(),
        fingerprint: bytes(fields, "key_hash"),
    }
}

fn queue_request(queue: &Value) -> Option<QueueRequest> {
    let link = queue["sender_id"].is_string().then(|| (entity(queue, "sender_id"), link_data(queue)));
    match queue["mode"].as_str()? {
        "M" => Some(QueueRequest::Messaging(link)),
        _ => Some(QueueRequest::Contact(link.map(|link| (entity(queue, "link_id"), link)))),
    }
}

fn new_queue_request(fields: &Value) -> NewQueueRequest {
    let notifier = &fields["ntf_creds"];
    NewQueueRequest {
        recipient_key: auth_key(fields, "rcv_auth_key"),
        dh_key: dh_key(fields, "rcv_dh_key"),
        password: password(fields),
        subscribe: text(fields, "sub_mode") == "S",
        queue: queue_request(&fields["queue_req_data"]),
        notifier: notifier.is_object().then(|| NewNotifier {
            key: auth_key(notifier, "ntf_auth_key"),
            dh_key: dh_key(notifier, "rcv_ntf_dh_key"),
        }),
    }
}

fn password(fields: &Value) -> Option<bytes::Bytes> {
    fields["basic_auth"].as_str().map(|text| bytes::Bytes::copy_from_slice(text.as_bytes()))
}

pub fn command(name: &str, fields: &Value) -> Command {
    match name {
        "NEW" => Command::New(Box::new(new_queue_request(fields))),
        "SUB" => Command::Sub,
        "SUBS" => Command::Subs(service_queues(fields)),
        "KEY" => Command::Key(auth_key(fields, "sender_key")),
        "RKEY" => Command::Rkey(
            list(fields, "recipient_keys")
                .iter()
                .map(|key| PublicAuthKey::from_der(&unhex(key.as_str().expect("hex"))).expect("a key"))
                .collect(),
        ),
        "LSET" => Command::Lset(entity(fields, "link_id"), link_data(fields)),
        "LDEL" => Command::Ldel,
        "NKEY" => Command::Nkey(auth_key(fields, "ntf_auth_key"), dh_key(fields, "rcv_ntf_dh_key")),
        "NDEL" => Command::Ndel,
        "GET" => Command::Get,
        "ACK" => Command::Ack(bytes(fields, "msg_id")),
        "OFF" => Command::Off,
        "DEL" => Command::Del,
        "QUE" => Command::Que,
        "SKEY" => Command::Skey(auth_key(fields, "sender_key")),
        "SEND" => {
            let notification = fields["notification"].as_bool().expect("a flag");
            Command::Send(MessageFlags { notification }, bytes(fields, "body"))
        }
        "PING" => Command::Ping,
        "LKEY" => Command::Lkey(auth_key(fields, "sender_key")),
        "LGET" => Command::Lget,
        "NSUB" => Command::Nsub,
        "NSUBS" => Command::Nsubs(service_queues(fields)),
        "PRXY" => Command::Prxy(address(fields), password(fields)),
        "PFWD" => {
            let version = u16::try_from(fields["relay_version"].as_u64().expect("a version")).expect("a version");
            Command::Pfwd(Version(version), dh_key(fields, "client_key"), bytes(fields, "encrypted"))
        }
        "RFWD" => Command::Rfwd(bytes(fields, "encrypted")),
        "RSLV" => Command::Rslv(NameDomain::parse(text(fields, "name")).expect("a name")),
        _ => panic!("no such command: {name}"),
    }
}

/// The response, or `None` for those whose fields are not in the vectors (`ERR`, `INFO`, `RNAME`).
pub fn response(name: &str, fields: &Value) -> Option<Response> {
    Some(match name {
        "IDS" => Response::Ids(Box::new(queue_ids(fields))),
        "LNK" => Response::Lnk(entity(fields, "sender_id"), link_data(fields)),
        "SOK" => Response::Sok(optional_bytes(fields, "service_id").map(EntityId)),
        "SOKS" => Response::Soks(service_queues(fields)),
        "MSG" => Response::Msg { id: bytes(fields, "msg_id"), body: bytes(fields, "encrypted_body") },
        "ALLS" => Response::Alls,
        "NID" => Response::Nid(entity(fields, "notifier_id"), dh_key(fields, "rcv_ntf_public_dh_key")),
        "NMSG" => Response::Nmsg {
            nonce: bytes(fields, "nonce")[..].try_into().expect("24 bytes"),
            meta: bytes(fields, "encrypted_meta"),
        },
        "PKEY" => proxy_key(fields),
        "RRES" => Response::Rres(bytes(fields, "encrypted")),
        "PRES" => Response::Pres(bytes(fields, "encrypted")),
        "END" => Response::End,
        "ENDS" => Response::Ends(service_queues(fields)),
        "DELD" => Response::Deld,
        "OK" => Response::Ok,
        "PONG" => Response::Pong,
        "ERR" | "INFO" | "RNAME" => return None,
        _ => panic!("no such response: {name}"),
    })
}

fn queue_ids(fields: &Value) -> QueueIds {
    let notifier = &fields["ntf_creds"];
    QueueIds {
        recipient_id: entity(fields, "recipient_id"),
        sender_id: entity(fields, "sender_id"),
        dh_key: dh_key(fields, "rcv_public_dh_key"),
        mode: fields["queue_mode"]
            .as_str()
            .map(|mode| if mode == "M" { QueueMode::Messaging } else { QueueMode::Contact }),
        link_id: optional_bytes(fields, "link_id").map(EntityId),
        service_id: optional_bytes(fields, "service_id").map(EntityId),
        notifier: notifier
            .is_object()
            .then(|| (entity(notifier, "notifier_id"), dh_key(notifier, "rcv_ntf_public_dh_key"))),
    }
}

fn proxy_key(fields: &Value) -> Response {
    let version = |key: &str| Version(u16::try_from(fields[key].as_u64().expect("a version")).expect("a version"));
    let chain = list(fields, "cert_chain").iter().map(|der| unhex(der.as_str().expect("hex")).into()).collect();
    Response::Pkey(
        bytes(fields, "session_id"),
        VersionRange::new(version("version_min"), version("version_max")).expect("a range"),
        CertificateChainKey { chain, signed_key: bytes(fields, "signed_key") },
    )
}
