//! DER encoding (X.690): writing and parsing, as far as certificates need them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const SEQUENCE: u8 = 0x30;

/// A value with its tag and length.
pub(crate) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    let length = content.len().to_be_bytes();
    let first = length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1);
    match (&length[first..], u8::try_from(length.len() - first)) {
        ([short @ 0..=0x7f], _) => out.push(*short),
        (long, Ok(count)) => {
            out.push(0x80 | count);
            out.extend_from_slice(long);
        }
        // A length has no more than eight bytes.
        (_, Err(_)) => {}
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of encoded values.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// A positive integer from its big-endian bytes.
pub(crate) fn integer(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0);
    let significant = first.map_or(&[0][..], |index| &bytes[index..]);
    let sign: &[u8] =
        if significant.first().is_some_and(|byte| byte & 0x80 != 0) { &[0] } else { &[] };
    value(INTEGER, &[sign, significant].concat())
}

/// A bit string of whole bytes.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    value(BIT_STRING, &[&[0], bytes].concat())
}

/// A named bit list: the bits of a number up to its highest set one, the lowest bit first.
pub(crate) fn named_bits(set: u16) -> Vec<u8> {
    let [low, high] = set.to_le_bytes().map(u8::reverse_bits);
    let bytes: &[u8] = if high == 0 { &[low] } else { &[low, high] };
    let unused = bytes.last().map_or(0, |byte| byte.trailing_zeros().min(7));
    let unused = u8::try_from(unused).unwrap_or_default();
    value(BIT_STRING, &[&[unused], bytes].concat())
}

/// A time in the form of certificates (RFC 5280, 4.1.2.5).
pub(crate) fn time(timestamp: Timestamp) -> Vec<u8> {
    let utc = timestamp.to_zoned(TimeZone::UTC);
    if (1950..2050).contains(&utc.year()) {
        value(0x17, utc.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        value(0x18, utc.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

/// The first value (tag, all its bytes, its content) and the bytes after it.
pub(crate) struct DerValue<'a> {
    pub(crate) tag: u8,
    pub(crate) whole: &'a [u8],
    pub(crate) content: &'a [u8],
    pub(crate) rest: &'a [u8],
}

/// The first of several encoded values; none at the end or for malformed bytes. Tags above 30 are
/// not supported: certificates have none.
pub(crate) fn first(bytes: &[u8]) -> Option<DerValue<'_>> {
    let (tag, length) = (*bytes.first()?, *bytes.get(1)?);
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (head, length) = match length {
        short @ 0..=0x7f => (2, usize::from(short)),
        0x80 => return None,
        long => {
            let count = usize::from(long & 0x7f);
            let digits = bytes.get(2..2 + count).filter(|_| count <= 4)?;
            (2 + count, digits.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
        }
    };
    let end = head.checked_add(length)?;
    Some(DerValue {
        tag,
        whole: bytes.get(..end)?,
        content: bytes.get(head..end)?,
        rest: bytes.get(end..)?,
    })
}

/// All values in sequence, up to the first malformed one.
pub(crate) fn all(mut bytes: &[u8]) -> impl Iterator<Item = DerValue<'_>> {
    std::iter::from_fn(move || {
        let found = first(bytes)?;
        bytes = found.rest;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_in_the_shortest_form_and_decoded_again() {
        let heads: [(usize, &[u8]); 4] =
            [(0, &[4, 0]), (127, &[4, 0x7f]), (128, &[4, 0x81, 0x80]), (300, &[4, 0x82, 1, 0x2c])];
        for (length, head) in heads {
            let encoded = value(OCTET_STRING, &vec![7; length]);
            assert!(encoded.starts_with(head), "{encoded:?}");
            let decoded = first(&encoded).unwrap();
            assert_eq!(
                (decoded.tag, decoded.content.len(), decoded.rest.len()),
                (OCTET_STRING, length, 0)
            );
            assert!(first(&encoded[..encoded.len() - 1]).is_none(), "{length}");
        }
        for (bytes, encoded) in [
            (&[0_u8, 0][..], &[2, 1, 0][..]),
            (&[0, 0x7f], &[2, 1, 0x7f]),
            (&[0x80, 1], &[2, 3, 0, 0x80, 1]),
        ] {
            assert_eq!(integer(bytes), encoded);
        }
        for (set, encoded) in [
            (0b1, &[3_u8, 2, 7, 0x80][..]),
            (0b101, &[3, 2, 5, 0xa0]),
            (1 << 8, &[3, 3, 7, 0, 0x80]),
        ] {
            assert_eq!(named_bits(set), encoded);
        }
        for malformed in
            [&[][..], &[0x30], &[0x30, 0x80, 0, 0], &[0x1f, 1, 0], &[4, 0x85, 1, 1, 1, 1, 1]]
        {
            assert!(first(malformed).is_none(), "{malformed:?}");
        }
    }

    #[test]
    fn times_have_a_two_digit_year_until_2050() {
        let text = |time: &str| {
            String::from_utf8_lossy(&super::time(time.parse().unwrap())[2..]).into_owned()
        };
        assert_eq!(text("2026-01-02T03:04:05Z"), "260102030405Z");
        assert_eq!(text("2050-01-02T03:04:05Z"), "20500102030405Z");
    }
}
