//! Values and texts, compact or laid out.

use super::{Html, Numbers, number, text::text};
use serde_json::Value;

/// Blanks for each level of what is laid out.
const STEP: usize = 4;
const BLANKS: &str = "                                                                ";

/// Appends JSON to a text.
#[derive(Debug)]
pub struct JsonWriter<'o> {
    out: &'o mut String,
    html: Html,
    numbers: Numbers,
    /// Whether every item has a line of its own.
    lines: bool,
    depth: usize,
    /// Nothing stands yet in the list or object that is open.
    fresh: bool,
    /// A key waits for its value.
    keyed: bool,
}

impl<'o> JsonWriter<'o> {
    /// One that writes no blanks.
    pub fn compact(out: &'o mut String, html: Html, numbers: Numbers) -> Self {
        Self { out, html, numbers, lines: false, depth: 0, fresh: true, keyed: true }
    }

    /// One that gives every item a line of its own, four blanks for each level.
    pub fn indented(out: &'o mut String, html: Html, numbers: Numbers) -> Self {
        Self { lines: true, ..Self::compact(out, html, numbers) }
    }

    /// Opens a list or an object: what stands until [`JsonWriter::close`] are its items.
    pub fn open(&mut self, bracket: char) {
        self.item();
        self.out.push(bracket);
        self.depth += 1;
        self.fresh = true;
    }

    /// Closes what was opened last, with the other one of its brackets.
    pub fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if !std::mem::take(&mut self.fresh) {
            self.line();
        }
        self.out.push(bracket);
    }

    /// The key of the value that comes next.
    pub fn key(&mut self, name: &str) {
        self.item();
        text(self.out, name, self.html);
        self.out.push_str(if self.lines { ": " } else { ":" });
        self.keyed = true;
    }

    /// A text.
    pub fn text(&mut self, words: &str) {
        self.item();
        text(self.out, words, self.html);
    }

    /// `null`.
    pub fn null(&mut self) {
        self.item();
        self.out.push_str("null");
    }

    /// Any value. Who has read it has bounded its depth.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(flag) => {
                self.item();
                self.out.push_str(if *flag { "true" } else { "false" });
            }
            Value::Number(value) => {
                self.item();
                number::push(self.out, value, self.numbers);
            }
            Value::String(words) => self.text(words),
            Value::Array(items) => {
                self.open('[');
                for item in items {
                    self.value(item);
                }
                self.close(']');
            }
            Value::Object(fields) => {
                self.open('{');
                for (name, value) in fields {
                    self.key(name);
                    self.value(value);
                }
                self.close('}');
            }
        }
    }

    /// A JSON text, which is known to be sound; only its blanks change.
    pub fn raw(&mut self, json: &str) {
        self.item();
        // What stands in the text is told apart here, not by the calls.
        self.fresh = false;
        let bytes = json.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    let end = at + text_length(&bytes[at..]);
                    self.out.push_str(&json[at..end]);
                    at = end;
                    continue;
                }
                b'{' | b'[' => {
                    self.out.push(char::from(byte));
                    let inside = at + 1 + blanks(&bytes[at + 1..]);
                    if let Some(close @ (b'}' | b']')) = bytes.get(inside) {
                        self.out.push(char::from(*close));
                        at = inside;
                    } else {
                        self.depth += 1;
                        self.line();
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.line();
                    self.out.push(char::from(byte));
                }
                b',' => {
                    self.out.push(',');
                    self.line();
                }
                b':' => self.out.push_str(if self.lines { ": " } else { ":" }),
                b' ' | b'\t' | b'\n' | b'\r' => {}
                // Numbers and words.
                _ => {
                    let rest = &bytes[at..];
                    let plain = |byte: &&u8| !b" \t\r\n,:]}[{\"".contains(byte);
                    let end = at + rest.iter().take_while(plain).count();
                    self.out.push_str(&json[at..end]);
                    at = end;
                    continue;
                }
            }
            at += 1;
        }
    }

    /// What stands before an item: a comma behind the one before, a line.
    fn item(&mut self) {
        if std::mem::take(&mut self.keyed) {
            return;
        }
        if !std::mem::take(&mut self.fresh) {
            self.out.push(',');
        }
        self.line();
    }

    fn line(&mut self) {
        if !self.lines {
            return;
        }
        self.out.push('\n');
        let mut blanks = self.depth * STEP;
        while blanks > 0 {
            let some = blanks.min(BLANKS.len());
            self.out.push_str(&BLANKS[..some]);
            blanks -= some;
        }
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// How long the quoted text at the beginning is, quotes included.
fn text_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::JsonWriter;
    use crate::json::{Html, Numbers, indent, value};
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn a_text_of_json_is_laid_out_whatever_its_blanks() {
        assert_eq!(
            indent("{ \"a\" : [ ], \"b\":{\n}, \"c\":[1,\"x y\\\"\"], \"d\":[[ ]] }"),
            "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        1,\n        \"x y\\\"\"\n    ],\n    \
             \"d\": [\n        []\n    ]\n}"
        );
        assert_eq!(indent(" 7 "), "7");
    }

    #[test]
    fn calls_texts_and_values_may_be_mixed() {
        for (lines, written) in [
            (false, "{\"a\":[],\"b\":[1,{\"x\":2},[]],\"c\":{}}"),
            (
                true,
                "{\n    \"a\": [],\n    \"b\": [\n        1,\n        {\n            \"x\": 2\n        },\n        \
                 []\n    ],\n    \"c\": {}\n}",
            ),
        ] {
            let mut out = String::new();
            let mut writer = if lines {
                JsonWriter::indented(&mut out, Html::Plain, Numbers::Whole)
            } else {
                JsonWriter::compact(&mut out, Html::Plain, Numbers::Whole)
            };
            writer.open('{');
            writer.key("a");
            writer.raw("[ ]");
            writer.key("b");
            writer.open('[');
            writer.value(&1.into());
            writer.raw("{ \"x\" : 2 }");
            writer.open('[');
            writer.close(']');
            writer.close(']');
            writer.key("c");
            writer.open('{');
            writer.close('}');
            writer.close('}');
            assert_eq!(out, written);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i16>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_was_there(tree in values()) {
            for html in [Html::Escaped, Html::Plain] {
                let compact = value(&tree, html, Numbers::Whole);
                let mut lines = String::new();
                JsonWriter::indented(&mut lines, html, Numbers::Whole).value(&tree);
                // Whole floats lose their fraction, which is the one thing that may change.
                let read: Value = serde_json::from_str(&compact).unwrap();
                prop_assert_eq!(value(&read, html, Numbers::Whole), compact.clone());
                prop_assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), read);
                // Laying out and compacting texts is what writing values does.
                let mut again = String::new();
                JsonWriter::indented(&mut again, html, Numbers::Whole).raw(&compact);
                prop_assert_eq!(&again, &lines);
                let mut back = String::new();
                JsonWriter::compact(&mut back, html, Numbers::Whole).raw(&lines);
                prop_assert_eq!(&back, &compact);
            }
        }
    }
}
