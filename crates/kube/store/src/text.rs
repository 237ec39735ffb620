//! The text of an object, long values of which are shared with all objects that have the same.
//!
//! A copied ClusterServiceVersion differs from its origin and its siblings in a few fields of its
//! metadata and in nothing else: what it is about, thousands of letters, is the same in hundreds of
//! namespaces. So a text is its own short part and a row of values cut out of it. Values are
//! looked for where objects have long ones: the fields of the object, those of its metadata, and
//! what each manager owns. Texts without any are one piece, as before anybody thought of this.

use bytes::Bytes;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// A value of fewer bytes stays where it is: what is saved would not pay for keeping account of it.
const LONG: usize = 2048;
/// So many values may be known that nobody has any more before they are looked through.
const FORGOTTEN: usize = 1024;

/// A text: its own part, and values that others may have too.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    own: Bytes,
    values: Option<Arc<[Value]>>,
}

/// A value that was cut out.
#[derive(Clone, Debug)]
struct Value {
    /// Where in the own part it belongs.
    at: usize,
    text: Arc<[u8]>,
}

/// A text whose long values were cut out and that nobody shares yet.
#[derive(Debug)]
pub(crate) struct Parts {
    own: Vec<u8>,
    values: Vec<(Value, u64)>,
}

impl Parts {
    /// Cuts long values out of the canonical text of an object. None that follows or contains the
    /// place `slot`, which stays where it is said to be in the own part.
    pub(crate) fn of(text: Vec<u8>, slot: usize) -> (Self, usize) {
        let mut places = Vec::new();
        if text.len() >= LONG {
            places = long_values(&text);
        }
        if places.is_empty() {
            return (Self { own: text, values: Vec::new() }, slot);
        }
        let mut own = Vec::with_capacity(text.len() - places.iter().map(Range::len).sum::<usize>());
        let (mut values, mut start, mut moved) = (Vec::with_capacity(places.len()), 0, slot);
        for place in places {
            own.extend_from_slice(&text[start..place.start]);
            let value: Arc<[u8]> = text[place.clone()].into();
            let mut hasher = DefaultHasher::new();
            hasher.write(&value);
            values.push((Value { at: own.len(), text: value }, hasher.finish()));
            if place.end <= slot {
                moved -= place.len();
            }
            start = place.end;
        }
        own.extend_from_slice(&text[start..]);
        (Self { own, values }, moved)
    }

    /// The own part with digits put in at `slot`, and the values that `previous` and `pool` have
    /// already.
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
            let known = before.iter().find(|earlier| earlier.text == value.text);
            let text = known
                .map_or_else(|| pool.get(&value.text, *hash), |earlier| Arc::clone(&earlier.text));
            Value { at: if value.at > slot { value.at + grown } else { value.at }, text }
        });
        Text { own, values: Some(values.collect()) }
    }

    /// Whether a text with `digits` at `slot` says the same.
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

    /// A text that is at its revision already.
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

    /// How many bytes the whole text has.
    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.values().iter().map(|value| value.text.len()).sum::<usize>()
    }

    /// The part before the first value that was cut out.
    pub(crate) fn start(&self) -> &[u8] {
        let end = self.values().first().map_or(self.own.len(), |value| value.at);
        self.own.get(..end).unwrap_or_default()
    }

    /// The whole text; shared if it is in one piece, put together otherwise.
    pub(crate) fn bytes(&self) -> Bytes {
        if self.values.is_none() {
            return self.own.clone();
        }
        let mut out = Vec::with_capacity(self.len());
        self.write(&mut out);
        out.into()
    }

    /// Whether the whole text is in one piece, so that having it costs nothing.
    pub(crate) const fn is_whole(&self) -> bool {
        self.values.is_none()
    }

    /// Writes the whole text behind what is there.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut start = 0;
        for value in self.values() {
            out.extend_from_slice(&self.own[start..value.at]);
            out.extend_from_slice(&value.text);
            start = value.at;
        }
        out.extend_from_slice(&self.own[start..]);
    }

    /// Where a place of the own part is in the whole text.
    pub(crate) fn place(&self, own: usize) -> usize {
        let before = self.values().iter().filter(|value| value.at <= own);
        own + before.map(|value| value.text.len()).sum::<usize>()
    }

    /// The same with `old` digits at `slot` replaced by those of a revision.
    pub(crate) fn at_revision(&self, slot: usize, old: usize, revision: u64) -> Self {
        let own = splice(&self.own, slot, old, revision);
        let moved = |value: &Value| Value {
            at: if value.at > slot { value.at + own.len() - self.own.len() } else { value.at },
            text: Arc::clone(&value.text),
        };
        let values = self.values.as_deref().map(|values| values.iter().map(moved).collect());
        Self { own, values }
    }

    /// The memory that would be free without this text, about: a shared value counts in part.
    pub(crate) fn weight(&self) -> usize {
        let part = |value: &Value| value.text.len() / Arc::strong_count(&value.text).max(1);
        self.own.len() + self.values().iter().map(part).sum::<usize>()
    }
}

/// The values that some text has.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    values: HashMap<u64, Weak<[u8]>>,
    /// How many there were after the last time that forgotten ones were dropped.
    live: usize,
}

impl Pool {
    /// The value as some text has it; the given one from now on if none does.
    fn get(&mut self, value: &Arc<[u8]>, hash: u64) -> Arc<[u8]> {
        // Two values with one hash: the later one is not shared, which is rare and harmless.
        match self.values.get(&hash).and_then(Weak::upgrade) {
            Some(known) if known == *value => return known,
            Some(_) => return Arc::clone(value),
            None => {}
        }
        self.values.insert(hash, Arc::downgrade(value));
        if self.values.len() > 2 * self.live + FORGOTTEN {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.live = self.values.len();
        }
        Arc::clone(value)
    }
}

/// Text with the `old` digits at `slot` replaced by those of `revision`.
fn splice(text: &[u8], slot: usize, old: usize, revision: u64) -> Bytes {
    let digits = revision.to_string();
    let mut out = Vec::with_capacity(text.len() - old + digits.len());
    out.extend_from_slice(&text[..slot]);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(&text[slot + old..]);
    Bytes::from(out)
}

/// Where long values are in the canonical text of an object; none in a text that is not one.
fn long_values(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut scan = Scan { text, at: 0 };
    // A text that ends early has what was found so far: nothing is cut that is not a whole value.
    let _ = scan.object(Level::Object, &mut found);
    found
}

/// What an object in the text is.
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

    /// Passes an object and notes its long values, and those of objects within that have some.
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
                    if self.at - start >= LONG {
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

    /// Passes a string.
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

    /// Passes any value.
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
