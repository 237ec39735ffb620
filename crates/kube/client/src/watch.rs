//! Watch requests: a stream of events, one JSON document per line.

use crate::{Error, Result};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;
use mainstay_object::{Object, Resource, Status};
use serde::Deserialize;
use std::borrow::Cow;
use std::time::Duration;

/// How long a server keeps a watch open.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(290);

/// The objects to list and watch.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The kind.
    pub resource: Resource,
    /// Only this namespace; none for all.
    pub namespace: Option<String>,
    /// Label selector in query form; empty for all.
    pub labels: String,
    /// Field selector in query form; empty for all.
    pub fields: String,
    /// Only `apiVersion`, `kind` and `metadata` of each object.
    pub metadata_only: bool,
}

impl Selection {
    /// All objects of a kind.
    pub const fn all(resource: Resource) -> Self {
        Self {
            resource,
            namespace: None,
            labels: String::new(),
            fields: String::new(),
            metadata_only: false,
        }
    }

    /// Only objects of one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects whose labels match a selector in query form.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = selector.into();
        self
    }

    /// Only objects whose fields match a selector in query form.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = selector.into();
        self
    }

    /// Only the metadata of each object.
    #[must_use]
    pub const fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }
}

/// One event.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// The object is new or matches from now on.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object is gone or no longer matches; its last state.
    Deleted(Object),
    /// No further event up to this revision.
    Bookmark(String),
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    object: Object,
}

/// A watch in progress. Dropping it ends it.
pub struct ObjectWatch {
    body: Body,
    /// The bytes after the last newline.
    rest: BytesMut,
    /// Complete lines that were not returned yet.
    lines: Bytes,
}

impl ObjectWatch {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, rest: BytesMut::new(), lines: Bytes::new() }
    }

    /// The next event; none when the server ended the stream. An incomplete last line is dropped:
    /// its event comes again on the next watch.
    ///
    /// # Errors
    /// An expired revision is an error of the stream, see [`Error::is_expired`].
    pub async fn next(&mut self) -> Option<Result<WatchEvent>> {
        loop {
            while let Some(line) = self.take_line() {
                if !line.iter().all(u8::is_ascii_whitespace) {
                    return Some(decode(&line));
                }
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.push(&data);
                    }
                }
                Err(error) => return Some(Err(Error::Transport(Box::new(error)))),
            }
        }
    }

    fn push(&mut self, data: &Bytes) {
        match data.iter().rposition(|byte| *byte == b'\n') {
            None => self.rest.extend_from_slice(data),
            // The embedded server sends complete lines: nothing is copied.
            Some(end) if self.rest.is_empty() => {
                self.rest.extend_from_slice(&data[end + 1..]);
                self.lines = data.slice(..=end);
            }
            Some(end) => {
                self.rest.extend_from_slice(&data[..=end]);
                self.lines = self.rest.split().freeze();
                self.rest.extend_from_slice(&data[end + 1..]);
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let end = self.lines.iter().position(|byte| *byte == b'\n')?;
        let line = self.lines.split_to(end);
        self.lines.advance(1);
        Some(line)
    }
}

fn decode(line: &[u8]) -> Result<WatchEvent> {
    let raw: Raw<'_> = serde_json::from_slice(line).map_err(Error::Answer)?;
    match raw.kind.as_ref() {
        "ADDED" => Ok(WatchEvent::Added(raw.object)),
        "MODIFIED" => Ok(WatchEvent::Modified(raw.object)),
        "DELETED" => Ok(WatchEvent::Deleted(raw.object)),
        "BOOKMARK" => Ok(WatchEvent::Bookmark(raw.object.resource_version().to_owned())),
        // `ERROR` carries a Status; an unknown type carries nothing usable.
        _ => Err(Error::Status(Status::from_value(&raw.object.into_value()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> ObjectWatch {
        ObjectWatch::new(Body::empty())
    }

    fn lines(watch: &mut ObjectWatch) -> Vec<String> {
        std::iter::from_fn(|| watch.take_line())
            .map(|line| String::from_utf8(line.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn lines_are_split_across_any_chunks() {
        let mut watch = watch();
        watch.push(&Bytes::from_static(b"one\ntwo\nthr"));
        assert_eq!(lines(&mut watch), ["one", "two"]);
        watch.push(&Bytes::from_static(b"e"));
        assert_eq!(lines(&mut watch), [""; 0]);
        watch.push(&Bytes::from_static(b"e\nfour\nfi"));
        assert_eq!(lines(&mut watch), ["three", "four"]);
        watch.push(&Bytes::from_static(b"ve\n"));
        assert_eq!(lines(&mut watch), ["five"]);
    }

    #[test]
    fn watch_events_are_decoded_by_type() {
        let line = |kind: &str| {
            format!(
                r#"{{"type":"{kind}","object":{{"metadata":{{"name":"a","resourceVersion":"5"}}}}}}"#
            )
        };
        assert!(
            matches!(decode(line("ADDED").as_bytes()), Ok(WatchEvent::Added(o)) if o.name() == "a")
        );
        assert!(
            matches!(decode(line("BOOKMARK").as_bytes()), Ok(WatchEvent::Bookmark(v)) if v == "5")
        );
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(decode(expired).unwrap_err().is_expired());
        assert!(matches!(decode(b"{"), Err(Error::Answer(_))));
    }
}
