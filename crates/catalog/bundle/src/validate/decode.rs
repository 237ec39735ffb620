//! The first document of a file as upstream's tools decode it, and their words where they cannot.

use mainstay_gojson::{Html, Numbers};
use mainstay_yaml::{EmptyDocuments, Options};
use serde_json::Value;
use std::sync::Arc;

/// A document, and the line (from 1) it begins on.
#[derive(Clone)]
pub(crate) struct Decoded {
    pub(crate) value: Arc<Value>,
    pub(crate) line: usize,
    /// The line on which a second document begins, which no tool reads.
    pub(crate) second: Option<usize>,
}

/// Why a file holds no object.
#[derive(Clone)]
pub(crate) struct Refused {
    /// Upstream's words.
    pub(crate) upstream: String,
    pub(crate) line: Option<usize>,
}

impl Refused {
    pub(crate) fn new(upstream: impl Into<String>, line: Option<usize>) -> Self {
        Self { upstream: upstream.into(), line }
    }
}

/// The first document, whatever it is; `null` where it is empty.
pub(crate) fn document(bytes: &[u8]) -> Result<Decoded, Refused> {
    let options = Options { empty: EmptyDocuments::Keep, ..Options::default() };
    let mut documents = mainstay_yaml::documents(bytes, &options);
    match documents.next() {
        None => Err(Refused::new("EOF", None)),
        Some(Err(error)) => {
            let section = std::str::from_utf8(bytes).ok().and_then(|text| {
                let section = mainstay_yaml::sections(text).next()?.ok()?;
                text.get(section.bytes)
            });
            let text = section.map_or(bytes, str::as_bytes);
            let words = match mainstay_yaml::libyaml::fault(text) {
                Some(fault) => format!("error converting YAML to JSON: yaml: {fault}"),
                None => error.message.clone(),
            };
            Err(Refused::new(words, Some(error.line)))
        }
        Some(Ok(first)) => {
            let second = documents.next().and_then(Result::ok);
            let second = second.filter(|found| !found.value.is_null()).map(|found| found.line);
            Ok(Decoded { value: Arc::new(first.value), line: first.line, second })
        }
    }
}

/// Why a value is no object; none if it is one.
pub(crate) fn unstructured(value: &Value) -> Option<String> {
    let Value::Object(fields) = value else {
        let found = mainstay_object::gotext::json_kind(value);
        return match value {
            Value::Null => Some("Object 'Kind' is missing in 'null'".to_owned()),
            _ => Some(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )),
        };
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    // An apiVersion with two slashes names neither version nor kind.
    if text("kind").is_empty() || text("apiVersion").matches('/').count() > 1 {
        let json = mainstay_gojson::value(value, Html::Escaped, Numbers::Object);
        return Some(format!("Object 'Kind' is missing in '{json}'"));
    }
    None
}

/// Where a JSON text breaks the grammar: how many bytes upstream has read when it notices.
pub(crate) fn json_fault(text: &[u8]) -> Option<usize> {
    let mut scan = Scan { text, at: 0 };
    scan.blanks();
    let sound = scan.value(0).and_then(|()| {
        scan.blanks();
        if scan.at == text.len() { Ok(()) } else { Err(()) }
    });
    // At the end of the text all of it was read, elsewhere the byte that is wrong too.
    sound.err().map(|()| (scan.at + 1).min(text.len()))
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, wanted: impl Fn(u8) -> bool) -> Result<(), ()> {
        match self.peek() {
            Some(byte) if wanted(byte) => {
                self.at += 1;
                Ok(())
            }
            _ => Err(()),
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// Nesting is bounded; what is deeper is refused, as upstream does far deeper.
    fn value(&mut self, depth: usize) -> Result<(), ()> {
        if depth > 200 {
            return Err(());
        }
        match self.peek() {
            Some(b'{') => self.list(b'}', |scan| {
                scan.string()?;
                scan.blanks();
                scan.expect(|byte| byte == b':')?;
                scan.blanks();
                scan.value(depth + 1)
            }),
            Some(b'[') => self.list(b']', |scan| scan.value(depth + 1)),
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(()),
        }
    }

    fn list(
        &mut self,
        end: u8,
        mut element: impl FnMut(&mut Self) -> Result<(), ()>,
    ) -> Result<(), ()> {
        self.at += 1;
        self.blanks();
        if self.expect(|byte| byte == end).is_ok() {
            return Ok(());
        }
        loop {
            element(self)?;
            self.blanks();
            if self.expect(|byte| byte == b',').is_err() {
                return self.expect(|byte| byte == end);
            }
            self.blanks();
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), ()> {
        word.iter().try_for_each(|&wanted| self.expect(|byte| byte == wanted))
    }

    fn string(&mut self) -> Result<(), ()> {
        self.expect(|byte| byte == b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let unicode = self.peek() == Some(b'u');
                    self.expect(|byte| b"\"\\/bfnrtu".contains(&byte))?;
                    for _ in 0..if unicode { 4 } else { 0 } {
                        self.expect(|byte| byte.is_ascii_hexdigit())?;
                    }
                }
                Some(byte) if byte >= b' ' => self.at += 1,
                _ => return Err(()),
            }
        }
    }

    fn number(&mut self) -> Result<(), ()> {
        let _ = self.expect(|byte| byte == b'-');
        if self.expect(|byte| byte == b'0').is_err() {
            self.expect(|byte| byte.is_ascii_digit())?;
            self.digits();
        }
        if self.expect(|byte| byte == b'.').is_ok() {
            self.expect(|byte| byte.is_ascii_digit())?;
            self.digits();
        }
        if self.expect(|byte| byte == b'e' || byte == b'E').is_ok() {
            let _ = self.expect(|byte| byte == b'+' || byte == b'-');
            self.expect(|byte| byte.is_ascii_digit())?;
            self.digits();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::json_fault;

    #[test]
    fn a_fault_is_where_the_grammar_breaks() {
        for (text, at) in [
            ("[1, 2.5e-3, {\"a\": \"\\u00e4\\n\"}, true, null]", None),
            (" {} ", None),
            ("- a: b", Some(2)),
            ("[1,]", Some(4)),
            ("[1", Some(2)),
            ("", Some(0)),
            ("{'a': 1}", Some(2)),
            ("[1] x", Some(5)),
            ("\"a\nb\"", Some(3)),
            ("01", Some(2)),
        ] {
            assert_eq!(json_fault(text.as_bytes()), at, "{text}");
        }
        assert!(json_fault("[".repeat(100_000).as_bytes()).is_some());
    }
}
