//! Content negotiation: how a response may be compressed.

use crate::documents::encoding::Coding;
use http::{HeaderMap, header};

/// The coding for a client: zstd unless it prefers gzip, or gzip. A coding must be named: a client
/// with `*` or no header gets the uncompressed form.
pub(super) fn negotiate(headers: &HeaderMap) -> Option<Coding> {
    let (gzip, zstd) = (weight(headers, "gzip"), weight(headers, "zstd"));
    if zstd > 0.0 && zstd >= gzip {
        Some(Coding::Zstd)
    } else {
        (gzip > 0.0).then_some(Coding::Gzip)
    }
}

/// The weight that a client gives to a coding; 0 if it does not accept it.
fn weight(headers: &HeaderMap, coding: &str) -> f32 {
    let lines = headers.get_all(header::ACCEPT_ENCODING);
    let codings =
        lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let weights = codings.filter_map(|text| {
        let mut parts = text.split(';').map(str::trim);
        parts.next().filter(|name| name.eq_ignore_ascii_case(coding))?;
        let given = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().ok())?
        });
        Some(given.unwrap_or(1.0))
    });
    weights.fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Coding::{Gzip, Zstd};
    use http::HeaderValue;

    #[test]
    fn a_coding_must_be_named_with_a_positive_weight() {
        for (line, coding) in [
            ("gzip", Some(Gzip)),
            ("deflate, GZIP;q=0.5", Some(Gzip)),
            ("gzip; q=1", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("zstd", Some(Zstd)),
            ("zstd;q=0.5, gzip", Some(Gzip)),
            ("zstd;q=0.5, gzip;Q=0.5", Some(Zstd)),
            ("zstd;q=0, gzip;q=0.1", Some(Gzip)),
            ("identity", None),
            ("*", None),
            ("", None),
            ("x-gzip", None),
        ] {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(line))]);
            assert_eq!(negotiate(&headers), coding, "{line}");
        }
        assert_eq!(negotiate(&HeaderMap::new()), None);
    }
}
