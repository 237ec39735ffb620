//! What two servers may say differently, and nothing else: the one list of masks is [`rules`].
//!
//! A mask puts a fixed word where a value was. Words that the scenario itself wrote are never
//! masked. Names that a server made up (from `generateName`, hashes of pod templates) are learned
//! where they appear as such and masked wherever they appear afterwards.

pub mod rules;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rules::{BLANKS, By, KEYS, LOOSE, TEXTS, UNEVEN};
use serde_json::{Map, Value, json};

/// What a namespace is called in recordings; as long as the real names.
pub const NAMESPACE: &str = "ns-00000000";
/// What the unique word is in recordings; as long as the real words.
pub const ID: &str = "id00000000";

/// The masks of one run of a scenario.
#[derive(Debug)]
pub struct Masker {
    /// Replaced first, everywhere, also in bytes.
    names: Vec<(String, String)>,
    /// Made-up words, longest first.
    learned: Vec<(String, String)>,
    source: String,
}

impl Masker {
    /// For a run in `namespace` with the unique word `id`, of a scenario that says `source`.
    pub fn new(namespace: &str, id: &str, source: &str) -> Self {
        Self {
            names: vec![
                (namespace.to_owned(), NAMESPACE.to_owned()),
                (id.to_owned(), ID.to_owned()),
            ],
            learned: Vec::new(),
            source: source.to_owned(),
        }
    }

    /// Masks one more word everywhere: a folder, say.
    pub fn also(&mut self, word: &str, mask: &str) {
        if !self.is_made_up(word) {
            self.learned.push((word.to_owned(), mask.to_owned()));
            self.learned.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        }
    }

    /// An answer (or a part of one), masked.
    pub fn value(&mut self, value: &Value) -> Value {
        self.hashes(value);
        self.generated(value);
        self.walk(value)
    }

    /// A text inside a value, masked.
    pub fn text(&self, text: &str) -> String {
        let mut masked = self.words(text);
        for rule in TEXTS.iter() {
            masked = self.apply(rule, &masked);
        }
        masked
    }

    /// What a program printed, masked. A line of JSON (an answer as it came, with `--raw`) is printed
    /// with its keys in order: theirs is that of Go's structures, and no part of the API.
    pub fn printed(&self, text: &str) -> String {
        if text.starts_with('{')
            && text.trim_end().lines().count() == 1
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            return self.walk(&value).to_string();
        }
        let mut masked = self.text(text);
        for rule in LOOSE.iter() {
            masked = self.apply(rule, &masked);
        }
        // Values of other lengths shift what stands beside them, so columns count no longer.
        if UNEVEN.iter().any(|mask| masked.contains(mask)) {
            let even = BLANKS.replace_all(&masked, "$1   ");
            let lines: Vec<&str> = even.split('\n').map(str::trim_end).collect();
            return lines.join("\n");
        }
        masked
    }

    /// Whether the scenario itself wrote a word.
    pub fn is_written(&self, word: &str) -> bool {
        !word.is_empty() && self.source.contains(word)
    }

    /// Whether a word is one that a server made up.
    pub fn is_made_up(&self, word: &str) -> bool {
        self.learned.iter().any(|(learned, _)| learned == word)
    }

    /// Bytes in which only names are masked, by words of the same length.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.names.iter().fold(bytes.to_vec(), |bytes, (name, mask)| swap(&bytes, name, mask))
    }

    /// The text of a recording for this run: names put back.
    pub fn unmask(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, mask)| text.replace(mask, name))
    }

    /// As [`Masker::unmask`], for bytes.
    pub fn unmask_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.names.iter().fold(bytes.to_vec(), |bytes, (name, mask)| swap(&bytes, mask, name))
    }

    fn words(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (word, mask) in self.names.iter().chain(self.learned.iter()) {
            if masked.contains(word.as_str()) {
                masked = masked.replace(word.as_str(), mask);
            }
        }
        masked
    }

    fn apply(&self, rule: &rules::Text, text: &str) -> String {
        let written = |found: &str| rule.unless_written && self.source.contains(found);
        rule.pattern
            .replace_all(text, |found: &regex::Captures<'_>| {
                if written(found.name("it").map_or(&found[0], |group| group.as_str())) {
                    return found[0].to_owned();
                }
                let mut mask = String::new();
                found.expand(rule.mask, &mut mask);
                mask
            })
            .into_owned()
    }

    /// Notes every hash of a value.
    fn hashes(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.hashes(item)),
            Value::Object(fields) => {
                for key in rules::HASHES {
                    if let Some(Value::String(hash)) = fields.get(*key)
                        && hash.len() > 4
                        && !self.source.contains(hash.as_str())
                    {
                        self.also(hash.rsplit('-').next().unwrap_or(hash), "<hash>");
                    }
                }
                fields.values().for_each(|value| self.hashes(value));
            }
            _ => {}
        }
    }

    /// Notes every made-up name of a value.
    fn generated(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.generated(item)),
            Value::Object(fields) => {
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (fields.get("generateName"), fields.get("name"))
                    && !prefix.is_empty()
                    && name.starts_with(prefix.as_str())
                    && name.len() == prefix.len() + 5
                {
                    let mask = format!("{}xxxxx", self.words(prefix));
                    self.also(name, &mask);
                }
                fields.values().for_each(|value| self.generated(value));
            }
            _ => {}
        }
    }

    fn walk(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.walk(item)).collect(),
            Value::Object(fields) => {
                let masked = fields.iter().map(|(key, value)| {
                    let value = self.keyed(key, value).unwrap_or_else(|| self.field(key, value));
                    (self.text(key), value)
                });
                masked.collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    /// The value of a field whose name says that it is masked.
    fn keyed(&self, key: &str, value: &Value) -> Option<Value> {
        let rule = KEYS.iter().find(|rule| rule.key == key)?;
        match (&rule.by, value) {
            (By::Digits, Value::String(text)) => {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                (digits && text != "0").then(|| rule.mask.into())
            }
            (By::Text, Value::String(text)) => {
                (!text.is_empty() && text != "None" && !self.source.contains(text.as_str()))
                    .then(|| rule.mask.into())
            }
            (By::Number, Value::Number(number)) => {
                (!self.source.contains(&number.to_string())).then(|| rule.mask.into())
            }
            _ => None,
        }
    }

    fn field(&self, key: &str, value: &Value) -> Value {
        match (key, value) {
            ("managedFields", Value::Array(entries)) => {
                let mut entries: Vec<Value> =
                    entries.iter().map(|entry| self.walk(entry)).collect();
                let place = |entry: &Value| {
                    rules::MANAGERS.map(|key| entry[key].as_str().unwrap_or_default().to_owned())
                };
                entries.sort_by_key(place);
                entries.into()
            }
            // Which of several managers is named first is up to the order of Go's maps.
            ("causes", Value::Array(causes)) if rules::is_conflict(causes) => {
                let mut causes: Vec<Value> = causes.iter().map(|cause| self.walk(cause)).collect();
                causes.sort_by_key(ToString::to_string);
                causes.into()
            }
            ("cells", Value::Array(cells)) => cells.iter().map(|cell| self.cell(cell)).collect(),
            ("base64", Value::String(packed)) => match STANDARD.decode(packed) {
                Ok(bytes) => json!(STANDARD.encode(self.bytes(&bytes))),
                Err(_) => self.walk(value),
            },
            _ => self.walk(value),
        }
    }

    /// A cell of a table: what is printed, without its neighbours.
    fn cell(&self, cell: &Value) -> Value {
        let Some(text) = cell.as_str() else { return self.walk(cell) };
        if rules::AGE.is_match(text) {
            return rules::AGE_MASK.into();
        }
        let mut masked = self.text(text);
        for rule in LOOSE.iter() {
            masked = self.apply(rule, &masked);
        }
        masked.into()
    }
}

/// Replaces a word in bytes.
fn swap(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let from = from.as_bytes();
    let mut swapped = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if rest.starts_with(from) {
            swapped.extend_from_slice(to.as_bytes());
            rest = &rest[from.len()..];
        } else {
            swapped.push(*first);
            rest = &rest[1..];
        }
    }
    swapped
}
