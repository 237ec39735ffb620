//! Values of answers that kubectl sends back: in a recording they are named by the place where they
//! stood first, so that the same request can be sent to another server. The token of a page is named
//! by where it stood last: two pages of one revision that end at one object have the same token, and
//! whether the revision is the same depends on what others wrote.
//!
//! A place is `<at STEP.CALL POINTER>`: the answer of a call of kubectl (or of the step itself, as
//! call 0) and a JSON pointer into it.

use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<at (\d+)\.(\d+) ([^>]*)>").expect("a pattern"));

/// What stands in a recorded request for a value that the scenario wrote where servers' own are masked.
pub(crate) fn written(value: &str) -> String {
    format!("<written {value}>")
}

#[expect(clippy::expect_used, reason = "the pattern is fixed and a test compiles it")]
static WRITTEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<written ([^>]*)>").expect("a pattern"));

/// Answers of a run, and where each of their values stood first (the token of a page: last).
#[derive(Default)]
pub(crate) struct Places {
    answers: HashMap<(usize, usize), Value>,
    known: HashMap<String, String>,
}

impl Places {
    /// Notes an answer.
    pub(crate) fn note(&mut self, step: usize, call: usize, answer: &Value) {
        self.walk(&format!("{step}.{call}"), &mut String::new(), answer);
        self.answers.insert((step, call), answer.clone());
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
                        let place = || format!("<at {at} {pointer}>");
                        let place_of = self.known.entry(text.clone());
                        if key == "continue" {
                            place_of.insert_entry(place());
                        } else {
                            place_of.or_insert_with(place);
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

    /// Where a value stood first, or the token of a page last.
    pub(crate) fn of(&self, value: &str) -> Option<&str> {
        self.known.get(value).map(String::as_str)
    }

    /// The text with each place replaced by what stands there now.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut missing = None;
        let filled = PLACE.replace_all(text, |found: &regex::Captures<'_>| {
            let number = |at: usize| found[at].parse::<usize>().unwrap_or(usize::MAX);
            let answer = self.answers.get(&(number(1), number(2)));
            let value = answer.and_then(|answer| answer.pointer(&found[3])).and_then(Value::as_str);
            if value.is_none() {
                missing.get_or_insert_with(|| found[0].to_owned());
            }
            value.unwrap_or_default().to_owned()
        });
        match missing {
            None => Ok(WRITTEN.replace_all(&filled, "$1").into_owned()),
            Some(place) => Err(format!("nothing stands at {place}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_token_of_a_page_is_named_by_where_it_stood_last() {
        let mut places = Places::default();
        places.note(3, 0, &json!({"metadata": {"continue": "t"}}));
        places.note(6, 1, &json!({"metadata": {"continue": "t"}}));
        assert_eq!(places.of("t"), Some("<at 6.1 /metadata/continue>"));
    }

    #[test]
    fn a_value_is_named_by_where_it_stood_first_and_found_there_in_another_run() {
        let mut first = Places::default();
        first.note(2, 0, &json!({"metadata": {"uid": "u-1", "name": "n"}}));
        first.note(2, 1, &json!({"metadata": {"uid": "u-1", "resourceVersion": "7"}}));
        assert_eq!(first.of("u-1"), Some("<at 2.0 /metadata/uid>"));
        assert_eq!(first.of("7"), Some("<at 2.1 /metadata/resourceVersion>"));
        assert_eq!(first.of("8"), None);

        let mut second = Places::default();
        second.note(2, 0, &json!({"metadata": {"uid": "u-2"}}));
        assert_eq!(second.fill("/x?uid=<at 2.0 /metadata/uid>&y").unwrap(), "/x?uid=u-2&y");
        assert_eq!(second.fill(&written("1")).unwrap(), "1");
        assert_eq!(
            second.fill("<at 2.1 /metadata/resourceVersion>").unwrap_err(),
            "nothing stands at <at 2.1 /metadata/resourceVersion>"
        );
    }
}
