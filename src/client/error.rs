//! What can go wrong with a relay.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::protocol::crypto::CryptoError;
use crate::protocol::encoding::Encode;
use crate::protocol::error::ErrorType;
use crate::protocol::response::Response;
use crate::transport::client::ConnectError;

/// Why the client could not do what it was asked.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The relay closed the connection.
    #[error("the relay closed the connection")]
    Closed,
    /// A block did not decrypt.
    #[error("a block of the relay does not decrypt")]
    BadBlock,
    /// A transmission of the relay is malformed.
    #[error("the relay sent a malformed transmission: {0:?}")]
    Malformed(ErrorType),
    /// An answer to a command that was not sent, or was answered before.
    #[error("the relay answered what was not asked ({0})")]
    NotAsked(&'static str),
    /// An answer about another entity than the command's.
    #[error("the relay answered about another entity ({0})")]
    OtherEntity(&'static str),
    /// More events are waiting than the client holds.
    #[error("too many events wait to be taken")]
    TooManyEvents,
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The command does not fit in a block.
    #[error("the command does not fit in a block")]
    TooLarge,
    /// The command was refused.
    #[error("the relay answered ERR {}", in_words(.0))]
    Refused(ErrorType),
    /// The answer is not one of those that the command can have.
    #[error("expected {expected}, got {got}")]
    Unexpected {
        /// The right answers.
        expected: &'static str,
        /// The name of the answer that came.
        got: &'static str,
    },
    /// A key is of no use, or a signature could not be made.
    #[error("cryptography: {0}")]
    Crypto(#[from] CryptoError),
    /// What was delivered has not the size, the encryption or the form of a message.
    #[error("a delivered message {0}")]
    BadMessage(&'static str),
    /// What was delivered to the notifier does not decrypt to a message's metadata.
    #[error("a notification does not decrypt")]
    BadNotification,
    /// Only a service can do this.
    #[error("the client is not a service")]
    NoService,
}

impl ClientError {
    /// The error for an answer that is none of `expected`.
    pub(super) fn unexpected(expected: &'static str, got: Response) -> Self {
        match got {
            Response::Err(error) => ClientError::Refused(error),
            other => ClientError::Unexpected { expected, got: other.name() },
        }
    }
}

/// An error as the protocol writes it, and what to do about the commonest.
fn in_words(error: &ErrorType) -> String {
    let mut bytes = Vec::new();
    error.encode(&mut bytes);
    let written = String::from_utf8_lossy(&bytes).into_owned();
    match error {
        ErrorType::Auth => {
            format!("{written} (to NEW: a password is missing or wrong in the address, or no queues may be created)")
        }
        _ => written,
    }
}
