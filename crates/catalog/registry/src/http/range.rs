//! Range requests, for clients that resume a download.

use std::ops::Range;

/// The meaning of a `Range` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeRequest {
    /// The whole content: no range, or ranges that together are longer than the content.
    All,
    /// These ranges of bytes; none is empty.
    Parts(Vec<Range<u64>>),
    /// All ranges lie beyond the end.
    Beyond,
    /// This is no list of ranges.
    Invalid,
}

/// Parses a `Range` header for content of a size.
pub(super) fn read(header: &[u8], size: u64) -> RangeRequest {
    if header.is_empty() {
        return RangeRequest::All;
    }
    let text = std::str::from_utf8(header).ok().and_then(|text| text.strip_prefix("bytes="));
    let Some(text) = text else { return RangeRequest::Invalid };
    let (mut parts, mut beyond) = (Vec::new(), false);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match read_one(part, size) {
            None => return RangeRequest::Invalid,
            Some(range) if range.is_empty() => beyond = true,
            Some(range) => parts.push(range),
        }
    }
    let length = parts.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add);
    if parts.is_empty() {
        // For empty content, an empty range is everything.
        return if beyond && size > 0 { RangeRequest::Beyond } else { RangeRequest::All };
    }
    if length > size { RangeRequest::All } else { RangeRequest::Parts(parts) }
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
    fn a_range_request_gets_parts_or_everything() {
        let parts = |ranges: &[(u64, u64)]| {
            RangeRequest::Parts(ranges.iter().map(|&(start, end)| start..end).collect())
        };
        let (all, beyond, invalid) =
            (RangeRequest::All, RangeRequest::Beyond, RangeRequest::Invalid);
        for (header, wanted) in [
            ("", &all),
            ("bytes=0-3", &parts(&[(0, 4)])),
            ("bytes=2-", &parts(&[(2, 10)])),
            ("bytes=-3", &parts(&[(7, 10)])),
            ("bytes=-30", &parts(&[(0, 10)])),
            ("bytes=8-99", &parts(&[(8, 10)])),
            ("bytes= 1 - 2 ", &parts(&[(1, 3)])),
            ("bytes=0-1,4-5", &parts(&[(0, 2), (4, 6)])),
            ("bytes=4-5, ,0-1", &parts(&[(4, 6), (0, 2)])),
            ("bytes=0-1,40-50", &parts(&[(0, 2)])),
            ("bytes=0-6,0-2", &parts(&[(0, 7), (0, 3)])),
            ("bytes=0-6,0-3", &all),
            ("bytes=", &all),
            ("bytes=10-", &beyond),
            ("bytes=-0", &beyond),
            ("bytes=3-2", &invalid),
            ("bytes=a-2", &invalid),
            ("bytes=+1-2", &invalid),
            ("bytes=-", &invalid),
            ("bytes=5", &invalid),
            ("bytes=0-1,x", &invalid),
            ("lines=1-2", &invalid),
        ] {
            assert_eq!(read(header.as_bytes(), 10), *wanted, "{header}");
        }
        assert_eq!(read(b"bytes=0-", 0), RangeRequest::All);
    }
}
