//! References: in recorded requests of kubectl they stand for values of earlier responses, so that
//! the same request can be sent to another server.
//!
//! A reference is `<at STEP.CALL POINTER>`: the response to a call of kubectl (or of the step
//! itself, as call 0) and a JSON pointer into it.
//!
//! A value refers to its first occurrence, a continue token to its last one. Two pages of one
//! revision that end at one object have the same token, and whether the revision is the same
//! depends on the writes of others.

use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<at (\d+)\.(\d+) ([^>]*)>").expect("a pattern"));

/// In a recorded request, marks a value that the scenario wrote where a server's own value would be
/// masked.
pub(crate) fn literal(value: &str) -> String {
    format!("<written {value}>")
}

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static LITERAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<written ([^>]*)>").expect("a pattern"));

/// The responses of a run, and the reference of each of their values.
#[derive(Default)]
pub(crate) struct References {
    responses: HashMap<(usize, usize), Value>,
    references: HashMap<String, String>,
}

impl References {
    /// Records a response.
    pub(crate) fn record(&mut self, step: usize, call: usize, response: &Value) {
        self.walk(&format!("{step}.{call}"), &mut String::new(), response);
        self.responses.insert((step, call), response.clone());
    }

    fn walk(&mut self, at: &str, pointer: &mut String, value: &Value) {
        let length = pointer.len();
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    if let Value::String(text) = value
                        && matches!(key.as_str(), "uid" | "resourceVersion" | "continue" | "name")
                        && !text.is_empty()
                    {
                        let reference = || format!("<at {at} {pointer}>");
                        let entry = self.references.entry(text.clone());
                        if key == "continue" {
                            entry.insert_entry(reference());
                        } else {
                            entry.or_insert_with(reference);
                        }
                    }
                    self.walk(at, pointer, value);
                    pointer.truncate(length);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                    self.walk(at, pointer, item);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// The reference to a value.
    pub(crate) fn reference_to(&self, value: &str) -> Option<&str> {
        self.references.get(value).map(String::as_str)
    }

    /// Replaces each reference in a text by its value in this run.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut missing = None;
        let filled = REFERENCE.replace_all(text, |found: &regex::Captures<'_>| {
            let number = |at: usize| found[at].parse::<usize>().unwrap_or(usize::MAX);
            let response = self.responses.get(&(number(1), number(2)));
            let value =
                response.and_then(|response| response.pointer(&found[3])).and_then(Value::as_str);
            if value.is_none() {
                missing.get_or_insert_with(|| found[0].to_owned());
            }
            value.unwrap_or_default().to_owned()
        });
        match missing {
            None => Ok(LITERAL.replace_all(&filled, "$1").into_owned()),
            Some(reference) => Err(format!("nothing stands at {reference}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn continue_token_refers_to_its_last_occurrence() {
        let mut references = References::default();
        references.record(3, 0, &json!({"metadata": {"continue": "t"}}));
        references.record(6, 1, &json!({"metadata": {"continue": "t"}}));
        assert_eq!(references.reference_to("t"), Some("<at 6.1 /metadata/continue>"));
    }

    #[test]
    fn reference_to_the_first_occurrence_resolves_in_another_run() {
        let mut first = References::default();
        first.record(2, 0, &json!({"metadata": {"uid": "u-1", "name": "n"}}));
        first.record(2, 1, &json!({"metadata": {"uid": "u-1", "resourceVersion": "7"}}));
        assert_eq!(first.reference_to("u-1"), Some("<at 2.0 /metadata/uid>"));
        assert_eq!(first.reference_to("7"), Some("<at 2.1 /metadata/resourceVersion>"));
        assert_eq!(first.reference_to("8"), None);

        let mut second = References::default();
        second.record(2, 0, &json!({"metadata": {"uid": "u-2"}}));
        assert_eq!(second.fill("/x?uid=<at 2.0 /metadata/uid>&y").unwrap(), "/x?uid=u-2&y");
        assert_eq!(second.fill(&literal("1")).unwrap(), "1");
        assert_eq!(
            second.fill("<at 2.1 /metadata/resourceVersion>").unwrap_err(),
            "nothing stands at <at 2.1 /metadata/resourceVersion>"
        );
    }
}
