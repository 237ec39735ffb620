//! Malformed requests: the checks that Go's HTTP server makes before any handler runs.

use crate::Body;
use crate::response::{ApiResponse, ResponseFormat};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};

/// The response to a request with a malformed host or path; the connection closes after it.
pub fn reject(parts: &Parts) -> Option<Response<Body>> {
    // A CONNECT request has no path.
    if parts.method == Method::CONNECT && parts.uri.path().is_empty() {
        return Some(ApiResponse::page_not_found().into_response(ResponseFormat::default()));
    }
    let reason = rejection_reason(parts)?;
    let mut text = "400 Bad Request".to_owned();
    if !reason.is_empty() {
        text = format!("{text}: {reason}");
    }
    let response = ApiResponse::text(StatusCode::BAD_REQUEST, text)
        .header(CONNECTION, HeaderValue::from_static("close"));
    Some(response.into_response(ResponseFormat::default()))
}

/// Why a request is malformed; Go gives no reason for some faults, so the text may be empty.
fn rejection_reason(parts: &Parts) -> Option<&'static str> {
    if parts.version < Version::HTTP_2 {
        let mut hosts = parts.headers.get_all(HOST).iter();
        match (hosts.next(), hosts.next()) {
            (None, _) if parts.version == Version::HTTP_11 => {
                return Some("missing required Host header");
            }
            (Some(_), Some(_)) => return Some(""),
            (Some(host), None) if !host.as_bytes().iter().all(|byte| is_host_byte(*byte)) => {
                return Some("malformed Host header");
            }
            _ => {}
        }
    }
    (!is_escaped(parts.uri.path())).then_some("")
}

/// Whether a host with its port may contain a byte, in any of the forms of RFC 3986.
const fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'$'
                | b'%'
                | b'&'
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b'-'
                | b'.'
                | b':'
                | b';'
                | b'='
                | b'['
                | b'\''
                | b']'
                | b'_'
                | b'~'
        )
}

/// Whether two hexadecimal digits follow each percent sign of a path.
fn is_escaped(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn requests_with_two_hosts_or_broken_escapes_are_malformed() {
        for (path, hosts, expected) in [
            ("/a", vec!["x"], None),
            ("/a%2fb", vec!["[::1]:6443"], None),
            ("/a?b=%zz", vec!["x"], None),
            ("/a", vec![], Some("missing required Host header")),
            ("/a", vec!["x", "x"], Some("")),
            ("/a", vec!["x y"], Some("malformed Host header")),
            ("/a", vec!["x/y"], Some("malformed Host header")),
            ("/a%", vec!["x"], Some("")),
            ("/a%2", vec!["x"], Some("")),
            ("/a%zz", vec!["x"], Some("")),
        ] {
            let mut request = Request::get(path);
            for host in &hosts {
                request = request.header(HOST, *host);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(rejection_reason(&parts), expected, "{path} {hosts:?}");
        }
    }
}
