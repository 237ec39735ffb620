//! Conditional requests: whether the client has the content already.

use crate::documents::{ServedDocuments, encoding::Coding};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The validators of a catalog's content: `ETag` and `Last-Modified`.
///
/// The tag is strong: documents with equal digests have equal bytes in equal order. A compressed
/// form has other bytes, so it has a tag of its own, with the coding as a suffix.
pub(super) struct Validators {
    digest: String,
    /// In whole seconds, the resolution of HTTP dates.
    time: Option<SystemTime>,
}

/// The result of the conditions of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// Send the content.
    Passed,
    /// Send 304: the content is unchanged.
    NotModified,
    /// Send 412: a precondition failed.
    Failed,
}

impl Validators {
    pub(super) fn of(documents: &ServedDocuments) -> Self {
        // A time before 1970 counts as unknown.
        let modified = documents.modified().duration_since(UNIX_EPOCH);
        let seconds = modified.map_or(0, |duration| duration.as_secs());
        let time = (seconds > 0).then(|| UNIX_EPOCH + Duration::from_secs(seconds));
        Self { digest: documents.digest().to_owned(), time }
    }

    /// Sets the validators of a response.
    pub(super) fn write(&self, headers: &mut HeaderMap, coding: Option<Coding>) {
        let (digest, suffix) = (&self.digest, suffix(coding));
        super::response::set(headers, header::ETAG, format_args!("\"{digest}{suffix}\""));
        if let Some(time) = self.time {
            super::response::set(headers, header::LAST_MODIFIED, httpdate::HttpDate::from(time));
        }
    }

    /// Evaluates the conditions of a `GET` or `HEAD` request (RFC 9110 §13.2.2).
    pub(super) fn evaluate(&self, request_headers: &HeaderMap) -> Precondition {
        let holds = match tags(request_headers, &header::IF_MATCH) {
            Some(Tags::Any) => true,
            // A weak tag never matches here.
            Some(Tags::These(tags)) => tags.iter().any(|tag| self.has_tag(tag)),
            None => match (date(request_headers, &header::IF_UNMODIFIED_SINCE), self.time) {
                (Some(since), Some(time)) => time <= since,
                _ => true,
            },
        };
        if !holds {
            return Precondition::Failed;
        }
        let has = match tags(request_headers, &header::IF_NONE_MATCH) {
            Some(Tags::Any) => true,
            Some(Tags::These(tags)) => tags.iter().any(|tag| self.has_tag(opaque(tag))),
            None => match (date(request_headers, &header::IF_MODIFIED_SINCE), self.time) {
                (Some(since), Some(time)) => time <= since,
                _ => false,
            },
        };
        if has && !mainstay_fault::is_on("known-content-is-sent-again") {
            Precondition::NotModified
        } else {
            Precondition::Passed
        }
    }

    /// Whether a range of this content fits the range that the client has (`If-Range`). Ranges are
    /// those of the uncompressed form.
    pub(super) fn allows_range(&self, request_headers: &HeaderMap) -> bool {
        let Some(condition) = text(request_headers, &header::IF_RANGE) else { return true };
        if condition.starts_with(['"', 'W']) && condition.ends_with('"') {
            return condition.trim_matches('"') == self.digest;
        }
        self.time.is_some_and(|time| date(request_headers, &header::IF_RANGE) == Some(time))
    }

    /// Whether a strong tag is that of one of the forms of the content.
    fn has_tag(&self, tag: &str) -> bool {
        let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        let form = tag.and_then(|tag| tag.strip_prefix(&*self.digest));
        let forms = [None, Some(Coding::Gzip), Some(Coding::Zstd)];
        form.is_some_and(|form| forms.iter().any(|&coding| suffix(coding) == form))
    }
}

/// What tells the tag of a compressed form from that of the content.
const fn suffix(coding: Option<Coding>) -> &'static str {
    match coding {
        None => "",
        Some(Coding::Gzip) => "-gzip",
        Some(Coding::Zstd) => "-zstd",
    }
}

/// A list of tags.
#[derive(Debug, PartialEq, Eq)]
enum Tags<'a> {
    Any,
    These(Vec<&'a str>),
}

/// The readable tags of a header; `None` if the header is absent or empty.
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

/// A tag without the mark of a weak one.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// A date header; an invalid date counts as absent.
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

    fn validators() -> Validators {
        Validators { digest: "ab".into(), time: httpdate::parse_http_date(THEN).ok() }
    }

    fn request_headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |&(name, value): &(&'static str, _)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn a_client_with_current_content_gets_304() {
        use Precondition::{Failed, NotModified, Passed};
        for (headers, verdict) in [
            (&[][..], Passed),
            (&[("if-none-match", "W/\"ab\"")], NotModified),
            (&[("if-none-match", "\"ab\"")], NotModified),
            (&[("if-none-match", "\"x\", W/\"ab\"")], NotModified),
            (&[("if-none-match", "\"ab-gzip\"")], NotModified),
            (&[("if-none-match", "\"ab-br\"")], Passed),
            (&[("if-none-match", ",, *")], NotModified),
            (&[("if-none-match", "\"x\"")], Passed),
            (&[("if-none-match", "ab")], Passed),
            (&[("if-none-match", "\"ab")], Passed),
            (&[("if-modified-since", THEN)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", "Friday, 02-Jan-26 15:04:05 GMT")], NotModified),
            (&[("if-modified-since", "Fri Jan  2 15:04:05 2026")], NotModified),
            (&[("if-modified-since", BEFORE)], Passed),
            (&[("if-modified-since", "yesterday")], Passed),
            // The tag is more exact, so the time is ignored.
            (&[("if-none-match", "\"x\""), ("if-modified-since", AFTER)], Passed),
            (&[("if-match", "*")], Passed),
            (&[("if-match", "\"ab\"")], Passed),
            (&[("if-match", "\"ab-zstd\"")], Passed),
            (&[("if-match", "W/\"ab\"")], Failed),
            (&[("if-match", "\"a\"")], Failed),
            (&[("if-match", "*"), ("if-none-match", "*")], NotModified),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", THEN)], Passed),
            (&[("if-match", "*"), ("if-unmodified-since", BEFORE)], Passed),
        ] {
            assert_eq!(validators().evaluate(&request_headers(headers)), verdict, "{headers:?}");
        }
    }

    #[test]
    fn if_range_compares_the_tag_or_the_modification_time() {
        for (headers, allowed) in [
            (&[][..], true),
            (&[("if-range", THEN)], true),
            (&[("if-range", BEFORE)], false),
            (&[("if-range", AFTER)], false),
            (&[("if-range", "W/\"ab\"")], false),
            (&[("if-range", "\"ab\"")], true),
            (&[("if-range", "\"ab-gzip\"")], false),
            (&[("if-range", "\"a\"")], false),
            (&[("if-range", "")], true),
        ] {
            assert_eq!(
                validators().allows_range(&request_headers(headers)),
                allowed,
                "{headers:?}"
            );
        }
    }
}
