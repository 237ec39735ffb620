//! Values of webhook responses, and the errors of responses without one.

use crate::OutboundResponse;
use mainstay_http::yaml::{YamlBodyError, first_document};
use mainstay_schema::strict::{self, JsonError};
use serde_json::Value;

/// A response has no value; the messages are those of Kubernetes' client.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// The response is no success: the message of its `Status`, or a text for its code.
    #[error("{0}")]
    Failure(String),
    /// The response is empty.
    #[error("0-length response with status code: {code} and content type: {media}")]
    Empty {
        /// Its status code.
        code: u16,
        /// Its media type.
        media: String,
    },
    /// The response is no JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    ParseJson(JsonError),
    /// The response is no YAML.
    #[error("couldn't get version/kind; json parse error: {0}")]
    ParseYaml(YamlBodyError),
}

/// The value of a response, which is JSON or YAML whatever its media type.
pub fn response_value(response: &OutboundResponse) -> Result<Value, ResponseError> {
    let body = &response.body;
    if !(200..=206).contains(&response.code) {
        let text = status_text(body).unwrap_or_else(|| failure_message(response));
        return Err(ResponseError::Failure(text));
    }
    if body.is_empty() {
        let media = match response.content_type.as_str() {
            "" => "application/json",
            media => media,
        };
        return Err(ResponseError::Empty { code: response.code, media: media.to_owned() });
    }
    let is_json = body.trim_ascii_start().first() == Some(&b'{');
    if is_json {
        strict::parse(body).map(|parsed| parsed.value).map_err(ResponseError::ParseJson)
    } else {
        first_document(body).map(|(value, _)| value).map_err(ResponseError::ParseYaml)
    }
}

/// The message of a body that is a `Status` of a failure.
fn status_text(body: &[u8]) -> Option<String> {
    let value = strict::parse(body).ok()?.value;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_failure =
        text("kind") == "Status" && text("apiVersion") == "v1" && text("status") != "Success";
    is_failure.then(|| text("message").to_owned())
}

/// The message for a response that is no success.
fn failure_message(response: &OutboundResponse) -> String {
    /// Bytes of the body in a message.
    const MAX_BODY: usize = 2048;
    let media = response.content_type.split(';').next().unwrap_or_default().trim();
    let is_text = media.is_empty() || media.starts_with("text/");
    let body = &response.body[..response.body.len().min(MAX_BODY)];
    let text = if is_text {
        String::from_utf8_lossy(body).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    match response.code {
        409 => "the server reported a conflict".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        406 if text.is_empty() || text == "unknown" => {
            "the server was unable to respond with a content type that the client supports".to_owned()
        }
        403 | 406 | 415 => text,
        405 => "the server does not allow this method on the requested resource".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        code if code >= 500 => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}
