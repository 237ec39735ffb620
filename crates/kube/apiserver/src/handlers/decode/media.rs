//! Media types of request bodies.

use crate::handlers::request::Request;
use http::header::CONTENT_TYPE;
use mainstay_object::{Reason, Status};
use mainstay_schema::protobuf;

/// The accepted media types, as kube-apiserver lists them.
const READABLE: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    /// The media type of a request's body; the default is JSON.
    pub(super) fn from_request(request: &Request<'_>) -> Result<Self, Status> {
        let Some(header) = request.headers.get(CONTENT_TYPE) else { return Ok(Self::Json) };
        let header = header.to_str().unwrap_or("?");
        if header.is_empty() {
            return Ok(Self::Json);
        }
        match media_type(header).as_deref() {
            Some("application/json") => Ok(Self::Json),
            Some("application/yaml") => Ok(Self::Yaml),
            Some(protobuf::MEDIA_TYPE) => Ok(Self::Protobuf),
            _ => Err(unknown_media(READABLE)),
        }
    }
}

/// 415 for a body of another media type.
pub(in crate::handlers) fn unknown_media(accepted: &str) -> Status {
    Status::new(
        Reason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        ),
    )
}

/// The media type of a header in lower case; none if the header or a parameter is malformed.
/// Parameters such as `charset` have no effect.
fn media_type(header: &str) -> Option<String> {
    let mut parts = header.split(';');
    let media = parts.next()?.trim().to_ascii_lowercase();
    let (main_type, subtype) = media.split_once('/')?;
    if !is_token(main_type) || !is_token(subtype) {
        return None;
    }
    let mut parameters = Vec::new();
    let mut parts = parts.map(str::trim).peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() && parts.peek().is_none() {
            break;
        }
        let (name, value) = part.split_once('=')?;
        let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
        if !is_token(name) || !(is_quoted || is_token(value)) || parameters.contains(&name) {
            return None;
        }
        parameters.push(name);
    }
    Some(media)
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !br#"()<>@,;:\"/[]?="#.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_parameters_must_be_well_formed_and_are_ignored() {
        for (header, media) in [
            ("application/json", Some("application/json")),
            ("Application/JSON; charset=utf-8", Some("application/json")),
            ("application/json; charset=\"utf-16\"; x=y;", Some("application/json")),
            ("application/json;charset", None),
            ("application/json; a=b; a=b", None),
            ("application/json,text/plain", None),
            ("application", None),
            (" ", None),
        ] {
            assert_eq!(media_type(header).as_deref(), media, "{header}");
        }
    }
}
