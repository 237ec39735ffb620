//! Human-readable ages.

use jiff::Timestamp;
pub use mainstay_clock::format_age;

/// The age of an RFC 3339 time; `<unknown>` without one.
pub(super) fn since(text: Option<&str>, now: Timestamp) -> String {
    match text.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) => format_age(now.duration_since(time)),
        None => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_missing_or_unreadable_are_unknown() {
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        assert_eq!(since(Some("2026-01-01T00:00:00Z"), now), "60s");
        assert_eq!(since(Some("2026-01-01T00:00:00.500000Z"), now), "59s");
        assert_eq!(since(Some("soon"), now), "<unknown>");
        assert_eq!(since(None, now), "<unknown>");
    }
}
