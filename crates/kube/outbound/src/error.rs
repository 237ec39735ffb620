//! Errors of outbound calls, with the texts of Go's client.

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
        /// The method as Go prints it.
        method: String,
        /// The URL.
        url: String,
        /// The reason.
        reason: ExchangeError,
    },
    /// The response cannot be read.
    #[error(transparent)]
    Response(#[from] ReadResponseError),
}

/// No response came.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The timeout of the call expired.
    #[error("context deadline exceeded")]
    Timeout,
    /// Too many responses are redirects.
    #[error("stopped after {limit} redirects")]
    TooManyRedirects {
        /// How many redirects are followed.
        limit: usize,
    },
    /// The target of a redirect is not valid.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The request cannot be built.
    #[error(transparent)]
    BuildRequest(#[from] http::Error),
    /// The Service has no endpoint.
    #[error(transparent)]
    ResolveService(#[from] ServiceError),
    /// The in-process backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The simulated pod refuses connections.
    #[error("dial tcp {ip}: connect: connection refused")]
    SimulatedPod {
        /// The address of the pod.
        ip: String,
    },
    /// The CA bundle gives no TLS configuration.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The name of the server is not valid in a certificate.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The address cannot be dialled.
    #[error("dial tcp {address}: {reason}")]
    Dial {
        /// Host and port.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The host has no address.
    #[error("dial tcp: lookup {host}: no such host")]
    LookUp {
        /// The host.
        host: String,
    },
    /// The TLS handshake failed, for instance because the server is not trusted.
    #[error("{0}")]
    Handshake(String),
    /// The connection cannot be used for HTTP.
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The connection broke before a response.
    #[error(transparent)]
    Broken(#[from] BrokenConnection),
}

/// A response cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadResponseError {
    /// The body is larger than the caller allows.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The connection broke before the end of the body.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Broken(BrokenConnection),
}

/// A connection broke.
#[derive(Debug, thiserror::Error)]
pub enum BrokenConnection {
    /// The server closed it before a response.
    #[error("EOF")]
    Eof,
    /// The server closed it within a response.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// The server reset it.
    #[error("read: connection reset by peer")]
    Reset,
    /// The response is not HTTP.
    #[error("net/http: HTTP/1.x transport connection broken: malformed HTTP response")]
    Malformed,
    /// Another error of HTTP.
    #[error(transparent)]
    Http(hyper::Error),
}

/// A TLS configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// The certificates of a CA bundle cannot be used.
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    /// The library refuses the configuration.
    #[error(transparent)]
    Config(#[from] rustls::Error),
}
