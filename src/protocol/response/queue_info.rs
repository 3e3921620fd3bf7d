//! `INFO`: the state of a queue, sent as JSON.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::time;

/// `INFO`, sent as JSON. Members that are not known are skipped when read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueInfo {
    /// The sender's key is set.
    #[serde(rename = "qiSnd")]
    pub secured: bool,
    /// Notifications are enabled.
    #[serde(rename = "qiNtf")]
    pub notifications: bool,
    /// The asking connection's subscription.
    #[serde(rename = "qiSub", default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<SubscriptionInfo>,
    /// Messages in the queue.
    #[serde(rename = "qiSize")]
    pub size: u64,
    /// The first message.
    #[serde(rename = "qiMsg", default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageInfo>,
}

/// State of a subscription in [`QueueInfo`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SubscriptionInfo {
    /// What kind.
    #[serde(rename = "qSubThread")]
    pub kind: SubscriptionKind,
    /// ID of the delivered, not acknowledged message, in standard base64 (not base64url).
    #[serde(rename = "qDelivered", default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<String>,
}

/// Kinds of subscription in [`SubscriptionInfo`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubscriptionKind {
    /// Waiting for messages.
    NoSub,
    /// A delivery waits for the outbound queue.
    SubPending,
    /// A delivery is being made.
    SubThread,
    /// Made by `GET`.
    ProhibitSub,
}

/// A message in [`QueueInfo`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageInfo {
    /// ID, in standard base64 (not base64url).
    #[serde(rename = "msgId")]
    pub id: String,
    /// When it was received.
    #[serde(rename = "msgTs")]
    pub timestamp: InfoTime,
    /// Whether it is the quota marker, not a message.
    #[serde(rename = "msgType", serialize_with = "write_kind", deserialize_with = "read_kind")]
    pub quota: bool,
}

/// A time in [`MessageInfo`], in JSON as `2023-11-14T22:13:20.123456Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InfoTime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

impl Serialize for InfoTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time::format(self.seconds, self.nanoseconds))
    }
}

impl<'de> Deserialize<'de> for InfoTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        time::parse(&text)
            .map(|(seconds, nanoseconds)| InfoTime { seconds, nanoseconds })
            .ok_or_else(|| D::Error::custom("not a time"))
    }
}

fn write_kind<S: Serializer>(quota: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *quota { "quota" } else { "message" })
}

fn read_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "message" => Ok(false),
        "quota" => Ok(true),
        _ => Err(D::Error::custom("not a kind of message")),
    }
}
