//! String formats of OpenAPI schemas (`format`). The API ignores unknown formats.
//!
//! Email addresses are simpler than Go's: comments and folded white space are refused.

use crate::url::check_request_uri;
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// A known format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringFormat {
    /// The name as the schema writes it, for messages.
    pub name: Box<str>,
    check: Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    ObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid(Option<u8>),
    Isbn10,
    Isbn13,
    Isbn,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl StringFormat {
    /// The format of a name; none if the API does not check it. Dashes in the name are ignored.
    pub fn parse(name: &str) -> Option<Self> {
        let check = match name.replace('-', "").as_str() {
            "bsonobjectid" => Check::ObjectId,
            "uri" => Check::Uri,
            "email" => Check::Email,
            "hostname" => Check::Hostname,
            "ipv4" => Check::Ipv4,
            "ipv6" => Check::Ipv6,
            "cidr" => Check::Cidr,
            "mac" => Check::Mac,
            "uuid" => Check::Uuid(None),
            "uuid3" => Check::Uuid(Some(b'3')),
            "uuid4" => Check::Uuid(Some(b'4')),
            "uuid5" => Check::Uuid(Some(b'5')),
            "isbn" => Check::Isbn,
            "isbn10" => Check::Isbn10,
            "isbn13" => Check::Isbn13,
            "creditcard" => Check::CreditCard,
            "ssn" => Check::Ssn,
            "hexcolor" => Check::HexColor,
            "rgbcolor" => Check::RgbColor,
            "byte" => Check::Byte,
            "password" => Check::Password,
            "date" => Check::Date,
            "duration" => Check::Duration,
            "datetime" => Check::DateTime,
            "k8sshortname" => Check::ShortName,
            "k8slongname" => Check::LongName,
            _ => return None,
        };
        Some(Self { name: name.into(), check })
    }

    /// Whether a text has the format.
    pub fn matches(&self, text: &str) -> bool {
        match self.check {
            Check::ObjectId => text.len() == 24 && is_hex(text),
            Check::Uri => check_request_uri(text).is_ok(),
            Check::Email => is_email(text),
            Check::Hostname => is_hostname(text),
            Check::Ipv4 => text.contains('.') && is_address(text),
            Check::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Check::Cidr => is_cidr(text),
            Check::Mac => is_mac(text),
            Check::Uuid(version) => is_uuid(text, version),
            Check::Isbn10 => is_isbn10(text),
            Check::Isbn13 => is_isbn13(text),
            Check::Isbn => is_isbn10(text) || is_isbn13(text),
            Check::CreditCard => is_credit_card(text),
            Check::Ssn => text.len() == 11 && matches_regex(&SSN, text),
            Check::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Check::RgbColor => matches_regex(&RGB, text),
            Check::Byte => is_base64(text),
            Check::Password => true,
            Check::Date => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
            Check::Duration => crate::duration::parse(text).is_ok(),
            Check::DateTime => is_date_time(text),
            Check::ShortName => text.len() <= 63 && is_label(text),
            Check::LongName => text.len() <= 253 && text.split('.').all(is_label),
        }
    }
}

type Lazy = LazyLock<Option<Regex>>;

static SSN: Lazy = LazyLock::new(|| Regex::new("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static RGB: Lazy = LazyLock::new(|| {
    let part = "([01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])";
    Regex::new(&format!("^rgb\\(\\s*{part}\\s*,\\s*{part}\\s*,\\s*{part}\\s*\\)$")).ok()
});
static HOST: Lazy = LazyLock::new(|| {
    let letter = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let single = format!("{letter}(-?{letter}{{0,62}})?");
    let labels = format!(r"({letter}({inner}{{0,61}}{letter})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^({single}|{labels})$")).ok()
});
static TIME: Lazy = LazyLock::new(|| {
    Regex::new("^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$").ok()
});

fn matches_regex(regex: &Lazy, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match text.as_bytes() {
        [only] => inner(*only),
        [first, middle @ .., last] => {
            inner(*first) && inner(*last) && middle.iter().all(|byte| inner(*byte) || *byte == b'-')
        }
        [] => false,
    }
}

fn is_email(text: &str) -> bool {
    let address = match text.strip_suffix('>') {
        Some(text) => text.rsplit_once('<').map_or("", |parts| parts.1),
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| {
                c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
            })
    };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || local.split('.').all(atom)) && (literal || domain.split('.').all(atom))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && matches_regex(&HOST, text)
}

/// Whether a text is an address. IPv4 octets may have leading zeros, as old Go versions accept
/// them.
fn is_address(text: &str) -> bool {
    let (head, tail) = text.rfind(':').map_or(("", text), |at| text.split_at(at + 1));
    let plain: Vec<&str> = tail
        .split('.')
        .map(|part| {
            let trimmed = part.trim_start_matches('0');
            if trimmed.is_empty() && !part.is_empty() { "0" } else { trimmed }
        })
        .collect();
    let plain = format!("{head}{}", plain.join("."));
    if head.is_empty() {
        plain.parse::<Ipv4Addr>().is_ok()
    } else {
        plain.parse::<Ipv6Addr>().is_ok()
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    let known = if address.contains('.') {
        is_address(address)
    } else {
        address.parse::<Ipv6Addr>().is_ok()
    };
    known && bits.bytes().all(|b| b.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|b| b <= most)
}

fn is_mac(text: &str) -> bool {
    let parts = |mark: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(mark).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == digits && is_hex(part))
    };
    let plain = [12, 16, 40].contains(&text.len()) && is_hex(text);
    plain || parts(':', 2, [6, 8, 20]) || parts('-', 2, [6, 8, 20]) || parts('.', 4, [3, 4, 10])
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    // Each of the four dashes is optional.
    let mut rest = text;
    let mut digits = String::with_capacity(32);
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, behind)) = rest.split_at_checked(length) else { return false };
        digits.push_str(part);
        rest = behind;
    }
    let bytes = digits.as_bytes();
    rest.is_empty()
        && is_hex(&digits)
        && version.is_none_or(|version| bytes[12] == version)
        // Upstream does not check the variant of version 3.
        && (matches!(version, None | Some(b'3'))
            || matches!(bytes[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'))
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '-')).collect()
}

fn value_of(byte: u8) -> u32 {
    u32::from(byte.wrapping_sub(b'0'))
}

fn is_isbn10(text: &str) -> bool {
    let text = digits_of(text);
    let Some((last, head)) = text.as_bytes().split_last() else { return false };
    if head.len() != 9 || !head.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' | b'x' => 10,
        digit if digit.is_ascii_digit() => value_of(*digit),
        _ => return false,
    };
    let sum: u32 = (1..).zip(head).map(|(weight, byte)| weight * value_of(*byte)).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = digits_of(text);
    if text.len() != 13 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let sum: u32 = text
        .bytes()
        .zip([1, 3].into_iter().cycle())
        .map(|(byte, weight)| weight * value_of(byte))
        .sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.bytes().filter(u8::is_ascii_digit).map(value_of).collect();
    let starts = |prefix: u32, length: usize| {
        digits.iter().take(length).fold(0, |number, digit| number * 10 + digit) == prefix
    };
    let ranged =
        |length: usize, from: u32, to: u32| (from..=to).any(|prefix| starts(prefix, length));
    let known = match digits.len() {
        13 => starts(4, 1),
        14 => ranged(3, 300, 305) || starts(36, 2) || starts(38, 2),
        15 => starts(34, 2) || starts(37, 2) || starts(2131, 4) || starts(1800, 4),
        16 => {
            starts(4, 1) || ranged(2, 51, 55) || starts(6011, 4) || starts(65, 2) || starts(35, 2)
        }
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { *digit })
        .sum();
    known && sum.is_multiple_of(10)
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    date.len() == 10 && date.parse::<jiff::civil::Date>().is_ok() && matches_regex(&TIME, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_valid_and_refuses_invalid_texts() {
        for (format, accepted, refused) in [
            ("bsonobjectid", vec!["507f1f77bcf86cd799439011"], vec!["507f"]),
            (
                "uri",
                vec!["https://a.b/c?d", "/path", "mailto:x", "http://[::1]:80/", "a::1%b"],
                vec!["", "a.b", "http://a b/", "http://a:x/", "/%zz"],
            ),
            ("email", vec!["a@b.c", "A <a.b@c>"], vec!["a", "@b", "a@", "a b@c"]),
            (
                "hostname",
                vec!["a", "example.com", "my-host.example.com"],
                vec!["-a", "a_b", "my-long-host", "a.b.c1"],
            ),
            ("ipv4", vec!["1.2.3.4", "01.2.3.4"], vec!["1.2.3", "1.2.3.256", "::1"]),
            ("ipv6", vec!["::1", "fe80::1"], vec!["1.2.3.4", "::g"]),
            ("cidr", vec!["10.0.0.0/8", "fe80::/10"], vec!["10.0.0.0", "10.0.0.0/33", "x/8"]),
            (
                "mac",
                vec!["00:11:22:33:44:55", "0011.2233.4455", "001122334455"],
                vec!["00:11", "00:11:22:33:44:5g"],
            ),
            (
                "uuid",
                vec!["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"],
                vec!["123"],
            ),
            (
                "uuid4",
                vec!["123e4567-e89b-42d3-a456-426614174000"],
                vec!["123e4567-e89b-12d3-a456-426614174000"],
            ),
            ("isbn", vec!["0321751043", "978-0321751041"], vec!["0321751044", "x"]),
            ("creditcard", vec!["4111 1111 1111 1111"], vec!["4111 1111 1111 1112", "1"]),
            ("ssn", vec!["111-22-3333"], vec!["111-22-333", "111223333"]),
            ("hexcolor", vec!["#FFF", "00ff00"], vec!["#ffff", "zzz"]),
            ("rgbcolor", vec!["rgb(0, 1,255)"], vec!["rgb(0,1,256)", "rgb(1)"]),
            ("byte", vec!["YQ==", "YWJj"], vec!["", "YQ", "Y*=="]),
            ("date", vec!["2026-02-28"], vec!["2026-02-30", "20260228"]),
            ("duration", vec!["1h30m", "22 ns", "3 days", "0"], vec!["", "x", "5"]),
            (
                "date-time",
                vec!["2026-01-02T03:04:05Z", "2026-01-02t03:04:05.1+01:00"],
                vec!["2026-01-02", "2026-01-02T25:00:00Z", "2026-01-02T03:04:05"],
            ),
            ("k8s-short-name", vec!["a-b"], vec!["A", "a.b", "-"]),
            ("k8s-long-name", vec!["a-b.c"], vec!["a..b"]),
        ] {
            let format = StringFormat::parse(format).unwrap();
            for text in accepted {
                assert!(format.matches(text), "{format:?} {text}");
            }
            for text in refused {
                assert!(!format.matches(text), "{format:?} {text}");
            }
        }
        assert!(StringFormat::parse("int32").is_none());
    }
}
