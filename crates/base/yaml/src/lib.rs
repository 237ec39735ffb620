//! YAML and JSON as Kubernetes tools read and write them.
//!
//! kubectl, opm and the controllers of upstream share one decoder. It converts YAML to JSON by the
//! rules of YAML 1.1 (`yes` is true, `0644` is 420, `<<` merges); everything after that sees JSON
//! only. This crate is that decoder; its callers see [`serde_json::Value`].
//!
//! ```text
//! bytes ─► text ─► sections (lines that begin with ---) ─┬─► scanner of usual YAML ─────► Value
//!            │                                           └─► parser events ─► scalars ─► Value
//!            └───► stream of JSON values, when it begins with {  ──────────────────────► Value
//! ```
//!
//! A scanner reads a section of common YAML in one pass over its bytes, at 0.2 GB/s and more. It
//! leaves everything uncommon and everything that may be invalid to the parser, so only the parser
//! decides what is YAML. The parser checks the rules of libyaml in upstream's order, so values,
//! errors and messages ([`libyaml`]) are upstream's. Tests compare scanner and parser on real
//! catalogs and on thousands of damaged texts.
//!
//! Why no library: a library's parser with a serde deserializer is many times slower and does not
//! know the position of every node. It checks what a document costs (nesting, aliases, scalar
//! length) only afterwards; these readers check it while the document grows. And libraries follow
//! YAML 1.2, unlike upstream: they differ in tabs, line breaks (U+0085 is one) and indentation
//! inside quotes. The table test of awkward scalars was recorded from upstream's decoder.
//!
//! Deliberate differences from upstream: no document is lost silently. Upstream stops without an
//! error after `...`, after a byte-order mark and after a fall-back from JSON to YAML; this crate
//! reads the documents that follow. And [`Options::max_depth`] limits nesting instead of 10,000.
//!
//! This crate does not keep comments, styles or key order, and it does not decode into Rust types.
//! Decode the [`Value`] for that: a typed YAML decoder would read `name: on` as the text "on".

mod build;
mod emit;
mod error;
mod fast;
mod json;
mod json_keys;
pub mod libyaml;
mod locate;
mod parser;
mod scalar;
mod section;
mod text;

pub use emit::to_string;
pub use error::{NodeFault, TagFault, YamlError, YamlFault};
pub use json_keys::repeated_keys;
pub use locate::{PathStep, locate, locate_all};
pub use section::{Section, sections};

use section::Sections;
use serde_json::Value;
use std::ops::Range;

/// How to treat a key that occurs twice in a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// The last value wins, as in kubectl and opm.
    #[default]
    LastWins,
    /// The last value wins, and [`Document::repeated_keys`] lists the key.
    Note,
    /// The document is an error.
    Refuse,
}

/// How to treat documents that hold only blanks, comments or a `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EmptyDocuments {
    /// They are skipped, as in kubectl.
    #[default]
    Skip,
    /// They are read as `null`. Sections without any byte are skipped all the same, as in opm.
    Keep,
}

/// How documents are read, and what one may cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keys that occur twice in a mapping or object.
    pub duplicate_keys: DuplicateKeys,
    /// Documents without content.
    pub empty: EmptyDocuments,
    /// How deep mappings and sequences may nest; an alias counts as the node that it stands for.
    /// Values of more than 127 levels need a large stack to be built, written or dropped: 10,000
    /// levels, upstream's limit, take 100 MB in a debug build. The caller provides it.
    pub max_depth: usize,
    /// How many bytes, roughly, all aliases of a document may add to it.
    pub max_alias_bytes: usize,
    /// The maximum length of a scalar in bytes.
    pub max_scalar_bytes: usize,
    /// Whether the float `-0` keeps its sign. It does where Go reads all numbers as floats: in opm,
    /// not in kubectl. In JSON `-0` is a float; in YAML only `-0.0` is.
    pub signed_zero: bool,
}

impl Default for Options {
    /// kubectl's behaviour: the last key wins, empty documents are skipped, limits are generous.
    fn default() -> Self {
        Self {
            duplicate_keys: DuplicateKeys::default(),
            empty: EmptyDocuments::default(),
            max_depth: 127,
            max_alias_bytes: 64 << 20,
            max_scalar_bytes: usize::MAX,
            signed_zero: false,
        }
    }
}

/// The format in which a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// One value of a JSON stream.
    Json,
    /// A YAML document.
    Yaml,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The content.
    pub value: Value,
    /// The line (from 1) of its first node.
    pub line: usize,
    /// Its bytes in the input: the JSON value, or the YAML section, which may hold several
    /// documents separated by `...`.
    pub bytes: Range<usize>,
    /// The format of these bytes.
    pub format: DocumentFormat,
    /// Keys that occur twice in a mapping, with [`DuplicateKeys::Note`]. Always empty for JSON; see
    /// [`repeated_keys`].
    pub repeated_keys: Vec<RepeatedKey>,
}

/// A second occurrence of a key in a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedKey {
    /// The line (from 1) of the second occurrence.
    pub line: usize,
    /// The key; in quotes if it is a string.
    pub key: String,
}

/// Reads a stream of documents: consecutive JSON values if it begins with `{`, YAML documents
/// otherwise.
///
/// As in upstream's reader, a JSON stream that fails at its first or second value is read as YAML
/// from there (`{a: b}` is valid YAML). The iterator ends after the first error.
pub fn documents<'a>(input: &'a [u8], options: &Options) -> Documents<'a> {
    let (text, bom_length, error) = match text::decode(input) {
        Ok((text, bom_length)) => (text, bom_length, None),
        Err(error) => ("", 0, Some(error)),
    };
    let source = if text.trim_start().starts_with('{') {
        DocumentSource::Json(json::JsonStream::new(text))
    } else {
        DocumentSource::Yaml(Sections::new(text, 0, 1))
    };
    Documents {
        text,
        bom_length,
        options: options.clone(),
        source,
        ready: Vec::new(),
        error,
        fallback: None,
        done: false,
    }
}

/// Reads a part of a stream of known format. The part must consist of whole JSON values or whole
/// sections, and its first line is `line` of the stream. The documents of all parts together are
/// those of the stream. If a part fails, only [`documents`] over the whole stream finds the right
/// error.
pub fn documents_of_part<'a>(
    text: &'a str,
    format: DocumentFormat,
    line: usize,
    options: &Options,
) -> Documents<'a> {
    let source = match format {
        DocumentFormat::Json => DocumentSource::Json(json::JsonStream::continued(text, line)),
        DocumentFormat::Yaml => DocumentSource::Yaml(Sections::new(text, 0, line)),
    };
    Documents {
        text,
        bom_length: 0,
        options: options.clone(),
        source,
        ready: Vec::new(),
        error: None,
        fallback: None,
        done: false,
    }
}

/// Reads an input that must hold at most one document; an empty input is `null`.
pub fn one(input: &[u8], options: &Options) -> Result<Value, YamlError> {
    let mut documents = documents(input, options);
    let first = documents.next().transpose()?;
    if let Some(second) = documents.next().transpose()? {
        return Err(YamlError { line: second.line, column: 1, fault: YamlFault::SecondDocument });
    }
    Ok(first.map_or(Value::Null, |document| document.value))
}

enum DocumentSource<'a> {
    Json(json::JsonStream<'a>),
    Yaml(Sections<'a>),
}

/// An iterator over documents; see [`documents`].
pub struct Documents<'a> {
    text: &'a str,
    /// The length of the byte-order mark before `text`.
    bom_length: usize,
    options: Options,
    source: DocumentSource<'a>,
    /// Documents of the current section that the iterator has not returned yet, last one first.
    ready: Vec<Document>,
    error: Option<YamlError>,
    /// The error of the JSON reader, while the rest is read as YAML.
    fallback: Option<YamlError>,
    done: bool,
}

impl Documents<'_> {
    /// Reads one more JSON value or YAML section; `None` at the end.
    fn advance(&mut self) -> Option<Result<Vec<Document>, YamlError>> {
        loop {
            match &mut self.source {
                DocumentSource::Json(stream) => match stream.next(&self.options)? {
                    Ok((value, line, bytes)) => {
                        let format = DocumentFormat::Json;
                        let repeated_keys = Vec::new();
                        return Some(Ok(vec![Document {
                            value,
                            line,
                            bytes,
                            format,
                            repeated_keys,
                        }]));
                    }
                    Err(error) if stream.values() <= 1 => {
                        let (offset, line) = stream.position();
                        self.fallback = Some(error);
                        self.source =
                            DocumentSource::Yaml(Sections::new(&self.text[offset..], offset, line));
                    }
                    Err(error) => return Some(Err(error)),
                },
                DocumentSource::Yaml(sections) => {
                    let section = match sections.next()? {
                        Ok(section) => section,
                        Err(error) => return Some(Err(error)),
                    };
                    let text = text::with_final_newline(&self.text[section.bytes.clone()]);
                    let read = match fast::section(&text, section.line, &self.options) {
                        Some(document) => Ok(vec![document]),
                        None => build::section(&text, section.line, &self.options),
                    };
                    let json = self.fallback.take();
                    return Some(match (read, json) {
                        (Ok(read), _) => Ok(read
                            .into_iter()
                            .map(|(value, line, repeated_keys)| Document {
                                value,
                                line,
                                bytes: section.bytes.clone(),
                                format: DocumentFormat::Yaml,
                                repeated_keys,
                            })
                            .collect()),
                        // The error of the reader that got further is returned. In a truncated text
                        // both stop at the end; there it is the JSON error.
                        (Err(yaml), Some(json))
                            if (json.line, json.column) >= (yaml.line, yaml.column)
                                || matches!(
                                    json.fault,
                                    YamlFault::Json { ends_early: true, .. }
                                ) =>
                        {
                            Err(json)
                        }
                        (Err(yaml), _) => Err(yaml),
                    });
                }
            }
        }
    }
}

impl Iterator for Documents<'_> {
    type Item = Result<Document, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            self.done = true;
            return Some(Err(error));
        }
        while !self.done {
            if let Some(mut document) = self.ready.pop() {
                if document.value.is_null() && self.options.empty == EmptyDocuments::Skip {
                    continue;
                }
                document.bytes =
                    document.bytes.start + self.bom_length..document.bytes.end + self.bom_length;
                return Some(Ok(document));
            }
            match self.advance() {
                None => self.done = true,
                Some(Ok(read)) => {
                    self.ready = read;
                    self.ready.reverse();
                }
                Some(Err(error)) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
