//! Request headers.

use http::header::{HeaderMap, HeaderName};

/// A header as text; none if absent or not ASCII.
pub fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
