//! Registry client errors.

use std::{fmt, io};
use tonic::{Code, Status};

/// The error of a request to a registry, in the words of Go's gRPC client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    code: &'static str,
    text: String,
    answered: bool,
}

impl RpcError {
    /// Whether the registry answered: it runs and refuses.
    pub const fn is_from_server(&self) -> bool {
        self.answered
    }

    /// Whether a timeout passed.
    pub fn is_timeout(&self) -> bool {
        self.code == "DeadlineExceeded" || self.text.ends_with(": i/o timeout\"")
    }

    /// The message, without the code.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn unavailable(text: String) -> Self {
        Self { code: "Unavailable", text, answered: false }
    }

    /// The connection to `what` failed.
    pub(super) fn dial(what: &str, why: &str) -> Self {
        Self::unavailable(format!(
            "connection error: desc = \"transport: Error while dialing: dial tcp{}{what}: {why}\"",
            if what.is_empty() { "" } else { " " },
        ))
    }

    /// The system refused a connection.
    pub(super) fn refused(to: &str, error: &io::Error) -> Self {
        Self::dial(to, &format!("connect: {}", errno(error)))
    }

    /// The other end does not speak the protocol.
    pub(super) fn handshake(error: &dyn std::error::Error) -> Self {
        Self::unavailable(format!(
            "connection error: desc = \"error reading server preface: {error}\""
        ))
    }

    /// The connection ended during a request.
    pub(super) fn ended() -> Self {
        Self::unavailable("error reading from server: EOF".to_owned())
    }

    /// A timeout passed.
    pub(super) fn timed_out() -> Self {
        let text = "context deadline exceeded".to_owned();
        Self { code: "DeadlineExceeded", text, answered: false }
    }

    /// The registry sent more than a plausible amount.
    pub(super) fn too_large(text: String) -> Self {
        Self { code: "ResourceExhausted", text, answered: true }
    }

    /// The status that the server sent.
    pub(super) fn from_status(status: &Status) -> Self {
        let text = status.message().to_owned();
        Self { code: name(status.code()), text, answered: true }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rpc error: code = {} desc = {}", self.code, self.text)
    }
}

impl std::error::Error for RpcError {}

/// The system's text for an error, without its number.
fn errno(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
