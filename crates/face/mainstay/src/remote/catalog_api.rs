//! Documents of ClusterCatalogs over HTTP, from the catalog server or through the Service proxy of the API
//! server.

use crate::embedded::chain;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::config::Config;
use mainstay_catalog::Limits;
use mainstay_cause::Cause;
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;

/// How long a server may take to send all documents, unless --timeout is longer.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(2);
/// The user agent of requests.
const AGENT: &str = "mainstay-catalog";
/// How many characters of a server's message are shown.
const MAX_MESSAGE: usize = 300;

/// Reads documents. The server may take `timeout` to accept the connection, and as long again for each part
/// of its response.
pub(super) async fn read(
    api_server: &Config,
    server: &CatalogEndpoint,
    path: &str,
    timeout: Duration,
) -> Result<Vec<u8>, CatalogReadError> {
    let total = TOTAL_TIMEOUT.max(timeout);
    let documents = read_documents(api_server, server, path, timeout);
    match tokio::time::timeout(total, documents).await {
        Ok(documents) => documents,
        Err(_) => Err(CatalogReadError::Unreachable(Cause::new(format!(
            "it did not send all documents within {} s",
            total.as_secs()
        )))),
    }
}

async fn read_documents(
    api_server: &Config,
    server: &CatalogEndpoint,
    path: &str,
    timeout: Duration,
) -> Result<Vec<u8>, CatalogReadError> {
    let (mut config, target) = match server {
        CatalogEndpoint::Direct { base, authorities } => {
            (direct_config(base, authorities, timeout)?, format!("/{path}"))
        }
        CatalogEndpoint::ServiceProxy { path: base } => {
            (api_server.clone(), format!("{base}/{path}"))
        }
    };
    // The reason of a 503 is reported at once.
    config.default_retry = false;
    let client =
        Client::try_from(config).map_err(|error| CatalogReadError::Failed(chain(&error)))?;
    let request = Request::get(target).header(header::USER_AGENT, AGENT).body(Body::empty());
    let request = request.map_err(|error| CatalogReadError::Failed(chain(&error)))?;
    let response = in_time(timeout, client.send(request)).await?;
    let response = response.map_err(|error| {
        if is_certificate_error(&error) {
            CatalogReadError::Certificate(chain(&error))
        } else {
            CatalogReadError::Unreachable(chain(&error))
        }
    })?;
    let status = response.status();
    let bytes = read_body(response, timeout).await?;
    let refused = || Cause::new(format!("it responded {status}: {}", message(&bytes)));
    match status {
        StatusCode::OK => Ok(bytes),
        StatusCode::NOT_FOUND => Err(CatalogReadError::NotFound(refused())),
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
            Err(CatalogReadError::Forbidden(refused()))
        }
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Err(CatalogReadError::Unreachable(refused()))
        }
        _ => Err(CatalogReadError::Failed(refused())),
    }
}

/// Reads a response, up to the size of a catalog file.
async fn read_body(
    response: Response<Body>,
    timeout: Duration,
) -> Result<Vec<u8>, CatalogReadError> {
    let limit = Limits::default().file_bytes;
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(frame) = in_time(timeout, body.frame()).await? {
        let frame = frame.map_err(|error| CatalogReadError::Unreachable(chain(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes.extend_from_slice(&data);
        if bytes.len() as u64 > limit {
            let message = format!("it sends more than {} MiB", limit >> 20);
            return Err(CatalogReadError::Failed(Cause::new(message)));
        }
    }
    Ok(bytes)
}

/// Waits for a part of the response.
async fn in_time<T>(
    timeout: Duration,
    part: impl Future<Output = T>,
) -> Result<T, CatalogReadError> {
    tokio::time::timeout(timeout, part).await.map_err(|_| {
        let message = format!("it did not respond within {} s", timeout.as_secs());
        CatalogReadError::Unreachable(Cause::new(message))
    })
}

/// The configuration of a client of the catalog server, without credentials and without a proxy.
fn direct_config(
    base: &str,
    authorities: &str,
    timeout: Duration,
) -> Result<Config, CatalogReadError> {
    let base: Uri = base.parse().map_err(|error| CatalogReadError::Failed(chain(&error)))?;
    let certificates = CertificateDer::pem_slice_iter(authorities.as_bytes());
    let certificates: Vec<Vec<u8>> = certificates.flatten().map(|der| der.to_vec()).collect();
    if certificates.is_empty() {
        let cause = Cause::new("the ConfigMap with its CA has no certificate");
        return Err(CatalogReadError::Certificate(cause));
    }
    let mut config = Config::new(base);
    config.root_cert = Some(certificates);
    config.connect_timeout = Some(timeout);
    config.read_timeout = Some(timeout);
    Ok(config)
}

/// Whether a connection failed because of the server's certificate.
fn is_certificate_error(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // The source of an `io::Error` is the source of the error that it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

/// The message of a response: that of a Status object of the API server, or the first line of a text.
fn message(bytes: &[u8]) -> String {
    let status: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let text = status["message"].as_str().unwrap_or(&text);
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|character| !character.is_control()).take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_error_is_found_below_io_errors() {
        let refused = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, refused));
        assert!(is_certificate_error(&wrapped));
        assert!(!is_certificate_error(&io::Error::from(io::ErrorKind::ConnectionRefused)));
    }

    #[test]
    fn message_of_a_status_object_is_shown_and_control_characters_are_not() {
        assert_eq!(message(br#"{"kind":"Status","message":"no endpoints"}"#), "no endpoints");
        assert_eq!(message(b"404 page\x1b[2J not found\nmore"), "404 page[2J not found");
    }
}
