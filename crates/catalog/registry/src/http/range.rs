//! Range requests, for clients that resume a download.

use std::ops::Range;

/// The meaning of a `Range` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeRequest {
    /// The whole content: no range, or several, which are not served separately.
    All,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Not satisfiable, for this reason.
    Unsatisfiable(&'static str),
}

const NO_RANGE: RangeRequest = RangeRequest::Unsatisfiable("invalid range");

/// Parses a `Range` header for content of a size.
pub(super) fn read(header: &[u8], size: u64) -> RangeRequest {
    if header.is_empty() {
        return RangeRequest::All;
    }
    let text = std::str::from_utf8(header).ok().and_then(|text| text.strip_prefix("bytes="));
    let Some(text) = text else { return NO_RANGE };
    let (mut parts, mut beyond) = (Vec::new(), false);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match read_one(part, size) {
            None => return NO_RANGE,
            Some(range) if range.is_empty() => beyond = true,
            Some(range) => parts.push(range),
        }
    }
    match <[_; 1]>::try_from(parts) {
        Ok([only]) => RangeRequest::Part(only),
        // For empty content, an empty range is everything.
        Err(none) if none.is_empty() && beyond && size > 0 => {
            RangeRequest::Unsatisfiable("invalid range: failed to overlap")
        }
        Err(_) => RangeRequest::All,
    }
}

/// Parses one range; it is empty if it lies beyond the end. `None` if it is invalid.
fn read_one(part: &str, size: u64) -> Option<Range<u64>> {
    let (start, end) = part.split_once('-')?;
    let (start, end) = (start.trim(), end.trim());
    if start.is_empty() {
        let last = number(end)?;
        return Some(size.saturating_sub(last)..size);
    }
    let start = number(start)?;
    if start >= size {
        return Some(size..size);
    }
    let end = if end.is_empty() { size } else { number(end)?.saturating_add(1).min(size) };
    (start < end).then_some(start..end)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_request_gets_one_part_or_everything() {
        const BEYOND: RangeRequest =
            RangeRequest::Unsatisfiable("invalid range: failed to overlap");
        for (header, wanted) in [
            ("", RangeRequest::All),
            ("bytes=0-3", RangeRequest::Part(0..4)),
            ("bytes=2-", RangeRequest::Part(2..10)),
            ("bytes=-3", RangeRequest::Part(7..10)),
            ("bytes=-30", RangeRequest::Part(0..10)),
            ("bytes=8-99", RangeRequest::Part(8..10)),
            ("bytes= 1 - 2 ", RangeRequest::Part(1..3)),
            ("bytes=0-1,4-5", RangeRequest::All),
            ("bytes=0-1,40-50", RangeRequest::Part(0..2)),
            ("bytes=", RangeRequest::All),
            ("bytes=10-", BEYOND),
            ("bytes=-0", BEYOND),
            ("bytes=3-2", NO_RANGE),
            ("bytes=a-2", NO_RANGE),
            ("bytes=+1-2", NO_RANGE),
            ("bytes=-", NO_RANGE),
            ("bytes=5", NO_RANGE),
            ("lines=1-2", NO_RANGE),
        ] {
            assert_eq!(read(header.as_bytes(), 10), wanted, "{header}");
        }
        assert_eq!(read(b"bytes=0-", 0), RangeRequest::All);
    }
}
