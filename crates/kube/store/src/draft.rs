//! Encoded drafts: an object encoded once, with a gap for the revision.
//!
//! Encoding costs microseconds and happens on the calling thread. The revision is known only on the
//! writer, which then only copies the text around the gap.

use crate::text::Parts;
use crate::{CommitError, Key, Labels, Pool, Stored};
use mainstay_object::Object;
use mainstay_object::size::json_length;
use serde_json::{Map, Value};

/// The deepest nesting that can be read back: the limit of the JSON reader, which protects its
/// stack.
pub(crate) const MAX_DEPTH: usize = 127;

/// The longest text. A server refuses far smaller ones; this bound only keeps lengths within the 32
/// bits of an engine's length fields.
const MAX_BYTES: usize = 256 << 20;

/// The text of an object without its revision.
pub(crate) struct Draft {
    /// JSON in which `metadata.resourceVersion` is the empty string.
    text: Parts,
    /// The offset of the digits in the own part of the text.
    slot: usize,
    /// The length of the text without the digits.
    bytes: usize,
    labels: Labels,
    terminating: bool,
}

impl Draft {
    /// Encodes an object without its `metadata.resourceVersion`.
    pub(crate) fn of(object: &Object) -> Result<Self, CommitError> {
        let fields = object.fields();
        if !fields.values().all(|value| fits(value, MAX_DEPTH - 1)) {
            return Err(CommitError::TooDeep { limit: MAX_DEPTH });
        }
        let nothing = Map::new();
        let metadata = fields.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
        let mut slot = 0;
        let mut text = Vec::with_capacity(2048);
        write_with(&mut text, fields, "metadata", |text| {
            write_with(text, metadata, "resourceVersion", |text| {
                text.push(b'"');
                slot = text.len();
                text.push(b'"');
                Ok(())
            })
        })
        .map_err(|source| CommitError::Encode(source.to_string()))?;
        if text.len() > MAX_BYTES {
            return Err(CommitError::TooLarge { bytes: text.len(), limit: MAX_BYTES });
        }
        let labels = Labels::of(object.labels());
        let bytes = text.len();
        let (text, slot) = Parts::of(text, slot);
        Ok(Self { text, slot, bytes, labels, terminating: object.is_terminating() })
    }

    /// The stored object at its revision. It shares equal parts with the object it replaces, and
    /// long values with all objects.
    pub(crate) fn stored(
        &self,
        key: Key,
        revision: u64,
        previous: Option<&Stored>,
        pool: &mut Pool,
    ) -> Stored {
        let labels = match previous {
            Some(previous) if previous.labels == self.labels => &previous.labels,
            _ => &self.labels,
        };
        Stored {
            key,
            revision,
            terminating: self.terminating,
            labels: labels.clone(),
            text: self.text.text(
                self.slot,
                revision,
                previous.map(|previous| &previous.text),
                pool,
            ),
            slot: self.slot,
        }
    }

    /// The length of an object's text, if it exceeds a limit.
    pub(crate) fn longer_than(object: &Object, limit: usize) -> Option<usize> {
        let bytes = json_length(object.fields());
        (bytes > limit).then_some(bytes)
    }

    /// Refuses a text that is longer than the store accepts, unless it is no longer than the text
    /// it replaces. A request for deletion makes an object a little longer.
    pub(crate) fn check_size(
        &self,
        limit: usize,
        current: Option<&Stored>,
    ) -> Result<(), CommitError> {
        size_allowed(self.bytes, self.terminating, limit, current)
    }

    /// Whether a stored object differs only by its revision.
    pub(crate) fn is_text_of(&self, stored: &Stored) -> bool {
        stored.slot == self.slot && self.text.is(self.slot, digits(stored.revision), &stored.text)
    }
}

/// How much longer the deletion fields may make an object.
const DELETION_MARKS: usize = 1024;

/// See [`Draft::check_size`].
pub(crate) fn size_allowed(
    bytes: usize,
    terminating: bool,
    limit: usize,
    current: Option<&Stored>,
) -> Result<(), CommitError> {
    if bytes <= limit {
        return Ok(());
    }
    let before = current.map_or(0, |current| {
        let marked = terminating && !current.terminating;
        current.size() + if marked { DELETION_MARKS } else { 0 }
    });
    if bytes <= before { Ok(()) } else { Err(CommitError::TooLarge { bytes, limit }) }
}

/// How many decimal digits a revision has.
pub(crate) fn digits(revision: u64) -> usize {
    revision.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Writes a JSON object whose field `name`, present or not, is written by `write`, in key order.
fn write_with(
    text: &mut Vec<u8>,
    fields: &Map<String, Value>,
    name: &str,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    text.push(b'{');
    let mut write = Some(write);
    let mut special = |text: &mut Vec<u8>| -> serde_json::Result<()> {
        let Some(write) = write.take() else { return Ok(()) };
        separate(text);
        serde_json::to_writer(&mut *text, name)?;
        text.push(b':');
        write(text)
    };
    for (key, value) in fields {
        if key.as_str() >= name {
            special(text)?;
        }
        if key != name {
            separate(text);
            serde_json::to_writer(&mut *text, key)?;
            text.push(b':');
            serde_json::to_writer(&mut *text, value)?;
        }
    }
    special(text)?;
    text.push(b'}');
    Ok(())
}

/// A comma, unless this is the first field.
fn separate(text: &mut Vec<u8>) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
}

/// Whether a value nests at most `depth` levels of objects and arrays.
fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|item| fits(item, depth - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key() -> Key {
        Key::cluster("things", "a")
    }

    fn encoded(value: Value, revision: u64) -> String {
        let draft = Draft::of(&Object::from_value(value).unwrap()).unwrap();
        String::from_utf8(
            draft.stored(key(), revision, None, &mut Pool::default()).bytes().to_vec(),
        )
        .unwrap()
    }

    #[test]
    fn the_resource_version_is_at_its_sorted_position() {
        let rows = [
            (json!({}), r#"{"metadata":{"resourceVersion":"7"}}"#),
            (json!({"a": 1, "z": 2}), r#"{"a":1,"metadata":{"resourceVersion":"7"},"z":2}"#),
            (json!({"metadata": 5}), r#"{"metadata":{"resourceVersion":"7"}}"#),
            (
                json!({"kind": "K", "metadata": {"name": "n", "uid": "u", "resourceVersion": "3"}}),
                r#"{"kind":"K","metadata":{"name":"n","resourceVersion":"7","uid":"u"}}"#,
            ),
            (
                json!({"metadata": {"name": "{"}, "x\"y": [1.5, null]}),
                r#"{"metadata":{"name":"{","resourceVersion":"7"},"x\"y":[1.5,null]}"#,
            ),
        ];
        for (value, expected) in rows {
            assert_eq!(encoded(value, 7), expected);
        }
    }

    #[test]
    fn the_final_text_equals_serdes_output() {
        let value = json!({"apiVersion": "v1", "metadata": {"name": "a", "labels": {"k": "v"}, "zz": 1},
            "data": {"é": "\u{1}"}});
        let mut whole = value.clone();
        whole["metadata"]["resourceVersion"] = "1234".into();
        assert_eq!(encoded(value, 1234), whole.to_string());
    }

    #[test]
    fn nesting_beyond_the_readers_limit_is_refused() {
        let nested = |levels: usize| {
            let mut value = json!(1);
            for _ in 0..levels {
                value = Value::Array(vec![value]);
            }
            Object::from_value(json!({"a": value})).unwrap()
        };
        let deepest =
            Draft::of(&nested(MAX_DEPTH - 1)).unwrap().stored(key(), 1, None, &mut Pool::default());
        assert!(serde_json::from_slice::<Value>(&deepest.bytes()).is_ok());
        assert!(matches!(Draft::of(&nested(MAX_DEPTH)), Err(CommitError::TooDeep { .. })));
        let text = serde_json::to_vec(&nested(MAX_DEPTH)).unwrap();
        assert!(serde_json::from_slice::<Value>(&text).is_err());
    }

    #[test]
    fn digits_are_counted_as_they_are_printed() {
        for revision in [0, 1, 9, 10, 99, 100, 12345, u64::MAX] {
            assert_eq!(digits(revision), revision.to_string().len());
        }
    }
}
