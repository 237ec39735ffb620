//! Generated objects that match a schema: reproducible, and such that rules hold for some of them.

use super::definitions::Rule;
use serde_json::{Map, Value, json};

/// Strings in objects, besides the string literals of a rule.
const WORDS: &[&str] = &[
    "",
    "a",
    "example",
    "example.com",
    "10.0.0.1",
    "10.0.0.0/8",
    "2001:db8::1",
    "https://example.com/a",
    "registry.example.com/a/b:v1",
    "1.2.3",
    "openshift-io",
    "quay.io/a/b@sha256:0123",
];

/// Generates objects for one rule.
pub(super) struct Maker {
    state: u64,
    words: Vec<String>,
}

impl Maker {
    pub(super) fn new(rule: &Rule, seed: u64) -> Self {
        // Every other part between quotes is a string literal of the rule.
        let quoted = rule.text.split(['\'', '"']).skip(1).step_by(2);
        let words = quoted.chain(WORDS.iter().copied()).map(str::to_owned).collect();
        Self { state: seed, words }
    }

    /// Generates the next object.
    pub(super) fn object(&mut self, rule: &Rule) -> Value {
        self.value(&rule.schema, 0)
    }

    /// `SplitMix64`
    fn number(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(below.max(1)).unwrap_or(1)).unwrap_or_default()
    }

    fn word(&mut self) -> String {
        let at = self.number(self.words.len());
        self.words[at].clone()
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return values[self.number(values.len())].clone();
        }
        match schema["type"].as_str() {
            Some("string") => json!(self.word()),
            Some("integer") => json!(self.number(100)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(self.number(2) == 0),
            Some("array") => {
                let length = self.number(4);
                (0..length).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            Some("object") => {
                let mut object = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let required = schema["required"]
                        .as_array()
                        .is_some_and(|names| names.iter().any(|listed_name| listed_name == name));
                    if required || depth == 0 || self.number(3) > 0 {
                        object.insert(name.clone(), self.value(property, depth + 1));
                    }
                }
                if schema["additionalProperties"].is_object() {
                    for _ in 0..self.number(4) {
                        let value = self.value(&schema["additionalProperties"], depth + 1);
                        object.insert(self.word(), value);
                    }
                }
                Value::Object(object)
            }
            _ if schema["x-kubernetes-int-or-string"] == true => json!(self.number(100)),
            _ => json!({}),
        }
    }
}
