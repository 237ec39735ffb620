//! Writing and walking DER (X.690): as much of it as certificates need.

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BITS: u8 = 0x03;
pub(crate) const BYTES: u8 = 0x04;
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

/// A positive integer from its bytes.
pub(crate) fn integer(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0);
    let significant = first.map_or(&[0][..], |at| &bytes[at..]);
    let sign: &[u8] =
        if significant.first().is_some_and(|byte| byte & 0x80 != 0) { &[0] } else { &[] };
    value(INTEGER, &[sign, significant].concat())
}

/// Bits of whole bytes.
pub(crate) fn bits(bytes: &[u8]) -> Vec<u8> {
    value(BITS, &[&[0], bytes].concat())
}

/// The lowest bits of a number, the lowest first, as many as there are set ones (a named bit list).
pub(crate) fn named_bits(set: u16) -> Vec<u8> {
    let [low, high] = set.to_le_bytes().map(u8::reverse_bits);
    let bytes: &[u8] = if high == 0 { &[low] } else { &[low, high] };
    let unused = bytes.last().map_or(0, |byte| byte.trailing_zeros().min(7));
    let unused = u8::try_from(unused).unwrap_or_default();
    value(BITS, &[&[unused], bytes].concat())
}

/// A moment, in the form that certificates must have (RFC 5280, 4.1.2.5).
pub(crate) fn time(at: Timestamp) -> Vec<u8> {
    let at = at.to_zoned(TimeZone::UTC);
    if (1950..2050).contains(&at.year()) {
        value(0x17, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes())
    } else {
        value(0x18, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }
}

/// The first value (tag, whole, content) and what follows it.
pub(crate) struct First<'a> {
    pub(crate) tag: u8,
    pub(crate) whole: &'a [u8],
    pub(crate) content: &'a [u8],
    pub(crate) rest: &'a [u8],
}

/// The first of several encoded values; none if there is none, or it is broken. Tags above 30 are not
/// understood: certificates have none.
pub(crate) fn first(bytes: &[u8]) -> Option<First<'_>> {
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
    Some(First {
        tag,
        whole: bytes.get(..end)?,
        content: bytes.get(head..end)?,
        rest: bytes.get(end..)?,
    })
}

/// All values one after the other; stops where one is broken.
pub(crate) fn all(mut bytes: &[u8]) -> impl Iterator<Item = First<'_>> {
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
    fn values_are_written_in_their_shortest_form_and_read_back() {
        let heads: [(usize, &[u8]); 4] =
            [(0, &[4, 0]), (127, &[4, 0x7f]), (128, &[4, 0x81, 0x80]), (300, &[4, 0x82, 1, 0x2c])];
        for (length, head) in heads {
            let written = value(BYTES, &vec![7; length]);
            assert!(written.starts_with(head));
            let read = first(&written).unwrap();
            assert_eq!((read.tag, read.content.len(), read.rest.len()), (BYTES, length, 0));
            assert!(first(&written[..written.len() - 1]).is_none());
        }
        for (bytes, written) in [
            (&[0_u8, 0][..], &[2, 1, 0][..]),
            (&[0, 0x7f], &[2, 1, 0x7f]),
            (&[0x80, 1], &[2, 3, 0, 0x80, 1]),
        ] {
            assert_eq!(integer(bytes), written);
        }
        for (set, written) in [
            (0b1, &[3_u8, 2, 7, 0x80][..]),
            (0b101, &[3, 2, 5, 0xa0]),
            (1 << 8, &[3, 3, 7, 0, 0x80]),
        ] {
            assert_eq!(named_bits(set), written);
        }
        for broken in
            [&[][..], &[0x30], &[0x30, 0x80, 0, 0], &[0x1f, 1, 0], &[4, 0x85, 1, 1, 1, 1, 1]]
        {
            assert!(first(broken).is_none());
        }
    }

    #[test]
    fn moments_are_short_until_2050() {
        let text = |time: &str| {
            String::from_utf8_lossy(&super::time(time.parse().unwrap())[2..]).into_owned()
        };
        assert_eq!(text("2026-01-02T03:04:05Z"), "260102030405Z");
        assert_eq!(text("2050-01-02T03:04:05Z"), "20500102030405Z");
    }
}
