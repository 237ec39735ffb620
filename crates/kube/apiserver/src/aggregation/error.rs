//! Why an aggregated server has no answer, in the words of Go's client.

use http::header::InvalidHeaderValue;
use mainstay_outbound::ServiceError;
use mainstay_outbound::dial::dial_error_text;
use rustls::client::VerifierBuilderError;
use rustls::pki_types::InvalidDnsNameError;
use std::io;

/// A request does not get to an aggregated server, or its answer does not come back.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The Service leads out of the cluster.
    #[error("unsupported service type \"ExternalName\"")]
    ExternalName,
    /// The Service leads nowhere.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The endpoint is a simulated pod that does not answer.
    #[error("dial tcp {ip}:{port}: connect: connection refused")]
    SilentPod {
        /// The address of the pod.
        ip: String,
        /// The port.
        port: u16,
    },
    /// The handler of this process is gone.
    #[error("no endpoint")]
    NoEndpoint,
    /// The request cannot be made.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// A header cannot carry for whom the request is.
    #[error("net/http: invalid header field {part} for {name:?}")]
    Header {
        /// Its value or its name.
        part: &'static str,
        /// The name.
        name: String,
    },
    /// The endpoint cannot be named in a header.
    #[error(transparent)]
    Authority(#[from] InvalidHeaderValue),
    /// The authorities of the group-version are none.
    #[error(transparent)]
    Trust(#[from] VerifierBuilderError),
    /// The certificate of the front proxy cannot be shown.
    #[error(transparent)]
    Settings(#[from] rustls::Error),
    /// The endpoint is not reached.
    #[error("dial tcp {authority}: {}", dial_error_text(source).unwrap_or_else(|| format!("connect: {source}")))]
    Dial {
        /// The endpoint.
        authority: String,
        /// What the system says.
        source: io::Error,
    },
    /// The endpoint is not reached in time.
    #[error("dial tcp {authority}: i/o timeout")]
    DialTimeout {
        /// The endpoint.
        authority: String,
    },
    /// The Service has a name that no certificate has.
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    /// The endpoint is not whom it should be.
    #[error("tls: {0}")]
    Tls(io::Error),
    /// The endpoint does not speak HTTP.
    #[error(transparent)]
    Handshake(hyper::Error),
    /// The answer does not come.
    #[error("{}", exchange(.0))]
    Exchange(hyper::Error),
    /// The server changes what is spoken, and was not asked to.
    #[error("the server changed protocols unasked")]
    Upgraded,
    /// The answer is too long.
    #[error("the answer has more than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// The answer does not come in time.
    #[error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    Timeout,
}

fn exchange(error: &hyper::Error) -> String {
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}
