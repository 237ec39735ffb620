//! Variables of a scenario: `{ns}`, `{id}`, and the values that steps save.

use anyhow::bail;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{([a-z][a-z0-9_-]*)\}").expect("a pattern"));

/// The current values.
#[derive(Debug, Default)]
pub(crate) struct Vars(BTreeMap<String, String>);

impl Vars {
    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces all known variables; other braces stay, since bodies are full of them.
    pub(crate) fn fill(&self, text: &str) -> String {
        let known = |found: &regex::Captures<'_>| {
            self.0.get(&found[1]).cloned().unwrap_or_else(|| found[0].to_owned())
        };
        NAME.replace_all(text, known).into_owned()
    }

    /// As [`Vars::fill`], for a path, in which an unknown variable is an error.
    pub(crate) fn path(&self, text: &str) -> anyhow::Result<String> {
        let path = self.fill(text);
        if let Some(unknown) = NAME.find(&path) {
            bail!("{} is not known in {text}", unknown.as_str());
        }
        Ok(path)
    }

    /// As [`Vars::fill`], in all texts and keys of a value.
    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (self.fill(key), self.value(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// As [`Vars::fill`], in keys and values of a table.
    pub(crate) fn table(&self, table: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        table.iter().map(|(key, value)| (self.fill(key), self.fill(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_variables_are_replaced_and_other_braces_stay() {
        let mut vars = Vars::default();
        vars.set("ns", "one".to_owned());
        let value = json!({"a{ns}": ["{ns}/{x}", {"b": "{.items}{ns}"}, 1]});
        assert_eq!(vars.value(&value), json!({"aone": ["one/{x}", {"b": "{.items}one"}, 1]}));
        assert_eq!(vars.path("/{ns}/x").unwrap(), "/one/x");
        assert_eq!(vars.path("/{rv}").unwrap_err().to_string(), "{rv} is not known in /{rv}");
    }
}
