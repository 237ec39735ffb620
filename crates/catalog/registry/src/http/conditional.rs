//! Whether whoever asks has the content already.

use crate::Index;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What identifies the content of a catalog.
///
/// The tag is weak: it is made of what the catalog means, so that a catalog that is formatted
/// anew, or moved to other files, is still known. Byte ranges therefore go by the time alone.
pub(super) struct Mark {
    tag: String,
    /// In full seconds; more cannot be written.
    time: Option<SystemTime>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Send the content.
    Go,
    /// Say that there is nothing new.
    NotModified,
    /// Say that what was asked for is not there any more.
    Failed,
}

impl Mark {
    pub(super) fn of(index: &Index) -> Self {
        let digest = index.catalog().digest();
        let hash = digest.strip_prefix("sha256:").unwrap_or(digest);
        // No time is known if it is before all computers.
        let seconds =
            index.modified().duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_secs());
        let time = (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds));
        Self { tag: format!("W/\"{hash}\""), time }
    }

    /// Marks an answer.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        super::set(headers, header::ETAG, &self.tag);
        if let Some(time) = self.time {
            super::set(headers, header::LAST_MODIFIED, httpdate::HttpDate::from(time));
        }
    }

    /// Judges the conditions of a request that reads (RFC 9110 §13.2.2).
    pub(super) fn judge(&self, asked: &HeaderMap) -> Verdict {
        let holds = match tags(asked, &header::IF_MATCH) {
            // Only strong tags match here, and there are none.
            Some(tags) => tags == Tags::Any,
            None => match (date(asked, &header::IF_UNMODIFIED_SINCE), self.time) {
                (Some(since), Some(time)) => time <= since,
                _ => true,
            },
        };
        if !holds {
            return Verdict::Failed;
        }
        let has = match tags(asked, &header::IF_NONE_MATCH) {
            Some(Tags::Any) => true,
            Some(Tags::These(tags)) => tags.iter().any(|tag| opaque(tag) == opaque(&self.tag)),
            None => match (date(asked, &header::IF_MODIFIED_SINCE), self.time) {
                (Some(since), Some(time)) => time <= since,
                _ => false,
            },
        };
        if has && !mainstay_fault::is_on("known-content-is-sent-again") {
            Verdict::NotModified
        } else {
            Verdict::Go
        }
    }

    /// Whether a range of this content is of use to who has another range of it.
    pub(super) fn allows_range(&self, asked: &HeaderMap) -> bool {
        !asked.contains_key(header::IF_RANGE)
            || self.time.is_some_and(|time| date(asked, &header::IF_RANGE) == Some(time))
    }
}

/// What a list of tags says.
#[derive(Debug, PartialEq, Eq)]
enum Tags<'a> {
    Any,
    These(Vec<&'a str>),
}

/// The tags of a header, as far as they can be read; `None` if it is not there or empty.
fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Tags<'a>> {
    let mut rest = text(headers, name)?;
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        if rest.starts_with('*') {
            return Some(Tags::Any);
        }
        let start = if rest.starts_with("W/\"") { 3 } else { usize::from(rest.starts_with('"')) };
        let end = rest.get(start..).filter(|_| start > 0).and_then(|tag| tag.find('"'));
        let Some(end) = end else { return Some(Tags::These(found)) };
        let (tag, after) = rest.split_at(start + end + 1);
        found.push(tag);
        rest = after;
    }
}

/// A tag without its weakness.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// A date; what is none counts as not there.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(HeaderValue::to_str)?.ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "Fri, 02 Jan 2026 15:04:04 GMT";
    const THEN: &str = "Fri, 02 Jan 2026 15:04:05 GMT";
    const AFTER: &str = "Fri, 02 Jan 2026 15:04:06 GMT";

    fn mark() -> Mark {
        Mark { tag: "W/\"ab\"".into(), time: httpdate::parse_http_date(THEN).ok() }
    }

    fn asked(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |&(name, value): &(&'static str, _)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn who_has_the_content_gets_none() {
        use Verdict::{Failed, Go, NotModified};
        for (headers, verdict) in [
            (&[][..], Go),
            (&[("if-none-match", "W/\"ab\"")], NotModified),
            (&[("if-none-match", "\"ab\"")], NotModified),
            (&[("if-none-match", "\"x\", W/\"ab\"")], NotModified),
            (&[("if-none-match", ",, *")], NotModified),
            (&[("if-none-match", "\"x\"")], Go),
            (&[("if-none-match", "ab")], Go),
            (&[("if-none-match", "\"ab")], Go),
            (&[("if-modified-since", THEN)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", "Friday, 02-Jan-26 15:04:05 GMT")], NotModified),
            (&[("if-modified-since", "Fri Jan  2 15:04:05 2026")], NotModified),
            (&[("if-modified-since", BEFORE)], Go),
            (&[("if-modified-since", "yesterday")], Go),
            // The tag is more exact, so the time is not looked at.
            (&[("if-none-match", "\"x\""), ("if-modified-since", AFTER)], Go),
            (&[("if-match", "*")], Go),
            (&[("if-match", "\"ab\"")], Failed),
            (&[("if-match", "*"), ("if-none-match", "*")], NotModified),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", THEN)], Go),
            (&[("if-match", "*"), ("if-unmodified-since", BEFORE)], Go),
        ] {
            assert_eq!(mark().judge(&asked(headers)), verdict, "{headers:?}");
        }
    }

    #[test]
    fn ranges_belong_together_by_their_time() {
        for (headers, allowed) in [
            (&[][..], true),
            (&[("if-range", THEN)], true),
            (&[("if-range", BEFORE)], false),
            (&[("if-range", AFTER)], false),
            (&[("if-range", "W/\"ab\"")], false),
        ] {
            assert_eq!(mark().allows_range(&asked(headers)), allowed, "{headers:?}");
        }
    }
}
