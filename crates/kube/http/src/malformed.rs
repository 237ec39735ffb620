//! What is wrong with a request before anybody asks what it is about, as Go's server says it.

use crate::Body;
use crate::response::{ApiResponse, ResponseFormat};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};

/// The refusal of a request whose host or path is none; the connection ends with it.
pub fn refusal(parts: &Parts) -> Option<Response<Body>> {
    // A tunnel to somewhere, which has no path.
    if parts.method == Method::CONNECT && parts.uri.path().is_empty() {
        return Some(ApiResponse::page_not_found().into_response(ResponseFormat::default()));
    }
    let why = wrong(parts)?;
    let mut text = "400 Bad Request".to_owned();
    if !why.is_empty() {
        text = format!("{text}: {why}");
    }
    let answer = ApiResponse::text(StatusCode::BAD_REQUEST, text)
        .header(CONNECTION, HeaderValue::from_static("close"));
    Some(answer.into_response(ResponseFormat::default()))
}

fn wrong(parts: &Parts) -> Option<&'static str> {
    if parts.version < Version::HTTP_2 {
        let mut hosts = parts.headers.get_all(HOST).iter();
        match (hosts.next(), hosts.next()) {
            (None, _) if parts.version == Version::HTTP_11 => {
                return Some("missing required Host header");
            }
            (Some(_), Some(_)) => return Some(""),
            (Some(host), None) if !host.as_bytes().iter().all(|byte| is_of_host(*byte)) => {
                return Some("malformed Host header");
            }
            _ => {}
        }
    }
    (!is_escaped(parts.uri.path())).then_some("")
}

/// Whether a byte may stand in a host with its port, in any of the forms of RFC 3986.
const fn is_of_host(byte: u8) -> bool {
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

/// Whether every percent sign of a path begins an octet.
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
    fn a_host_is_said_once_and_escapes_are_whole() {
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
            assert_eq!(wrong(&parts), expected, "{path} {hosts:?}");
        }
    }
}
