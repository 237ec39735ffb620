//! HTTP requests and responses: paths, queries, bodies, errors.

use crate::{Error, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;
use mainstay_object::{Object, Reason, Status};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write as _;

/// A URL path with query parameters that are appended.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    text: String,
    has_query: bool,
}

impl Target {
    pub(crate) const fn new(path: String) -> Self {
        Self { text: path, has_query: false }
    }

    /// Appends a segment to the path; only before the first query parameter.
    pub(crate) fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        self.text.push_str(segment);
        self
    }

    /// Appends a query parameter unless the value is empty.
    pub(crate) fn pair(mut self, key: &str, value: &str) -> Self {
        if value.is_empty() {
            return self;
        }
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(key);
        self.text.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    self.text.push(char::from(byte));
                }
                other => {
                    // Writing into a String does not fail.
                    let _ = write!(self.text, "%{other:02X}");
                }
            }
        }
        self
    }
}

/// The media types of bodies.
pub(crate) mod media {
    pub(crate) const JSON: &str = "application/json";
    pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
    pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
    pub(crate) const APPLY_PATCH: &str = "application/apply-patch+yaml";
    pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
    /// A list of metadata; servers without support return complete objects.
    pub(crate) const METADATA_LIST: &str =
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
    /// Metadata of each object of a watch. Real servers refuse the list form for a watch, and this
    /// form for a list.
    pub(crate) const METADATA: &str =
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
}

/// Builds a request. `body` is the bytes and their media type.
pub(crate) fn build(
    method: Method,
    target: &Target,
    accept: &str,
    body: Option<(&str, Bytes)>,
) -> Result<Request<Body>> {
    let mut request =
        Request::builder().method(method).uri(&target.text).header(header::ACCEPT, accept);
    let body = match body {
        Some((media, bytes)) => {
            request = request.header(header::CONTENT_TYPE, media);
            Body::from(bytes)
        }
        None => Body::empty(),
    };
    request.body(body).map_err(|error| Error::Transport(Box::new(error)))
}

/// Sends a request and turns every unsuccessful response into an error.
pub(crate) async fn send(client: &kube::Client, request: Request<Body>) -> Result<Response<Body>> {
    let response = client.send(request).await?;
    if response.status().is_success() {
        return Ok(response);
    }
    let code = response.status();
    let body = bytes(response).await?;
    let status = match serde_json::from_slice::<Value>(&body) {
        Ok(value) if value.get("kind").and_then(Value::as_str) == Some("Status") => {
            let mut status = Status::from_value(&value);
            status.code = code.as_u16();
            status
        }
        _ => {
            // Proxies and overloaded servers respond with plain text.
            let mut status =
                Status::new(Reason::Unknown, String::from_utf8_lossy(&body).trim().to_owned());
            status.code = code.as_u16();
            status.reason = match code.as_u16() {
                401 => Reason::Unauthorized,
                403 => Reason::Forbidden,
                404 => Reason::NotFound,
                410 => Reason::Gone,
                429 => Reason::TooManyRequests,
                503 => Reason::ServiceUnavailable,
                504 => Reason::Timeout,
                _ => Reason::Unknown,
            };
            status
        }
    };
    Err(Error::Status(status))
}

/// The complete body.
pub(crate) async fn bytes(response: Response<Body>) -> Result<Bytes> {
    Ok(response.into_body().collect().await?.to_bytes())
}

/// Sends a request and decodes the response.
pub(crate) async fn fetch<T: DeserializeOwned>(
    client: &kube::Client,
    request: Request<Body>,
) -> Result<T> {
    decode(send(client, request).await?).await
}

/// Decodes a response.
pub(crate) async fn decode<T: DeserializeOwned>(response: Response<Body>) -> Result<T> {
    serde_json::from_slice(&bytes(response).await?).map_err(Error::Answer)
}

/// The texts of `Warning` headers: `299 - "text"`, several of them separated by commas. Other forms
/// are ignored, as any proxy may add them.
pub(crate) fn warnings(headers: &HeaderMap) -> Vec<String> {
    let mut texts = Vec::new();
    for value in headers.get_all(header::WARNING) {
        let Ok(mut rest) = std::str::from_utf8(value.as_bytes()) else { continue };
        while let Some((before, after)) = rest.split_once('"') {
            let (text, behind) = quoted(after);
            if before.trim_start_matches([',', ' ']).starts_with("299 ") {
                texts.push(text);
            }
            rest = behind;
        }
    }
    texts
}

/// A string up to its closing quote, unescaped, and the rest of the text.
fn quoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (out, &text[at + 1..]),
            '\\' => out.extend(chars.next().map(|(_, char)| char)),
            other => out.push(other),
        }
    }
    (out, "")
}

/// Encodes a value as JSON.
pub(crate) fn encode(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::Answer)
}

/// Encodes an object as JSON for a body.
pub(crate) fn encode_object(object: &Object) -> Result<Vec<u8>> {
    encode(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_headers_are_split_and_unquoted() {
        let mut headers = HeaderMap::new();
        for value in [
            r#"299 - "batch/v1beta1 CronJob is deprecated""#,
            r#"299 kube "say \"no\", please" "Tue, 15 Nov 1994 08:12:31 GMT", 299 - "two""#,
            r#"199 proxy "not the server""#,
            "299 nothing",
        ] {
            headers.append(header::WARNING, value.parse().unwrap());
        }
        assert_eq!(
            warnings(&headers),
            ["batch/v1beta1 CronJob is deprecated", "say \"no\", please", "two"]
        );
    }

    #[test]
    fn queries_are_escaped_and_empty_pairs_left_out() {
        let target = Target::new("/api/v1/pods".to_owned())
            .pair("labelSelector", "a=b,c in (d)")
            .pair("continue", "")
            .pair("limit", "5");
        assert_eq!(target.text, "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
    }
}
