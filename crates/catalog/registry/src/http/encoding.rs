//! Content negotiation: whether a response may be compressed.

use http::{HeaderMap, header};

/// Whether the client accepts gzip. It must be named: a client with `*` or no header gets the
/// uncompressed form.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING);
    lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).any(accepts)
}

fn accepts(coding: &str) -> bool {
    let mut parts = coding.split(';').map(str::trim);
    let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
    let weight =
        |part: &str| part.strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
    named && parts.find_map(weight).is_none_or(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn gzip_must_be_named_with_a_positive_weight() {
        for (line, accepted) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip; q=1", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("identity", false),
            ("*", false),
            ("", false),
            ("x-gzip", false),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(line))]);
            assert_eq!(accepts_gzip(&headers), accepted, "{line}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
