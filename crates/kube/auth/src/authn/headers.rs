//! Bearer tokens in request headers: `Authorization`, or the subprotocols of a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

const EXTRA_SPACE: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The token of the first `Authorization` header. Bytes that are not UTF-8 make a token that no key
/// has signed.
pub(super) fn bearer_token(
    headers: &HeaderMap,
    warnings: &mut Vec<&'static str>,
) -> Option<String> {
    let header = headers.get(AUTHORIZATION)?;
    parse_bearer(&String::from_utf8_lossy(header.as_bytes()), warnings)
}

/// The token in the text of a header. None for an empty token or another scheme: the request has no
/// credential then.
pub(super) fn parse_bearer(header: &str, warnings: &mut Vec<&'static str>) -> Option<String> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next().unwrap_or_default();
    let token = parts.next().filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
    if token.is_empty() {
        if parts.next().is_some() {
            warnings.push(EXTRA_SPACE);
        }
        return None;
    }
    Some(token.to_owned())
}

/// The token among the subprotocols that a WebSocket offers: browsers cannot set another header.
pub(super) fn websocket_token(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let upgrades = has_list_item(headers, &CONNECTION, "upgrade")
        && has_list_item(headers, &UPGRADE, "websocket");
    if !upgrades {
        return Ok(None);
    }
    let (mut encoded, mut others) = (None, false);
    for header in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let Ok(header) = header.to_str() else { continue };
        for protocol in header.split(',').map(str::trim) {
            let Some(token) = protocol.strip_prefix(PROTOCOL_PREFIX) else {
                others = true;
                continue;
            };
            if encoded.replace(token.to_owned()).is_some() {
                return Err("multiple base64.bearer.authorization tokens specified");
            }
        }
    }
    let Some(encoded) = encoded else { return Ok(None) };
    let token = URL_SAFE_NO_PAD
        .decode(encoded)
        .map_err(|_| "invalid base64.bearer.authorization token encoding")?;
    let token =
        String::from_utf8(token).map_err(|_| "invalid base64.bearer.authorization token")?;
    match (token.is_empty(), others) {
        (true, _) => Ok(None),
        (false, false) => Err("missing additional subprotocol"),
        (false, true) => Ok(Some(token)),
    }
}

fn has_list_item(headers: &HeaderMap, name: &http::HeaderName, wanted: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.trim().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn bearer_token_is_read_from_the_first_authorization_header() {
        for (header, token, warns) in [
            ("Bearer x", Some("x"), false),
            ("bEaReR x y z", Some("x"), false),
            ("  Bearer x  ", Some("x"), false),
            ("Bearer  x", None, true),
            ("Bearer", None, false),
            ("Bearer ", None, false),
            ("Basic x", None, false),
            ("Bearer\tx", None, false),
            ("", None, false),
            ("Bearer ä", Some("ä"), false),
        ] {
            let mut warnings = Vec::new();
            let found = bearer_token(&header_map(&[("authorization", header)]), &mut warnings);
            assert_eq!(found.as_deref(), token, "{header:?}");
            assert_eq!(!warnings.is_empty(), warns, "{header:?}");
        }
        let two = header_map(&[("authorization", "Bearer a"), ("authorization", "Bearer b")]);
        assert_eq!(bearer_token(&two, &mut Vec::new()).as_deref(), Some("a"));
    }

    #[test]
    fn websocket_may_offer_its_token_as_a_subprotocol() {
        let token = format!("{PROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode("x"));
        let twice = format!("{token},{token}");
        let with_other = format!("v4.channel.k8s.io, {token}");
        let bad = format!("a,{PROTOCOL_PREFIX}*");
        let binary = format!("a,{PROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode([0xff]));
        for (protocols, found) in [
            ("v4.channel.k8s.io", Ok(None)),
            (&with_other, Ok(Some("x".to_owned()))),
            (&token, Err("missing additional subprotocol")),
            (&twice, Err("multiple base64.bearer.authorization tokens specified")),
            (&bad, Err("invalid base64.bearer.authorization token encoding")),
            (&binary, Err("invalid base64.bearer.authorization token")),
        ] {
            let mut headers = header_map(&[
                ("connection", "keep-alive, Upgrade"),
                ("upgrade", "WebSocket"),
                ("sec-websocket-protocol", protocols),
            ]);
            assert_eq!(websocket_token(&headers), found, "{protocols}");
            headers.remove("upgrade");
            assert_eq!(websocket_token(&headers), Ok(None), "{protocols}");
        }
    }
}
