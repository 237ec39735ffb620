//! Object texts with shared values: long values are stored once for all objects that have them.
//!
//! A copied ClusterServiceVersion differs from the original and the other copies in a few metadata
//! fields only; its content, thousands of characters, is the same in hundreds of namespaces. So a
//! text consists of its own short part and of values cut out of it. Values are cut where objects
//! have long ones: the fields of the object, those of its metadata, and the field sets of each
//! manager. A text without long values is one piece.

use bytes::Bytes;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// A shorter value in bytes stays in the own part: sharing it would save less than its bookkeeping
/// costs.
const MIN_SHARED_BYTES: usize = 2048;
/// The number of unused values in the pool that triggers a cleanup.
const MAX_UNUSED_VALUES: usize = 1024;

/// A text: its own part, and values that other texts may share.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    own: Bytes,
    values: Option<Arc<[Value]>>,
}

/// A value that was cut out.
#[derive(Clone, Debug)]
struct Value {
    /// The offset in the own part where it belongs.
    at: usize,
    text: Arc<[u8]>,
}

/// A text whose long values are cut out and not shared yet.
#[derive(Debug)]
pub(crate) struct Parts {
    own: Vec<u8>,
    values: Vec<(Value, u64)>,
}

impl Parts {
    /// Cuts long values out of the canonical text of an object. Returns the offset in the own part
    /// that corresponds to `slot`, which no long value contains.
    pub(crate) fn of(text: Vec<u8>, slot: usize) -> (Self, usize) {
        let mut ranges = Vec::new();
        if text.len() >= MIN_SHARED_BYTES {
            ranges = long_values(&text);
        }
        if ranges.is_empty() {
            return (Self { own: text, values: Vec::new() }, slot);
        }
        let mut own = Vec::with_capacity(text.len() - ranges.iter().map(Range::len).sum::<usize>());
        let (mut values, mut start, mut moved) = (Vec::with_capacity(ranges.len()), 0, slot);
        for range in ranges {
            own.extend_from_slice(&text[start..range.start]);
            let value: Arc<[u8]> = text[range.clone()].into();
            let mut hasher = DefaultHasher::new();
            hasher.write(&value);
            values.push((Value { at: own.len(), text: value }, hasher.finish()));
            if range.end <= slot {
                moved -= range.len();
            }
            start = range.end;
        }
        own.extend_from_slice(&text[start..]);
        (Self { own, values }, moved)
    }

    /// The own part with digits inserted at `slot`, and the values, shared with `previous` and
    /// `pool`.
    pub(crate) fn text(
        &self,
        slot: usize,
        revision: u64,
        previous: Option<&Text>,
        pool: &mut Pool,
    ) -> Text {
        let own = splice(&self.own, slot, 0, revision);
        if self.values.is_empty() {
            return Text { own, values: None };
        }
        let grown = own.len() - self.own.len();
        let before = previous.map(Text::values).unwrap_or_default();
        let values = self.values.iter().map(|(value, hash)| {
            let unchanged = before.iter().find(|earlier| earlier.text == value.text);
            let text = unchanged
                .map_or_else(|| pool.get(&value.text, *hash), |earlier| Arc::clone(&earlier.text));
            Value { at: if value.at > slot { value.at + grown } else { value.at }, text }
        });
        Text { own, values: Some(values.collect()) }
    }

    /// Whether a text with `digits` at `slot` is otherwise equal.
    pub(crate) fn is(&self, slot: usize, digits: usize, text: &Text) -> bool {
        let values = text.values();
        text.own.len() == self.own.len() + digits
            && text.own.get(..slot) == self.own.get(..slot)
            && text.own.get(slot + digits..) == self.own.get(slot..)
            && values.len() == self.values.len()
            && values.iter().zip(&self.values).all(|(a, (b, _))| {
                let at = if b.at > slot { b.at + digits } else { b.at };
                a.at == at && a.text == b.text
            })
    }

    /// A text that contains its revision already.
    pub(crate) fn complete(self, pool: &mut Pool) -> Text {
        let shared = self
            .values
            .into_iter()
            .map(|(value, hash)| Value { text: pool.get(&value.text, hash), ..value });
        let values: Vec<Value> = shared.collect();
        Text { own: self.own.into(), values: (!values.is_empty()).then(|| values.into()) }
    }
}

impl Text {
    /// A text in one piece.
    #[cfg(test)]
    pub(crate) const fn whole(own: Bytes) -> Self {
        Self { own, values: None }
    }

    fn values(&self) -> &[Value] {
        self.values.as_deref().unwrap_or_default()
    }

    /// The length of the whole text in bytes.
    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.values().iter().map(|value| value.text.len()).sum::<usize>()
    }

    /// The part before the first value.
    pub(crate) fn start(&self) -> &[u8] {
        let end = self.values().first().map_or(self.own.len(), |value| value.at);
        self.own.get(..end).unwrap_or_default()
    }

    /// The whole text; shared if it is in one piece, assembled otherwise.
    pub(crate) fn bytes(&self) -> Bytes {
        if self.values.is_none() {
            return self.own.clone();
        }
        let mut out = Vec::with_capacity(self.len());
        self.write(&mut out);
        out.into()
    }

    /// Whether the whole text is in one piece, so that reading it costs nothing.
    pub(crate) const fn is_whole(&self) -> bool {
        self.values.is_none()
    }

    /// Appends the whole text to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut start = 0;
        for value in self.values() {
            out.extend_from_slice(&self.own[start..value.at]);
            out.extend_from_slice(&value.text);
            start = value.at;
        }
        out.extend_from_slice(&self.own[start..]);
    }

    /// The offset in the whole text of an offset in the own part.
    pub(crate) fn whole_offset(&self, own: usize) -> usize {
        let before = self.values().iter().filter(|value| value.at <= own);
        own + before.map(|value| value.text.len()).sum::<usize>()
    }

    /// The same text with the `old` digits at `slot` replaced by those of a revision.
    pub(crate) fn at_revision(&self, slot: usize, old: usize, revision: u64) -> Self {
        let own = splice(&self.own, slot, old, revision);
        let moved = |value: &Value| Value {
            at: if value.at > slot { value.at + own.len() - self.own.len() } else { value.at },
            text: Arc::clone(&value.text),
        };
        let values = self.values.as_deref().map(|values| values.iter().map(moved).collect());
        Self { own, values }
    }

    /// The approximate memory that the text occupies: a shared value counts in part.
    pub(crate) fn weight(&self) -> usize {
        let part = |value: &Value| value.text.len() / Arc::strong_count(&value.text).max(1);
        self.own.len() + self.values().iter().map(part).sum::<usize>()
    }
}

/// The values of all texts.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    values: HashMap<u64, Weak<[u8]>>,
    /// The number of values after the last cleanup.
    live: usize,
}

impl Pool {
    /// The shared value, or the given one if no text has it yet.
    fn get(&mut self, value: &Arc<[u8]>, hash: u64) -> Arc<[u8]> {
        // Of two values with one hash the later one is not shared, which is rare and harmless.
        match self.values.get(&hash).and_then(Weak::upgrade) {
            Some(known) if known == *value => return known,
            Some(_) => return Arc::clone(value),
            None => {}
        }
        self.values.insert(hash, Arc::downgrade(value));
        if self.values.len() > 2 * self.live + MAX_UNUSED_VALUES {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.live = self.values.len();
        }
        Arc::clone(value)
    }
}

/// A text with the `old` digits at `slot` replaced by those of `revision`.
fn splice(text: &[u8], slot: usize, old: usize, revision: u64) -> Bytes {
    let digits = revision.to_string();
    let mut out = Vec::with_capacity(text.len() - old + digits.len());
    out.extend_from_slice(&text[..slot]);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(&text[slot + old..]);
    Bytes::from(out)
}

/// The ranges of long values in the canonical text of an object; none in another text.
fn long_values(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut scan = Scan { text, at: 0 };
    // A truncated text has the values found so far: only complete values are cut.
    let _ = scan.object(Level::Object, &mut found);
    found
}

/// The role of an object in the text.
#[derive(Clone, Copy)]
enum Level {
    Object,
    Metadata,
    Manager,
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Skips an object and collects its long values, and those of nested objects with some.
    fn object(&mut self, level: Level, found: &mut Vec<Range<usize>>) -> Option<()> {
        self.expect(b'{')?;
        while self.peek()? != b'}' {
            let key = self.at;
            self.string()?;
            let key = self.text.get(key..self.at)?;
            self.expect(b':')?;
            let start = self.at;
            match (level, key, self.peek()?) {
                (Level::Object, br#""metadata""#, b'{') => self.object(Level::Metadata, found)?,
                (Level::Metadata, br#""managedFields""#, b'[') => self.managers(found)?,
                _ => {
                    self.value()?;
                    if self.at - start >= MIN_SHARED_BYTES {
                        found.push(start..self.at);
                    }
                }
            }
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
        self.expect(b'}')
    }

    fn managers(&mut self, found: &mut Vec<Range<usize>>) -> Option<()> {
        self.expect(b'[')?;
        while self.peek()? != b']' {
            match self.peek()? {
                b'{' => self.object(Level::Manager, found)?,
                _ => self.value()?,
            }
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
        self.expect(b']')
    }

    /// Skips a string.
    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            let rest = self.text.get(self.at..)?;
            let next = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            self.at += next + 1;
            if rest[next] == b'"' {
                return Some(());
            }
            self.at += 1;
        }
    }

    /// Skips any value.
    fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let rest = self.text.get(self.at..)?;
                    self.at += rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
