//! Errors of requests to aggregated API servers, with the texts of Go's client.

use http::header::InvalidHeaderValue;
use mainstay_outbound::ServiceError;
use mainstay_outbound::dial::dial_error_text;
use rustls::client::VerifierBuilderError;
use rustls::pki_types::InvalidDnsNameError;
use std::io;

/// A request did not reach an aggregated server, or its response did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The Service is of type `ExternalName`.
    #[error("unsupported service type \"ExternalName\"")]
    ExternalName,
    /// The Service does not exist or has no endpoint.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The endpoint is a simulated pod that refuses connections.
    #[error("dial tcp {ip}:{port}: connect: connection refused")]
    SilentPod {
        /// The address of the pod.
        ip: String,
        /// The port.
        port: u16,
    },
    /// The in-process handler was removed.
    #[error("no endpoint")]
    NoEndpoint,
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// An HTTP header cannot carry the identity of the client.
    #[error("net/http: invalid header field {part} for {name:?}")]
    Header {
        /// The invalid part: `value` or `name`.
        part: &'static str,
        /// The name of the header.
        name: String,
    },
    /// The endpoint is no valid `Host` header.
    #[error(transparent)]
    Authority(#[from] InvalidHeaderValue),
    /// The CA bundle of the `APIService` is invalid.
    #[error(transparent)]
    Trust(#[from] VerifierBuilderError),
    /// The client certificate of the front proxy is invalid.
    #[error(transparent)]
    Settings(#[from] rustls::Error),
    /// The connection failed.
    #[error("dial tcp {authority}: {}", dial_error_text(source).unwrap_or_else(|| format!("connect: {source}")))]
    Dial {
        /// The endpoint.
        authority: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection timed out.
    #[error("dial tcp {authority}: i/o timeout")]
    DialTimeout {
        /// The endpoint.
        authority: String,
    },
    /// The Service has a name that no certificate can have.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The TLS handshake failed.
    #[error("tls: {0}")]
    Tls(io::Error),
    /// The endpoint does not speak HTTP.
    #[error(transparent)]
    Handshake(hyper::Error),
    /// The response did not arrive.
    #[error("{}", exchange(.0))]
    Exchange(hyper::Error),
    /// The server switched protocols without a request to do so.
    #[error("the server switched protocols without a request")]
    Upgraded,
    /// The response is too long.
    #[error("the answer has more than {limit} bytes")]
    TooLong {
        /// Maximum bytes of a response.
        limit: usize,
    },
    /// The response timed out.
    #[error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    Timeout,
}

fn exchange(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}
