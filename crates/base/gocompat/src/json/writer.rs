//! JSON writer, compact or indented.

use super::{Html, Numbers, number, text::text};
use serde_json::{Map, Value};

/// Blanks for each level of indented text.
const STEP: usize = 4;
const BLANKS: &str = "                                                                ";

/// Appends JSON to a text.
#[derive(Debug)]
pub struct JsonWriter<'o> {
    out: &'o mut String,
    html: Html,
    numbers: Numbers,
    /// Whether every item has its own line.
    lines: bool,
    depth: usize,
    /// Whether the open list or object is still empty.
    fresh: bool,
    /// Whether the next item is the value of a key.
    keyed: bool,
}

impl<'o> JsonWriter<'o> {
    /// A writer without blanks.
    pub fn compact(out: &'o mut String, html: Html, numbers: Numbers) -> Self {
        Self { out, html, numbers, lines: false, depth: 0, fresh: true, keyed: true }
    }

    /// A writer with one item per line, four blanks for each level.
    pub fn indented(out: &'o mut String, html: Html, numbers: Numbers) -> Self {
        Self { lines: true, ..Self::compact(out, html, numbers) }
    }

    /// Opens a list or an object; the next items up to [`JsonWriter::close`] belong to it.
    pub fn open(&mut self, bracket: char) {
        self.begin_item();
        self.out.push(bracket);
        self.depth += 1;
        self.fresh = true;
    }

    /// Closes the last list or object with its closing bracket.
    pub fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if !std::mem::take(&mut self.fresh) {
            self.line();
        }
        self.out.push(bracket);
    }

    /// Writes the key of the next value.
    pub fn key(&mut self, name: &str) {
        self.begin_item();
        text(self.out, name, self.html);
        self.out.push_str(if self.lines { ": " } else { ":" });
        self.keyed = true;
    }

    /// Writes a text.
    pub fn text(&mut self, words: &str) {
        self.begin_item();
        text(self.out, words, self.html);
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.begin_item();
        self.out.push_str("null");
    }

    /// Writes any value. The caller has limited its depth.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(flag) => {
                self.begin_item();
                self.out.push_str(if *flag { "true" } else { "false" });
            }
            Value::Number(value) => {
                self.begin_item();
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
            Value::Object(fields) => self.object(fields),
        }
    }

    /// Writes an object. The caller has limited its depth.
    pub fn object(&mut self, fields: &Map<String, Value>) {
        self.open('{');
        for (name, value) in fields {
            self.key(name);
            self.value(value);
        }
        self.close('}');
    }

    /// Writes a valid JSON text; only its blanks change.
    pub fn raw(&mut self, json: &str) {
        self.begin_item();
        // The items inside the text are handled here, not by calls.
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

    /// Writes the separator before an item: a comma and a new line.
    fn begin_item(&mut self) {
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

/// The length of the quoted text at the beginning, including the quotes.
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
    fn indentation_ignores_existing_blanks() {
        assert_eq!(
            indent("{ \"a\" : [ ], \"b\":{\n}, \"c\":[1,\"x y\\\"\"], \"d\":[[ ]] }"),
            "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        1,\n        \"x y\\\"\"\n    ],\n    \
             \"d\": [\n        []\n    ]\n}"
        );
        assert_eq!(indent(" 7 "), "7");
    }

    #[test]
    fn calls_raw_texts_and_values_can_be_mixed() {
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
        fn written_values_parse_as_the_same_values(tree in values()) {
            for html in [Html::Escaped, Html::Plain] {
                let compact = value(&tree, html, Numbers::Whole);
                let mut lines = String::new();
                JsonWriter::indented(&mut lines, html, Numbers::Whole).value(&tree);
                // Only the fraction of whole floats is lost.
                let read: Value = serde_json::from_str(&compact).unwrap();
                prop_assert_eq!(value(&read, html, Numbers::Whole), compact.clone());
                prop_assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), read);
                // Indenting and compacting texts gives the same as writing values.
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
