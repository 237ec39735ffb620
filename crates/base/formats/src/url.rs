//! URLs, parsed as Go's `net/url` does it, with Go's errors.

use crate::address::{ParseAddressError, parse_address};
use mainstay_gocompat::{quote, quote_bytes};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

/// A URL. Unescaped parts are bytes, because they need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// The part after the scheme if it is not a path; escaped.
    opaque: String,
    user: Option<User>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The path as written, if its default encoding differs.
    raw_path: Option<String>,
    query: String,
    /// Whether the URL ended in `?`.
    empty_query: bool,
    fragment: Vec<u8>,
    raw_fragment: Option<String>,
    /// Whether the path had no `//` before it.
    no_host: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// The highest number of query parameters; a query with more counts as empty.
const MAX_PARAMETERS: usize = 10_000;

/// Why a text is not a URL, as Go prints it: `parse "x y": …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {source}", quote(text))]
pub struct ParseUrlError {
    /// The text.
    pub text: String,
    /// The reason.
    pub source: UrlSyntaxError,
}

/// The syntax error of a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlSyntaxError {
    /// The text has a control character.
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    /// The URI of a request is empty.
    #[error("empty url")]
    Empty,
    /// The URI of a request is neither an absolute URL nor an absolute path.
    #[error("invalid URI for request")]
    RelativeRequest,
    /// The first segment of a path without scheme has a colon.
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    /// The text begins with a colon.
    #[error("missing protocol scheme")]
    MissingScheme,
    /// User and password have a character that is not allowed there.
    #[error("net/url: invalid userinfo")]
    UserInfo,
    /// Brackets do not hold an IPv6 address, or text stands before them.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// The bracket before an address is not closed.
    #[error("missing ']' in host")]
    UnclosedBracket,
    /// Brackets do not hold an address.
    #[error("invalid host: {0}")]
    ParseAddress(#[from] ParseAddressError),
    /// The part after the last colon of the host is not a port.
    #[error("invalid port {} after host", quote(port))]
    Port {
        /// The port with its colon.
        port: String,
    },
    /// A percent sign does not begin an escape, or one that is not allowed there.
    #[error("invalid URL escape {}", quote_bytes(escape))]
    Escape {
        /// The escape as written.
        escape: Vec<u8>,
    },
    /// The host has a character that is not allowed there.
    #[error("invalid character {} in host name", quote_bytes(&[*character]))]
    HostCharacter {
        /// The character, which is ASCII.
        character: u8,
    },
}

impl Url {
    /// Parses a URL (`url.Parse`).
    ///
    /// # Errors
    ///
    /// If the text is not a URL.
    pub fn parse(text: &str) -> Result<Self, ParseUrlError> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse_url(main, false).map_err(|source| url_error(main, source))?;
        url.fragment =
            unescape(fragment, Part::Fragment).map_err(|source| url_error(text, source))?;
        url.raw_fragment =
            (escape(&url.fragment, Part::Fragment) != fragment).then(|| fragment.to_owned());
        Ok(url)
    }

    /// The scheme in lower case; empty if absent.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// User and password, escaped; none if the URL has no `@`.
    pub fn user(&self) -> Option<String> {
        self.user.as_ref().map(ToString::to_string)
    }

    /// The host with its port; empty if absent.
    pub fn host(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.host)
    }

    /// The host without port and without brackets.
    pub fn hostname(&self) -> Cow<'_, str> {
        let (host, _) = split_port(&self.host);
        let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        String::from_utf8_lossy(bare.unwrap_or(host))
    }

    /// The port; empty if absent.
    pub fn port(&self) -> &str {
        std::str::from_utf8(split_port(&self.host).1).unwrap_or_default()
    }

    /// The escaped path; as written, if that is a valid encoding.
    pub fn escaped_path(&self) -> Cow<'_, str> {
        match &self.raw_path {
            Some(raw) if is_valid(raw, Part::Path) => Cow::Borrowed(raw),
            _ if self.path == b"*" => Cow::Borrowed("*"),
            _ => Cow::Owned(escape(&self.path, Part::Path)),
        }
    }

    /// The query without its question mark.
    pub fn raw_query(&self) -> &str {
        &self.query
    }

    /// The query parameters in their order, without invalid ones.
    pub fn query(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let many = self.query.split('&').count() > MAX_PARAMETERS;
        let query = if many { "" } else { self.query.as_str() };
        query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(
            move |pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let key = unescape(key, Part::Query).ok()?;
                Some((text(key), text(unescape(value, Part::Query).ok()?)))
            },
        )
    }

    /// The part after the `#`.
    pub fn fragment(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.fragment)
    }
}

/// Checks a request URI: an absolute URL or an absolute path (`url.ParseRequestURI`).
///
/// # Errors
///
/// If the text is neither.
pub fn check_request_uri(text: &str) -> Result<(), ParseUrlError> {
    parse_url(text, true).map(|_| ()).map_err(|source| url_error(text, source))
}

fn url_error(text: &str, source: UrlSyntaxError) -> ParseUrlError {
    ParseUrlError { text: text.to_owned(), source }
}

fn parse_url(text: &str, request: bool) -> Result<Url, UrlSyntaxError> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(UrlSyntaxError::ControlCharacter);
    }
    if request && text.is_empty() {
        return Err(UrlSyntaxError::Empty);
    }
    if text == "*" {
        return Ok(Url { path: text.into(), ..Url::default() });
    }
    let (scheme, mut rest) = split_scheme(text)?;
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), ..Url::default() };
    if let Some(before) = rest.strip_suffix('?').filter(|before| !before.contains('?')) {
        url.empty_query = true;
        rest = before;
    } else if let Some((before, query)) = rest.split_once('?') {
        query.clone_into(&mut url.query);
        rest = before;
    }
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if request {
            return Err(UrlSyntaxError::RelativeRequest);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlSyntaxError::ColonInFirstSegment);
        }
    }
    let may_have_host = !scheme.is_empty() || (!request && !rest.starts_with("///"));
    if let Some(after) = rest.strip_prefix("//").filter(|_| may_have_host) {
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        parse_authority(authority, &mut url)?;
        rest = path;
    } else if !scheme.is_empty() && rest.starts_with('/') {
        url.no_host = true;
    }
    url.path = unescape(rest, Part::Path)?;
    url.raw_path = (escape(&url.path, Part::Path) != rest).then(|| rest.to_owned());
    Ok(url)
}

/// Splits off the scheme and its colon, if any.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlSyntaxError> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err(UrlSyntaxError::MissingScheme),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str, url: &mut Url) -> Result<(), UrlSyntaxError> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(host)?;
    if let Some(user) = user {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_allowed) {
            return Err(UrlSyntaxError::UserInfo);
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        url.user = Some(User {
            name: unescape(name, Part::User)?,
            password: password.map(|password| unescape(password, Part::User)).transpose()?,
        });
    }
    Ok(())
}

fn parse_host(host: &str) -> Result<Vec<u8>, UrlSyntaxError> {
    match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err(UrlSyntaxError::IpLiteral),
        None => {}
    }
    // Only the last colon counts. Newer Go versions are stricter for HTTP URLs, Kubernetes 1.35 is
    // not.
    if let Some(colon) = host.rfind(':') {
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

/// Parses an IPv6 address in brackets, with an optional zone and port.
fn parse_ip_literal(host: &str) -> Result<Vec<u8>, UrlSyntaxError> {
    let end = host.rfind(']').ok_or(UrlSyntaxError::UnclosedBracket)?;
    let (name, port) = (&host[1..end], &host[end + 1..]);
    check_port(port)?;
    let name = match name.find("%25") {
        Some(zone) => {
            let mut whole = unescape(&name[..zone], Part::Host)?;
            whole.extend(unescape(&name[zone..], Part::Zone)?);
            whole
        }
        None => unescape(name, Part::Host)?,
    };
    let text = String::from_utf8_lossy(&name);
    match parse_address(&text)?.address {
        IpAddr::V4(_) => Err(UrlSyntaxError::IpLiteral),
        IpAddr::V6(_) => Ok([b"[", &*name, b"]", port.as_bytes()].concat()),
    }
}

fn is_port(port: &[u8]) -> bool {
    match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn check_port(port: &str) -> Result<(), UrlSyntaxError> {
    if is_port(port.as_bytes()) {
        return Ok(());
    }
    Err(UrlSyntaxError::Port { port: port.to_owned() })
}

/// A host and its port without the colon.
fn split_port(host: &[u8]) -> (&[u8], &[u8]) {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if is_port(&host[colon..]) => (&host[..colon], &host[colon + 1..]),
        _ => (host, &[]),
    }
}

/// A part of a URL; each has its own rules of escaping.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

impl Part {
    /// Whether a byte is not escaped in this part.
    fn is_plain(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || match self {
                Self::Path => b"$&+,-./:;=@_~".contains(&byte),
                Self::Host | Self::Zone => b"!\"$&'()*+,-.:;<=>[]_~".contains(&byte),
                Self::User => b"$&+,-.;=_~".contains(&byte),
                Self::Query => b"-._~".contains(&byte),
                Self::Fragment => b"!$&()*+,-./:;=?@_~".contains(&byte),
            }
    }
}

/// Whether a text is a valid encoding of a path or fragment.
fn is_valid(escaped: &str, part: Part) -> bool {
    escaped.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || part.is_plain(byte))
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if part.is_plain(*byte) {
            out.push(char::from(*byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The unescaped text.
fn unescape(text: &str, part: Part) -> Result<Vec<u8>, UrlSyntaxError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let wrong =
                    |escape: &[u8]| Err(UrlSyntaxError::Escape { escape: escape.to_owned() });
                let Some(resolved) = hex(bytes.get(at + 1..at + 3)) else {
                    return wrong(&bytes[at..bytes.len().min(at + 3)]);
                };
                // In a host only non-ASCII bytes and the percent sign may be escaped.
                let forbidden = match part {
                    Part::Host => resolved < 0x80 && resolved != b'%',
                    Part::Zone => {
                        resolved != b'%' && resolved != b' ' && !Part::Host.is_plain(resolved)
                    }
                    _ => false,
                };
                if forbidden {
                    return wrong(&bytes[at..at + 3]);
                }
                out.push(resolved);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone)
                && byte.is_ascii()
                && !part.is_plain(*byte) =>
            {
                return Err(UrlSyntaxError::HostCharacter { character: *byte });
            }
            byte => out.push(*byte),
        }
        at += 1;
    }
    Ok(out)
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = digits? else { return None };
    let value = char::from(*high).to_digit(16)? * 16 + char::from(*low).to_digit(16)?;
    u8::try_from(value).ok()
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.name, Part::User))?;
        match &self.password {
            Some(password) => write!(f, ":{}", escape(password, Part::User)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let path = self.escaped_path();
            let has_host = !self.host.is_empty() || self.user.is_some();
            if has_host || (!self.scheme.is_empty() && !self.no_host && !self.path.is_empty()) {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&escape(&self.host, Part::Host))?;
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            if self.scheme.is_empty()
                && !has_host
                && path.split('/').next().is_some_and(|segment| segment.contains(':'))
            {
                f.write_str("./")?;
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.empty_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            match &self.raw_fragment {
                Some(raw) if is_valid(raw, Part::Fragment) => write!(f, "#{raw}")?,
                _ => write!(f, "#{}", escape(&self.fragment, Part::Fragment))?,
            }
        }
        Ok(())
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_urls_have_gos_errors() {
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
            assert_eq!(Url::parse(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn a_request_uri_is_an_absolute_url_or_path() {
        for (text, is_allowed) in [
            ("/a", true),
            ("//a", true),
            ("x:y", true),
            ("fe80::1%eth0", true),
            ("a/b", false),
            ("", false),
            ("/%zz", false),
        ] {
            assert_eq!(check_request_uri(text).is_ok(), is_allowed, "{text}");
        }
    }

    #[test]
    fn a_url_is_split_into_its_parts() {
        let url = Url::parse("HTTPS://u:p@h:1/p%20q?a=b#c%20d").unwrap();
        assert_eq!((url.scheme(), url.user().as_deref()), ("https", Some("u:p")));
        assert_eq!((&*url.host(), url.raw_query(), &*url.fragment()), ("h:1", "a=b", "c d"));
        assert_eq!(Url::parse("mailto:x").unwrap().host(), "");
        assert_eq!(Url::parse("https:///p").unwrap().host(), "");
    }
}
