//! The texts that containers/image, the library of upstream's controllers and of opm, has for errors
//! of registries. Conditions contain them, so scripts and recorded answers match them.

use super::{ListedError, RegistryError};
use crate::manifest::ImageManifestError;
use crate::platform::Platform;
use crate::reference::ImageReference;
use crate::store::ImageStoreError;
use mainstay_gocompat::quote;

/// What the HTTP library says about content that ends too early.
const SHORT_MESSAGE: &str = "end of file before message length reached";

/// The step of a pull at which an error occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullStep {
    /// A tag is resolved to a digest.
    Resolve,
    /// The manifest and the blobs are copied.
    Copy,
}

/// The text of containers/image for an error of the registry that has `reference`. Errors without a
/// counterpart there have our own text.
pub fn containers_image_text(
    error: &RegistryError,
    reference: &ImageReference,
    step: PullStep,
) -> String {
    let (wanted, repository) = (reference.wanted(), reference.repository());
    let source = format!("docker://{reference}");
    let initializing = |why: String| match step {
        PullStep::Resolve => why,
        PullStep::Copy => format!("initializing source {source}: {why}"),
    };
    match error {
        RegistryError::Connection { url, why }
            if url.contains("/blobs/") && why.contains(SHORT_MESSAGE) =>
        {
            "writing blob: happened during read: unexpected EOF".to_owned()
        }
        RegistryError::Connection { url, why } => {
            let host = repository.split('/').next().unwrap_or_default();
            let scheme = url.split("://").next().unwrap_or("https");
            let why = connection_text(url, why);
            initializing(format!(
                "fetching manifest {wanted} in {repository}: pinging container registry {host}: \
                 Get \"{scheme}://{host}/v2/\": {why}"
            ))
        }
        RegistryError::Platform { .. } => {
            let platform = Platform::host();
            format!(
                "choosing an image from manifest list {source}: no image found in image index for \
                 architecture {}, variant {}, OS {}",
                quote(&platform.architecture),
                quote(&platform.variant),
                quote(&platform.os)
            )
        }
        RegistryError::Document { source: ImageManifestError::NotJson(first), .. } => {
            format!(
                "initializing image from source {source}: invalid character '{first}' looking for \
                 beginning of value"
            )
        }
        RegistryError::Store(ImageStoreError::Digest { wanted, found }) => format!(
            "writing blob: happened during read: Digest did not match, expected {wanted}, got {found}"
        ),
        RegistryError::Status { url, .. } | RegistryError::Unauthorized { url, .. } => {
            let why = response_text(error).unwrap_or_else(|| error.to_string());
            match url.split_once("/blobs/") {
                Some((_, digest)) => format!("reading blob {digest}: fetching blob: {why}"),
                None => initializing(format!("reading manifest {wanted} in {repository}: {why}")),
            }
        }
        error => error.to_string(),
    }
}

/// The text for an error response; none for other errors.
fn response_text(error: &RegistryError) -> Option<String> {
    let (status, first) = match error {
        RegistryError::Unauthorized { first, .. } if *first == ListedError::default() => {
            return Some("authentication required".to_owned());
        }
        RegistryError::Unauthorized { first, .. } => (http::StatusCode::UNAUTHORIZED, first),
        RegistryError::Status { status, first, .. } => (*status, first),
        _ => return None,
    };
    // Only client errors have a document that the library reads.
    if !status.is_client_error() {
        return Some(format!("received unexpected HTTP status: {status}"));
    }
    let code = first.code.to_ascii_lowercase().replace('_', " ");
    Some(match (&*code, &*first.message) {
        // Registries send the default message of the code, or their own.
        (_, text) if Some(text) == default_message(&code) => text.to_owned(),
        ("", "") => format!("StatusCode: {}, \"\"", status.as_u16()),
        (code, "") => code.to_owned(),
        ("", text) => text.to_owned(),
        (code, text) => format!("{code}: {text}"),
    })
}

/// Why there is no connection, with the text of Go's network library where it is known.
pub fn connection_text(url: &str, why: &str) -> String {
    let authority = url.split("://").nth(1).unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let port = if url.starts_with("http://") { 80 } else { 443 };
    let (host, dialled) = match authority.rsplit_once(':') {
        Some((host, _)) if !host.is_empty() => (host, authority.to_owned()),
        _ => (authority, format!("{authority}:{port}")),
    };
    if why.contains("InvalidContentType") {
        "tls: first record does not look like a TLS handshake".to_owned()
    } else if why.contains("UnknownIssuer") {
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            .to_owned()
    } else if let Some((_, names)) = why.split_once("certificate not valid for name ") {
        wrong_name(host, names)
    } else if why.starts_with("Connection refused") {
        format!("dial tcp {dialled}: connect: connection refused")
    } else if let Some((address, _)) = why.split_once(": Connection refused") {
        format!("dial tcp {address}: connect: connection refused")
    } else if why.contains(SHORT_MESSAGE) {
        "unexpected EOF".to_owned()
    } else if why.contains("lookup address") {
        format!("dial tcp: lookup {host}: no such host")
    } else {
        why.to_owned()
    }
}

/// The text for a certificate with other names; they are the quoted words after the first one.
fn wrong_name(host: &str, names: &str) -> String {
    let names: Vec<&str> = names.split('"').skip(3).step_by(2).collect();
    let failed = "tls: failed to verify certificate: x509: certificate is";
    if names.is_empty() {
        format!("{failed} not valid for any names, but wanted to match {host}")
    } else {
        format!("{failed} valid for {}, not {host}", names.join(", "))
    }
}

/// The default message of an error code of a registry.
fn default_message(code: &str) -> Option<&'static str> {
    Some(match code {
        "unknown" => "unknown error",
        "unsupported" => "The operation is unsupported.",
        "unauthorized" => "authentication required",
        "denied" => "requested access to the resource is denied",
        "unavailable" => "service unavailable",
        "toomanyrequests" => "too many requests",
        "name invalid" => "invalid repository name",
        "name unknown" => "repository name not known to registry",
        "manifest unknown" => "manifest unknown",
        "manifest invalid" => "manifest invalid",
        "manifest unverified" => "manifest failed signature verification",
        "manifest blob unknown" | "blob unknown" => "blob unknown to registry",
        "tag invalid" => "manifest tag did not match URI",
        "digest invalid" => "provided digest did not match uploaded content",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_texts_of_containers_image() {
        let url = "https://a.example/v2/b/manifests/v1";
        let status = |code: u16, name: &str, message: &str| RegistryError::Status {
            url: url.to_owned(),
            status: http::StatusCode::from_u16(code).unwrap(),
            detail: String::new(),
            first: ListedError { code: name.to_owned(), message: message.to_owned() },
        };
        let lost =
            |why: &str| RegistryError::Connection { url: url.to_owned(), why: why.to_owned() };
        let reading = "reading manifest v1 in a.example/b: ";
        let pinging = "fetching manifest v1 in a.example/b: pinging container registry a.example: \
                       Get \"https://a.example/v2/\": ";
        let dialling = "dial tcp a.example:443: connect: connection refused";
        for (error, expected) in [
            (
                status(404, "MANIFEST_UNKNOWN", "there is none"),
                format!("{reading}manifest unknown: there is none"),
            ),
            (
                status(404, "MANIFEST_UNKNOWN", "manifest unknown"),
                format!("{reading}manifest unknown"),
            ),
            (
                status(404, "NAME_UNKNOWN", "repository name not known to registry"),
                format!("{reading}repository name not known to registry"),
            ),
            (status(403, "DENIED", "you may not"), format!("{reading}denied: you may not")),
            (status(401, "UNAUTHORIZED", ""), format!("{reading}unauthorized")),
            (
                status(500, "", ""),
                format!("{reading}received unexpected HTTP status: 500 Internal Server Error"),
            ),
            (status(403, "", ""), format!("{reading}StatusCode: 403, \"\"")),
            (lost("Connection refused (os error 111)"), format!("{pinging}{dialling}")),
            (
                lost("127.0.0.2:1: Connection refused (os error 111)"),
                format!("{pinging}dial tcp 127.0.0.2:1: connect: connection refused"),
            ),
            (
                lost("received corrupt message of type InvalidContentType"),
                format!("{pinging}tls: first record does not look like a TLS handshake"),
            ),
            (
                lost("failed to lookup address information: nobody knows"),
                format!("{pinging}dial tcp: lookup a.example: no such host"),
            ),
            (
                lost(
                    "invalid peer certificate: certificate not valid for name \"a.example\"; \
                     certificate is only valid for DnsName(\"b.example\") or DnsName(\"c\")",
                ),
                format!(
                    "{pinging}tls: failed to verify certificate: x509: certificate is valid for \
                     b.example, c, not a.example"
                ),
            ),
        ] {
            let reference = ImageReference::parse("a.example/b:v1").unwrap();
            let text = |step| containers_image_text(&error, &reference, step);
            // shows OLMV1-137
            assert_eq!(text(PullStep::Resolve), expected);
            let source = "initializing source docker://a.example/b:v1: ";
            assert_eq!(text(PullStep::Copy), format!("{source}{expected}"));
        }
    }
}
