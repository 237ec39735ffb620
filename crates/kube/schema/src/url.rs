//! URLs as Go's `net/url` reads them, with its words for what it cannot read.

use mainstay_object::gotext::quote;

/// The parts that rules ask for.
#[derive(Debug, Default)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    /// User and password as they would be written; none if there is no `@`.
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) query: String,
    pub(crate) fragment: String,
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// Go's text: `parse "x y": …`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let whole = |what| format!("parse {}: {what}", quote(main));
        let mut url = read(main, false).map_err(whole)?;
        url.fragment =
            unescape(fragment).map_err(|what| format!("parse {}: {what}", quote(text)))?;
        Ok(url)
    }
}

/// Whether a text may stand in the first line of a request: an absolute URL or an absolute path
/// (`url.ParseRequestURI`).
pub(crate) fn is_request_uri(text: &str) -> bool {
    !text.is_empty() && (text == "*" || read(text, true).is_ok())
}

fn read(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    if (!scheme.is_empty() || (!request && !rest.starts_with("///")))
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        path = behind;
        read_authority(authority, &mut url)?;
    }
    unescape(path)?;
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = read_host(host)?;
    if let Some(user) = user {
        let good = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(good) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user)?;
        url.user = Some(user.to_owned());
    }
    Ok(())
}

fn read_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':')) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let bytes = host.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                check_escape(host, at)?;
                let escape = &host[at..at + 3];
                // Only bytes beyond ASCII may be escaped in a host, and the percent sign itself.
                if bytes[at + 1] < b'8' && escape != "%25" {
                    return Err(format!("invalid URL escape {}", quote(escape)));
                }
                at += 3;
            }
            byte if byte.is_ascii()
                && !byte.is_ascii_alphanumeric()
                && !b"-_.~!$&'()*+,;=:[]<>\"".contains(byte) =>
            {
                let shown = quote(&host[at..=at]);
                return Err(format!("invalid character {shown} in host name"));
            }
            _ => at += 1,
        }
    }
    Ok(host.to_owned())
}

/// Whether two hexadecimal digits follow a percent sign.
fn check_escape(text: &str, at: usize) -> Result<(), String> {
    let digits = text.as_bytes().get(at + 1..at + 3);
    if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
        return Ok(());
    }
    let shown: String = text[at..].chars().take(3).collect();
    Err(format!("invalid URL escape {}", quote(&shown)))
}

/// The text with its escapes resolved.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            check_escape(text, at)?;
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap_or_default());
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_in_the_words_of_go() {
        for (text, error) in [
            ("%zz", "parse \"%zz\": invalid URL escape \"%zz\""),
            ("https://x y", "parse \"https://x y\": invalid character \" \" in host name"),
            ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
            ("https://x:a/", "parse \"https://x:a/\": invalid port \":a\" after host"),
            (":x", "parse \":x\": missing protocol scheme"),
            ("1a:b", "parse \"1a:b\": first path segment in URL cannot contain colon"),
            (
                "https://a/\u{1}",
                "parse \"https://a/\\x01\": net/url: invalid control character in URL",
            ),
            ("https://a b@c", "parse \"https://a b@c\": net/url: invalid userinfo"),
            ("https://%41/", "parse \"https://%41/\": invalid URL escape \"%41\""),
        ] {
            assert_eq!(Url::parse(text).unwrap_err(), error);
        }
    }

    #[test]
    fn a_request_asks_for_an_absolute_url_or_path() {
        for (text, good) in [
            ("/a", true),
            ("//a", true),
            ("x:y", true),
            ("fe80::1%eth0", true),
            ("a/b", false),
            ("", false),
            ("/%zz", false),
        ] {
            assert_eq!(is_request_uri(text), good, "{text}");
        }
    }

    #[test]
    fn the_parts_are_told_apart() {
        let url = Url::parse("HTTPS://u:p@h:1/p%20q?a=b#c%20d").unwrap();
        assert_eq!((&*url.scheme, url.user.as_deref()), ("https", Some("u:p")));
        assert_eq!((&*url.host, &*url.query, &*url.fragment), ("h:1", "a=b", "c d"));
        assert_eq!(Url::parse("mailto:x").unwrap().host, "");
        assert_eq!(Url::parse("https:///p").unwrap().host, "");
    }
}
