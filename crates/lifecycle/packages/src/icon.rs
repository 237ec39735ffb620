//! The picture of a package: bytes that browsers show.

use crate::answer::{Content, refusal};
use crate::manifest;
use crate::select::Selection;
use crate::state::Packages;
use crate::{GROUP, PLURAL};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Response, StatusCode};
use mainstay_object::Status;

/// The picture of a package that has none: the same as everywhere, since consoles know it.
const USUAL: &str = include_str!("icon.svg");
/// What it is.
const USUAL_TYPE: &str = "image/svg+xml";
/// Base64 as people write it: with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Packages {
    /// Answers with the picture of the head of the default channel. Takes a moment.
    pub(crate) fn icon(
        &self,
        namespace: &str,
        name: &str,
        headers: &HeaderMap,
    ) -> Response<Content> {
        let state = self.state();
        let found = self.select(&state, &Selection::named(namespace, name)).into_iter().next();
        let picture = found.as_ref().and_then(|item| {
            let package = item.shelf.content.package(&item.brief.name)?;
            manifest::picture(package, &item.brief.default_channel)
        });
        let (Some(item), Some((head, picture))) = (found, picture) else {
            return refusal(&Status::not_found(GROUP, PLURAL, name));
        };
        let Some(picture) = picture else { return image(USUAL.into(), USUAL_TYPE) };
        let etag = format!("\"{name}.{}.{head}\"", item.brief.default_channel);
        let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|header| header.to_str().ok());
        let is_known = known.flat_map(|header| header.split(',')).any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.trim_start_matches("W/") == etag
        });
        let mut response = if is_known {
            let mut response = Response::new(Content::Whole(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let text: String =
                picture.base64.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
            match BASE64.decode(text) {
                Ok(bytes) => image(bytes.into(), &picture.media_type),
                Err(error) => {
                    tracing::debug!(package = name, %error, "a picture cannot be read");
                    return image(USUAL.into(), USUAL_TYPE);
                }
            }
        };
        if let Ok(etag) = HeaderValue::try_from(etag) {
            response.headers_mut().insert(ETAG, etag);
        }
        response
    }
}

/// A picture. What it says it is comes from a catalog: browsers shall not take it for a page.
fn image(bytes: Bytes, media_type: &str) -> Response<Content> {
    let is_image = media_type.starts_with("image/");
    let named = HeaderValue::try_from(media_type).ok().filter(|_| is_image);
    let media_type = named.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"));
    let length = HeaderValue::from(bytes.len());
    let mut response = Response::new(Content::Whole(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CONTENT_LENGTH, length);
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    // A picture that is a document could carry scripts.
    let alone = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    headers.insert("content-security-policy", alone);
    response
}
