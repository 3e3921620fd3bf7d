//! Steps of a check: timed, printed, and explained when they fail.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use thiserror::Error;

use crate::client::ClientError;
use crate::protocol::error::ErrorType;

/// Why the check did not pass.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A step failed.
    #[error("{step}: {reason}")]
    Step {
        /// The step.
        step: &'static str,
        /// What was expected and what came.
        reason: String,
    },
    /// The report could not be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Why a step failed.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// The client says so.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's answer is not the right one.
    #[error("expected {expected}, got {got}")]
    Wrong {
        /// What is right.
        expected: &'static str,
        /// What came.
        got: String,
    },
}

impl Failure {
    pub(super) fn wrong(expected: &'static str, got: impl fmt::Display) -> Self {
        Failure::Wrong { expected, got: got.to_string() }
    }
}

/// Passes if the server refused with `ERR AUTH`.
pub(super) fn refused<T>(answer: Result<T, ClientError>) -> Result<(), Failure> {
    match answer {
        Err(ClientError::Refused(ErrorType::Auth)) => Ok(()),
        Err(error) => Err(Failure::wrong("ERR AUTH", error)),
        Ok(_) => Err(Failure::wrong("ERR AUTH", "success")),
    }
}

/// Passes if both are the same.
pub(super) fn same<T: PartialEq>(expected: &'static str, right: &T, got: &T) -> Result<(), Failure> {
    if right == got { Ok(()) } else { Err(Failure::wrong(expected, "something else")) }
}

/// Where steps are told.
pub(super) struct Report<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Report { out }
    }

    /// Runs a step and prints how it went.
    pub(super) async fn step<T>(
        &mut self,
        step: &'static str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, CheckError> {
        let start = Instant::now();
        let result = work.await;
        let time = start.elapsed().as_secs_f64() * 1000.0;
        match result {
            Ok(value) => {
                writeln!(self.out, "ok    {step}  {time:.1} ms")?;
                Ok(value)
            }
            Err(failure) => {
                writeln!(self.out, "FAIL  {step}  {time:.1} ms: {failure}")?;
                Err(CheckError::Step { step, reason: failure.to_string() })
            }
        }
    }

    /// Prints a line between the steps.
    pub(super) fn note(&mut self, note: impl fmt::Display) -> Result<(), CheckError> {
        Ok(writeln!(self.out, "      {note}")?)
    }
}
