//! Decoding the first document of a file, with the errors of upstream's tools.

use crate::{
    decode_error::{FirstDocumentError, ObjectError, TypeError},
    error::BundleProblem,
};
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_yaml::{
    Document, DocumentFormat, DuplicateKeys, EmptyDocuments, Options, RepeatedKey,
};
use serde_json::Value;
use std::sync::Arc;

/// How many duplicate keys of one file are listed; the others are counted.
const MAX_REPEATED: usize = 20;

/// A document and the line (from 1) on which it begins.
#[derive(Clone)]
pub(crate) struct Decoded {
    pub(crate) value: Arc<Value>,
    pub(crate) line: usize,
    /// The line on which a second document begins; no tool reads it.
    pub(crate) second: Option<usize>,
    /// Duplicate keys of mappings.
    pub(crate) repeated: Vec<RepeatedKey>,
}

/// Why a file does not hold an object, and the line (from 1) of the error.
#[derive(Clone)]
pub(crate) struct Refused {
    pub(crate) reason: FirstDocumentError,
    pub(crate) line: Option<usize>,
}

impl Refused {
    pub(crate) fn new(reason: FirstDocumentError, line: Option<usize>) -> Self {
        Self { reason, line }
    }
}

/// YAML options for files of bundles: empty documents count, and duplicate keys are recorded.
pub(crate) fn options() -> Options {
    Options {
        empty: EmptyDocuments::Keep,
        duplicate_keys: DuplicateKeys::Note,
        ..Options::default()
    }
}

/// Duplicate keys of a document; `bytes` is the content of its file.
pub(crate) fn repeated(document: &mut Document, bytes: &[u8]) -> Vec<RepeatedKey> {
    let json = bytes.get(document.bytes.clone());
    let Some(json) = json.filter(|_| document.format == DocumentFormat::Json) else {
        return std::mem::take(&mut document.repeated_keys);
    };
    let (mut from, mut line) = (0, document.line);
    let keys = mainstay_yaml::repeated_keys(json).into_iter().map(|key| {
        // The keys are in ascending order of position.
        line += memchr::memchr_iter(b'\n', &json[from..key.start]).count();
        from = key.start;
        RepeatedKey { line, key: String::from_utf8_lossy(&json[key]).into_owned() }
    });
    keys.collect()
}

/// The problems for duplicate keys of a file.
pub(crate) fn lost_values(file: &str, repeated: &[RepeatedKey]) -> Vec<BundleProblem> {
    let problem = |line: usize, message: String| BundleProblem {
        file: file.to_owned(),
        line: Some(line),
        message,
        remedy: "keep one of them".into(),
    };
    let mut problems: Vec<BundleProblem> = repeated
        .iter()
        .take(MAX_REPEATED)
        .map(|repeated| {
            let RepeatedKey { line, key } = repeated;
            problem(*line, format!("the key {key} is there twice, the first value is lost"))
        })
        .collect();
    if let Some(next) = repeated.get(MAX_REPEATED) {
        let more = repeated.len() - MAX_REPEATED;
        problems.push(problem(next.line, format!("{more} more keys are there twice")));
    }
    problems
}

/// The first document, of any type; `null` if empty.
pub(crate) fn document(bytes: &[u8]) -> Result<Decoded, Refused> {
    let mut documents = mainstay_yaml::documents(bytes, &options());
    match documents.next() {
        None => Err(Refused::new(FirstDocumentError::NoDocument, None)),
        Some(Err(error)) => {
            let section = std::str::from_utf8(bytes).ok().and_then(|text| {
                let section = mainstay_yaml::sections(text).next()?.ok()?;
                text.get(section.bytes)
            });
            let text = section.map_or(bytes, str::as_bytes);
            let line = error.line;
            let reason = match mainstay_yaml::libyaml::find_error(text) {
                Some(fault) => FirstDocumentError::ParseYaml(fault.to_string()),
                None => FirstDocumentError::ReadDocument(error),
            };
            Err(Refused::new(reason, Some(line)))
        }
        Some(Ok(mut first)) => {
            let repeated = repeated(&mut first, bytes);
            let second = documents.next().and_then(Result::ok);
            let second = second.filter(|found| !found.value.is_null()).map(|found| found.line);
            Ok(Decoded { value: Arc::new(first.value), line: first.line, second, repeated })
        }
    }
}

/// Why a value is not an object; none if it is one.
pub(crate) fn unstructured_error(value: &Value) -> Option<ObjectError> {
    let Value::Object(fields) = value else {
        return Some(match value {
            Value::Null => ObjectError::MissingKind { json: "null".to_owned() },
            _ => ObjectError::Decode(TypeError::WrongValue {
                found: mainstay_gocompat::values::json_kind(value).to_owned(),
                expected: "map[string]interface {}".to_owned(),
            }),
        });
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    // An apiVersion with two slashes names neither version nor kind.
    if text("kind").is_empty() || text("apiVersion").matches('/').count() > 1 {
        let json = mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Object);
        return Some(ObjectError::MissingKind { json });
    }
    None
}

/// The offset of a JSON syntax error: the number of bytes that upstream has read at the error.
pub(crate) fn json_fault(text: &[u8]) -> Option<usize> {
    let mut scan = Scan { text, at: 0 };
    scan.blanks();
    let result = scan.value(0).and_then(|()| {
        scan.blanks();
        if scan.at == text.len() { Ok(()) } else { Err(()) }
    });
    // The invalid byte counts as read, except at the end of the text.
    result.err().map(|()| (scan.at + 1).min(text.len()))
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

    /// The nesting is bounded. Upstream's bound is far deeper.
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
    fn a_json_syntax_error_has_upstreams_offset() {
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
