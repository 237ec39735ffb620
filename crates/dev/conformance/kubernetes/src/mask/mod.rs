//! Masks: the values that may differ between two servers. [`rules`] is the complete list.
//!
//! A mask replaces a value by a fixed word. Words of the scenario's own text are never masked.
//! Generated names (from `generateName`, hashes of pod templates) are learned where they appear as
//! such, and masked wherever they appear afterwards.

pub mod rules;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rules::{
    ALIGNMENT, KEY_RULES, MaskedType, PRINTED_TEXT_RULES, TEXT_RULES, VARIABLE_WIDTH_MASKS,
};
use serde_json::{Map, Value, json};

/// The namespace in recordings; as long as the actual names.
pub const NAMESPACE: &str = "ns-00000000";
/// The unique word in recordings; as long as the actual words.
pub const ID: &str = "id00000000";

/// The masks of one run of a scenario.
#[derive(Debug)]
pub struct Masker {
    /// Namespace and unique word: replaced first, everywhere, also in bytes.
    names: Vec<(String, String)>,
    /// Generated names, longest first.
    learned: Vec<(String, String)>,
    source: String,
}

impl Masker {
    /// Creates the masks of a run in `namespace` with the unique word `id`; `source` is the
    /// scenario's text.
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

    /// Masks one more word everywhere, such as a folder.
    pub fn add_word(&mut self, word: &str, mask: &str) {
        if !self.is_made_up(word) {
            self.learned.push((word.to_owned(), mask.to_owned()));
            self.learned.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        }
    }

    /// Masks a response, or a part of one.
    pub fn value(&mut self, value: &Value) -> Value {
        self.learn_hashes(value);
        self.learn_generated_names(value);
        self.mask_value(value)
    }

    /// Masks a text inside a value.
    pub fn text(&self, text: &str) -> String {
        let mut masked = self.mask_words(text);
        for rule in TEXT_RULES.iter() {
            masked = self.apply(rule, &masked);
        }
        masked
    }

    /// Masks the output of a program. A single line of JSON (a raw response, with `--raw`) is
    /// printed with sorted keys: the original order is that of Go's structs, and no part of the
    /// API.
    pub fn printed(&self, text: &str) -> String {
        if text.starts_with('{')
            && text.trim_end().lines().count() == 1
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            return self.mask_value(&value).to_string();
        }
        let mut masked = self.text(text);
        for rule in PRINTED_TEXT_RULES.iter() {
            masked = self.apply(rule, &masked);
        }
        // Masked values of different lengths shift the columns beside them: ignore the alignment.
        if VARIABLE_WIDTH_MASKS.iter().any(|mask| masked.contains(mask)) {
            let even = ALIGNMENT.replace_all(&masked, "$1   ");
            let lines: Vec<&str> = even.split('\n').map(str::trim_end).collect();
            return lines.join("\n");
        }
        masked
    }

    /// Whether the scenario's text contains a word.
    pub fn is_written(&self, word: &str) -> bool {
        !word.is_empty() && self.source.contains(word)
    }

    /// Whether a server generated a word.
    pub fn is_made_up(&self, word: &str) -> bool {
        self.learned.iter().any(|(learned, _)| learned == word)
    }

    /// Masks bytes: only namespace and unique word, by masks of the same length.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.names
            .iter()
            .fold(bytes.to_vec(), |bytes, (name, mask)| replace_bytes(&bytes, name, mask))
    }

    /// Replaces the masks of namespace and unique word in a recorded text by this run's.
    pub fn unmask(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, mask)| text.replace(mask, name))
    }

    /// As [`Masker::unmask`], for bytes.
    pub fn unmask_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.names
            .iter()
            .fold(bytes.to_vec(), |bytes, (name, mask)| replace_bytes(&bytes, mask, name))
    }

    fn mask_words(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (word, mask) in self.names.iter().chain(self.learned.iter()) {
            if masked.contains(word.as_str()) {
                masked = masked.replace(word.as_str(), mask);
            }
        }
        masked
    }

    fn apply(&self, rule: &rules::TextMask, text: &str) -> String {
        let is_written_text = |found: &str| rule.unless_written && self.source.contains(found);
        rule.pattern
            .replace_all(text, |found: &regex::Captures<'_>| {
                if is_written_text(found.name("value").map_or(&found[0], |group| group.as_str())) {
                    return found[0].to_owned();
                }
                let mut mask = String::new();
                found.expand(rule.mask, &mut mask);
                mask
            })
            .into_owned()
    }

    /// Learns the hashes in a value.
    fn learn_hashes(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_hashes(item)),
            Value::Object(fields) => {
                for key in rules::HASH_LABELS {
                    if let Some(Value::String(hash)) = fields.get(*key)
                        && hash.len() > 4
                        && !self.source.contains(hash.as_str())
                    {
                        self.add_word(hash.rsplit('-').next().unwrap_or(hash), "<hash>");
                    }
                }
                fields.values().for_each(|value| self.learn_hashes(value));
            }
            _ => {}
        }
    }

    /// Learns the generated names in a value.
    fn learn_generated_names(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_generated_names(item)),
            Value::Object(fields) => {
                if let (Some(Value::String(prefix)), Some(Value::String(name))) =
                    (fields.get("generateName"), fields.get("name"))
                    && !prefix.is_empty()
                    && name.starts_with(prefix.as_str())
                    && name.len() == prefix.len() + 5
                {
                    let mask = format!("{}xxxxx", self.mask_words(prefix));
                    self.add_word(name, &mask);
                }
                fields.values().for_each(|value| self.learn_generated_names(value));
            }
            _ => {}
        }
    }

    fn mask_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.mask_value(item)).collect(),
            Value::Object(fields) => {
                let masked = fields.iter().map(|(key, value)| {
                    let value =
                        self.mask_by_key(key, value).unwrap_or_else(|| self.mask_field(key, value));
                    (self.text(key), value)
                });
                masked.collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    /// The masked value of a field, if a rule masks its key.
    fn mask_by_key(&self, key: &str, value: &Value) -> Option<Value> {
        let rule = KEY_RULES.iter().find(|rule| rule.key == key)?;
        match (&rule.masked_type, value) {
            (MaskedType::Digits, Value::String(text)) => {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                (digits && text != "0").then(|| rule.mask.into())
            }
            (MaskedType::Text, Value::String(text)) => {
                (!text.is_empty() && text != "None" && !self.source.contains(text.as_str()))
                    .then(|| rule.mask.into())
            }
            (MaskedType::Number, Value::Number(number)) => {
                (!self.source.contains(&number.to_string())).then(|| rule.mask.into())
            }
            _ => None,
        }
    }

    fn mask_field(&self, key: &str, value: &Value) -> Value {
        match (key, value) {
            ("managedFields", Value::Array(entries)) => {
                let mut entries: Vec<Value> =
                    entries.iter().map(|entry| self.mask_value(entry)).collect();
                let sort_key = |entry: &Value| {
                    rules::MANAGED_FIELDS_ORDER
                        .map(|key| entry[key].as_str().unwrap_or_default().to_owned())
                };
                entries.sort_by_key(sort_key);
                entries.into()
            }
            // The order of conflicting managers is that of a Go map.
            ("causes", Value::Array(causes)) if rules::is_conflict(causes) => {
                let mut causes: Vec<Value> =
                    causes.iter().map(|cause| self.mask_value(cause)).collect();
                causes.sort_by_key(ToString::to_string);
                causes.into()
            }
            ("cells", Value::Array(cells)) => {
                cells.iter().map(|cell| self.mask_cell(cell)).collect()
            }
            ("base64", Value::String(packed)) => match STANDARD.decode(packed) {
                Ok(bytes) => json!(STANDARD.encode(self.bytes(&bytes))),
                Err(_) => self.mask_value(value),
            },
            _ => self.mask_value(value),
        }
    }

    /// Masks a table cell as printed output without its neighbours.
    fn mask_cell(&self, cell: &Value) -> Value {
        let Some(text) = cell.as_str() else { return self.mask_value(cell) };
        if rules::AGE.is_match(text) {
            return rules::AGE_MASK.into();
        }
        let mut masked = self.text(text);
        for rule in PRINTED_TEXT_RULES.iter() {
            masked = self.apply(rule, &masked);
        }
        masked.into()
    }
}

/// Replaces a word in bytes.
fn replace_bytes(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let from = from.as_bytes();
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        if rest.starts_with(from) {
            replaced.extend_from_slice(to.as_bytes());
            rest = &rest[from.len()..];
        } else {
            replaced.push(*first);
            rest = &rest[1..];
        }
    }
    replaced
}
