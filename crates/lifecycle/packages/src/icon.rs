//! Icons of packages: the subresource `icon`, which browsers load as an image.

use crate::handler::{ResponseBody, error_response};
use crate::manifest;
use crate::select::Selection;
use crate::state::PackageApi;
use crate::{GROUP, PLURAL};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Response, StatusCode};
use mainstay_object::Status;

/// The icon of a package without one: that of upstream, which consoles know.
const DEFAULT_ICON: &str = include_str!("icon.svg");
/// The media type of [`DEFAULT_ICON`].
const DEFAULT_MEDIA_TYPE: &str = "image/svg+xml";
/// Base64 with or without padding, as catalogs contain both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl PackageApi {
    /// Responds with the icon at the head of the default channel. Blocks.
    pub(crate) fn icon(
        &self,
        namespace: &str,
        name: &str,
        headers: &HeaderMap,
    ) -> Response<ResponseBody> {
        let state = self.state();
        let selected = self.select(&state, &Selection::by_name(namespace, name)).into_iter().next();
        let icon = selected.as_ref().and_then(|item| {
            let package = item.catalog.content.package(&item.summary.name)?;
            manifest::icon(package, &item.summary.default_channel)
        });
        let (Some(item), Some((head, icon))) = (selected, icon) else {
            return error_response(&Status::not_found(GROUP, PLURAL, name));
        };
        let Some(icon) = icon else { return image(DEFAULT_ICON.into(), DEFAULT_MEDIA_TYPE) };
        let etag = format!("\"{name}.{}.{head}\"", item.summary.default_channel);
        let header_values =
            headers.get_all(IF_NONE_MATCH).iter().filter_map(|header| header.to_str().ok());
        let is_cached = header_values.flat_map(|header| header.split(',')).any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.trim_start_matches("W/") == etag
        });
        let mut response = if is_cached {
            let mut response = Response::new(ResponseBody::Whole(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let text: String =
                icon.base64.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
            match BASE64.decode(text) {
                Ok(bytes) => image(bytes.into(), &icon.media_type),
                Err(error) => {
                    tracing::debug!(package = name, %error, "a picture cannot be read");
                    return image(DEFAULT_ICON.into(), DEFAULT_MEDIA_TYPE);
                }
            }
        };
        if let Ok(etag) = HeaderValue::try_from(etag) {
            response.headers_mut().insert(ETAG, etag);
        }
        response
    }
}

/// A response with an image. The media type comes from a catalog, so other types than `image/…` become
/// `application/octet-stream`, which a browser does not render as a page.
fn image(bytes: Bytes, media_type: &str) -> Response<ResponseBody> {
    let is_image = media_type.starts_with("image/");
    let image_type = HeaderValue::try_from(media_type).ok().filter(|_| is_image);
    let media_type =
        image_type.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"));
    let length = HeaderValue::from(bytes.len());
    let mut response = Response::new(ResponseBody::Whole(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(CONTENT_LENGTH, length);
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    // An SVG document could contain scripts.
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    headers.insert("content-security-policy", policy);
    response
}
