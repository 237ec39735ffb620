//! Stored objects: one object at one revision, encoded once and shared by all readers.

use crate::draft::digits;
use crate::{Key, Pool, Text};
use bytes::Bytes;
use mainstay_object::Object;
use mainstay_object::selector::LabelSelector;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// One object at one revision. Immutable; a change creates another.
#[derive(Clone)]
pub struct Stored {
    /// The key of the object.
    pub key: Key,
    /// The revision of its last change: its `metadata.resourceVersion`.
    pub revision: u64,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
    pub(crate) labels: Labels,
    pub(crate) text: Text,
    /// The offset of the revision's digits in the own part of the text.
    pub(crate) slot: usize,
}

impl Stored {
    /// The object, parsed. Costs a parse: prefer [`Stored::labels`] and the other fields.
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the bytes were encoded from an object by this crate within the reader's depth, \
                  and an engine hands back only what passed its checksum"
    )]
    pub fn object(&self) -> Object {
        self.parse().expect("a stored object is JSON")
    }

    /// The object, deserialized as the caller's type.
    ///
    /// # Errors
    /// If the object does not fit the type.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.bytes())
    }

    /// The JSON text with `metadata.resourceVersion`, keys sorted, without white space.
    ///
    /// All callers share the bytes. A text with long values is assembled for each call, as those
    /// values are stored once for all objects that have them.
    pub fn bytes(&self) -> Bytes {
        self.text.bytes()
    }

    /// The length of the text.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// The start of the text up to the first shared value: it includes `apiVersion` and `kind`.
    pub fn start(&self) -> &[u8] {
        self.text.start()
    }

    /// Appends the text to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.text.write(out);
    }

    /// Its labels in order of their keys, without a parse.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter()
    }

    /// The value of a label, without a parse.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Whether a label selector selects it, without a parse.
    pub fn matches(&self, selector: &LabelSelector) -> bool {
        selector.is_everything() || selector.matches_with(|key| self.label(key))
    }

    /// The same entry with the object in another API version.
    ///
    /// # Errors
    /// [`CommitError::TooDeep`](crate::CommitError::TooDeep), or an error of the encoder.
    pub fn with_object(&self, object: &Object) -> Result<Self, crate::CommitError> {
        let draft = crate::draft::Draft::of(object)?;
        Ok(draft.stored(self.key.clone(), self.revision, Some(self), &mut Pool::default()))
    }

    /// The offset of the digits of `metadata.resourceVersion` in the text.
    pub fn slot(&self) -> usize {
        self.text.whole_offset(self.slot)
    }

    /// The text with another `metadata.resourceVersion`.
    ///
    /// For the event that a watch must synthesise when an object stops matching its selector: the
    /// old object at the revision of the change.
    pub fn bytes_at(&self, revision: u64) -> Bytes {
        self.text.at_revision(self.slot, digits(self.revision), revision).bytes()
    }

    /// The same object at the revision of its deletion.
    pub(crate) fn deleted_at(&self, revision: u64) -> Self {
        let text = self.text.at_revision(self.slot, digits(self.revision), revision);
        Self { revision, text, ..self.clone() }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @{} {}", self.key, self.revision, String::from_utf8_lossy(&self.bytes()))
    }
}

/// Labels as length-prefixed strings in one allocation; empty labels cost none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Option<Arc<[u8]>>);

impl Labels {
    pub(crate) fn of<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut block = Vec::new();
        for part in labels.flat_map(|(key, value)| [key, value]) {
            // Validation refuses longer strings, and no selector matches them.
            let Ok(length) = u32::try_from(part.len()) else { continue };
            block.extend_from_slice(&length.to_le_bytes());
            block.extend_from_slice(part.as_bytes());
        }
        Self::from_block(&block)
    }

    /// Labels from the encoded form of [`Labels::block`].
    pub(crate) fn from_block(block: &[u8]) -> Self {
        Self((!block.is_empty()).then(|| block.into()))
    }

    /// The encoded form.
    pub(crate) fn block(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = self.block();
        std::iter::from_fn(move || Some((take(&mut rest)?, take(&mut rest)?)))
    }
}

/// The next string of a block; none at its end, or at a malformed string.
fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, after) = after.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_in_order_and_empty_ones_count() {
        let pairs = [("a", ""), ("app.kubernetes.io/name", "é"), ("z", "1")];
        let labels = Labels::of(pairs.into_iter());
        assert_eq!(labels.iter().collect::<Vec<_>>(), pairs);
        assert_eq!(Labels::from_block(labels.block()).iter().count(), 3);
        assert!(Labels::of(std::iter::empty()).0.is_none());
    }

    #[test]
    fn a_malformed_block_reads_up_to_its_malformed_string() {
        let mut block = Labels::of([("a", "b"), ("c", "d")].into_iter()).block().to_vec();
        block.truncate(block.len() - 1);
        assert_eq!(Labels::from_block(&block).iter().collect::<Vec<_>>(), [("a", "b")]);
        assert_eq!(Labels::from_block(&[255; 9]).iter().count(), 0);
    }
}
