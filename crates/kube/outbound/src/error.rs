//! Why a call has no response, in the words of Go's client.

use super::redirect::RedirectError;
use super::{BackendError, ServiceError};
use rustls::client::VerifierBuilderError;
use rustls::pki_types::InvalidDnsNameError;

/// A call has no response.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No response came.
    #[error("{method} {url:?}: {reason}")]
    Exchange {
        /// The method as Go shows it.
        method: String,
        /// The URL.
        url: String,
        /// Why none came.
        reason: ExchangeError,
    },
    /// The response that came cannot be taken.
    #[error(transparent)]
    Response(#[from] ReadError),
}

/// No response came.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The time limit of the call is over.
    #[error("context deadline exceeded")]
    Timeout,
    /// Each response redirects elsewhere.
    #[error("stopped after {limit} redirects")]
    TooManyRedirects {
        /// How many redirects are followed.
        limit: usize,
    },
    /// A response redirects to where no call is made.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The request cannot be written.
    #[error(transparent)]
    BuildRequest(#[from] http::Error),
    /// The Service has no endpoint.
    #[error(transparent)]
    ResolveService(#[from] ServiceError),
    /// The in-process backend has no response.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The simulated pod takes no connections.
    #[error("dial tcp {ip}: connect: connection refused")]
    SimulatedPod {
        /// The address of the pod.
        ip: String,
    },
    /// There are no settings of TLS for the CA bundle.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// A certificate cannot have the name of the server.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The address takes no connection.
    #[error("dial tcp {address}: {reason}")]
    Dial {
        /// Host and port.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The host has no address.
    #[error("dial tcp: lookup {host}: no such host")]
    LookUp {
        /// The host.
        host: String,
    },
    /// The server is not trusted, or ends the handshake.
    #[error("{0}")]
    Handshake(String),
    /// The connection cannot be used for HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The connection broke before a response.
    #[error(transparent)]
    Broken(#[from] BrokenConnection),
}

/// A response that came cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is larger than the caller allows.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// The connection broke before its end.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Broken(BrokenConnection),
}

/// A connection broke.
#[derive(Debug, thiserror::Error)]
pub enum BrokenConnection {
    /// It was closed before a response.
    #[error("EOF")]
    Eof,
    /// It was closed in the middle.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// It was reset.
    #[error("read: connection reset by peer")]
    Reset,
    /// It brings no HTTP.
    #[error("net/http: HTTP/1.x transport connection broken: malformed HTTP response")]
    Malformed,
    /// It broke otherwise.
    #[error(transparent)]
    Http(hyper::Error),
}

/// There are no settings of TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// The authorities of a CA bundle cannot be used.
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    /// The library refuses the settings.
    #[error(transparent)]
    Config(#[from] rustls::Error),
}
