//! Query parameters: parsing as in Kubernetes.

use mainstay_object::Status;

/// The decoded parameters of a request, in order. Empty pairs (`?&limit=5`) are skipped.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part after `?`.
    pub fn parse(text: Option<&str>) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (percent_decode(key, true), percent_decode(value, true)) {
                (Some(key), Some(value)) => pairs.push((key, value)),
                _ => {
                    return Err(Status::bad_request(format!("invalid URL escape in {pair:?}")));
                }
            }
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter, if it is present and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.first(name).filter(|value| !value.is_empty())
    }

    /// The first value of a parameter, if it is present; it may be empty.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.first(name)
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean as in Kubernetes: absent, `0` and `false` are false, any other value is true.
    pub fn flag(&self, name: &str) -> bool {
        self.optional_flag(name).unwrap_or_default()
    }

    /// A boolean that may be absent.
    pub fn optional_flag(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }
}

/// Parses a decimal integer as Go's `strconv.ParseInt` does; an error is status 400 with Go's text.
pub fn parse_int(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| {
        let reason = number_fault(text, &['+', '-']);
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {reason}"))
    })
}

/// A text is no decimal number; the message is that of Go's `strconv.ParseUint`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.ParseUint: parsing {text:?}: {reason}")]
pub struct ParseUintError {
    text: String,
    reason: &'static str,
}

/// Parses a decimal number as Go's `strconv.ParseUint` does.
///
/// # Errors
///
/// The text is no decimal number, or does not fit 64 bits.
pub fn parse_uint(text: &str) -> Result<u64, ParseUintError> {
    // Rust accepts a plus sign, Go does not.
    let parsed = if text.starts_with('+') { None } else { text.parse().ok() };
    parsed.ok_or_else(|| ParseUintError { text: text.to_owned(), reason: number_fault(text, &[]) })
}

/// Why a number does not parse, in Go's words.
fn number_fault(text: &str, signs: &[char]) -> &'static str {
    let digits = text.strip_prefix(signs).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { "value out of range" } else { "invalid syntax" }
}

/// Decodes `%xx`, and `+` as a space in queries; none for a malformed escape or invalid UTF-8.
pub fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.bytes().any(|b| b == b'%' || b == b'+') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if plus_is_space => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_skips_empty_pairs_and_decodes_escapes() {
        let query = Query::parse(Some("&limit=5&&labelSelector=a%3Db+c&watch&pretty=0")).unwrap();
        assert_eq!(query.raw("limit"), Some("5"));
        assert_eq!(query.raw("watch"), Some(""));
        assert_eq!(query.text("labelSelector"), Some("a=b c"));
        assert!(query.flag("watch"));
        assert!(!query.flag("pretty"));
        assert_eq!(query.optional_flag("other"), None);
        assert!(Query::parse(Some("a=%z")).is_err());
    }

    #[test]
    fn number_errors_have_the_text_of_go() {
        for (text, reason) in [
            ("", "invalid syntax"),
            ("x", "invalid syntax"),
            ("-", "invalid syntax"),
            ("1.5", "invalid syntax"),
            ("99999999999999999999", "value out of range"),
        ] {
            let message = parse_int(text).unwrap_err().message;
            assert_eq!(message, format!("strconv.ParseInt: parsing {text:?}: {reason}"));
        }
        assert_eq!(parse_int("-5").unwrap(), -5);
        assert_eq!(parse_uint("01"), Ok(1));
        for (text, reason) in [("-1", "invalid syntax"), ("+1", "invalid syntax")] {
            let message = format!("strconv.ParseUint: parsing {text:?}: {reason}");
            assert_eq!(parse_uint(text).unwrap_err().to_string(), message);
        }
    }
}
