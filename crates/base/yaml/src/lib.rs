//! YAML and JSON as Kubernetes tools read and write them.
//!
//! kubectl, opm and the controllers of upstream share one decoder: YAML is turned into JSON by the
//! rules of YAML 1.1 (`yes` is true, `0644` is 420, `<<` merges), and only JSON is looked at
//! afterwards. This crate is that decoder; everybody else sees [`serde_json::Value`].
//!
//! ```text
//! bytes ─► text ─► sections (lines that begin with ---) ─┬─► scanner of usual YAML ─────► Value
//!            │                                           └─► parser events ─► scalars ─► Value
//!            └───► stream of JSON values, when it begins with {  ──────────────────────► Value
//! ```
//!
//! A section of usual YAML is read by a scanner in one pass over its bytes, at a fifth of a gigabyte
//! a second and more. Anything unusual and anything that may be wrong is left to the parser, so that
//! there is one judge of what is YAML: it follows the rules of libyaml in the order in which upstream
//! follows them, so verdicts, values and words ([`libyaml`]) are upstream's. Tests hold scanner and
//! parser together on real catalogs and on damaged texts by the thousand.
//!
//! Why readers of our own: they are many times as fast as a library's parser with a serde
//! deserializer behind it, they know the position of every node, they bound what a document may
//! cost (nesting, aliases, scalar length) while it grows instead of afterwards, and libraries follow
//! YAML 1.2, which upstream does not: tabs, line breaks (U+0085 is one), indentation inside quotes.
//! The table test of awkward scalars was recorded from upstream's decoder.
//!
//! Deliberate differences from upstream: nothing is lost silently (documents after `...`, after a
//! byte-order mark or after a fall-back from JSON to YAML are read, where upstream stops without
//! a word); nesting is bounded by [`Options::max_depth`] instead of 10,000.
//!
//! What this crate does not do: keep comments, styles or key order, or decode into Rust types.
//! Decode the [`Value`] for that: a typed YAML decoder would take `name: on` for the text "on".

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
pub use locate::{Step, locate, locate_all};
pub use section::{Section, sections};

use section::Sections;
use serde_json::Value;
use std::ops::Range;

/// What to do when a mapping has one key twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// The later one counts, as kubectl and opm have it.
    #[default]
    LastWins,
    /// The later one counts, and [`Document::repeated`] names the key.
    Note,
    /// An error.
    Refuse,
}

/// What to do with documents that hold nothing but blanks, comments or a `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EmptyDocuments {
    /// Leave them out, as kubectl does.
    #[default]
    Skip,
    /// Yield them as `null`. (Sections without a single byte do not count, as with opm.)
    Keep,
}

/// How to read, and how much a document may cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// Duplicate keys of a mapping or object.
    pub duplicate_keys: DuplicateKeys,
    /// Documents without content.
    pub empty: EmptyDocuments,
    /// How deep mappings and sequences may nest, aliases counted as what they stand for. Values
    /// of more than 127 levels cannot be made, written or dropped on every stack: who allows them
    /// has to see to a large one (10,000 levels, the most that upstream reads, ask for 100 MB
    /// in a debug build).
    pub max_depth: usize,
    /// How many bytes (roughly) all aliases of a document may add to it.
    pub max_alias_bytes: usize,
    /// How many bytes one scalar may have.
    pub max_scalar_bytes: usize,
    /// Whether a float that is `-0` keeps its sign, as it does where Go reads all numbers as floats
    /// (opm does, kubectl does not). In JSON `-0` is one too, in YAML only `-0.0` is.
    pub signed_zero: bool,
}

impl Default for Options {
    /// What kubectl does: last key wins, empty documents are left out, generous bounds.
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

/// The form a document was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One value of a JSON stream.
    Json,
    /// A YAML document.
    Yaml,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// The line (from 1) of its first node.
    pub line: usize,
    /// The bytes of the input it was read from: the JSON value, or the YAML section (which may
    /// hold several documents, separated by `...`).
    pub bytes: Range<usize>,
    /// The form of these bytes.
    pub format: Format,
    /// Keys that a mapping has twice, if [`DuplicateKeys::Note`] asks for them; none of JSON
    /// (see [`repeated_keys`]).
    pub repeated: Vec<Repeated>,
}

/// A key that stands in a mapping for the second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The line (from 1) where it stands again.
    pub line: usize,
    /// The key, in quotes if it is a text.
    pub key: String,
}

/// Reads a stream of documents: JSON values one after the other if it begins with `{`, YAML
/// documents otherwise.
///
/// As upstream's reader does, a JSON stream that fails at its first or second value is taken for
/// YAML from there (`{a: b}` is fine YAML). The iterator ends after the first error.
pub fn documents<'a>(input: &'a [u8], options: &Options) -> Documents<'a> {
    let (text, skipped, error) = match text::decode(input) {
        Ok((text, skipped)) => (text, skipped, None),
        Err(error) => ("", 0, Some(error)),
    };
    let source = if text.trim_start().starts_with('{') {
        Source::Json(json::Stream::new(text))
    } else {
        Source::Yaml(Sections::new(text, 0, 1))
    };
    Documents {
        text,
        skipped,
        options: options.clone(),
        source,
        ready: Vec::new(),
        error,
        fallback: None,
        done: false,
    }
}

/// Reads a part of a stream whose form is known: whole JSON values, or whole sections, the first
/// of which begins on `line`. Joined, the documents of all parts are those of the stream; if one
/// of them fails, only [`documents`] over all of it can say why.
pub fn part<'a>(text: &'a str, format: Format, line: usize, options: &Options) -> Documents<'a> {
    let source = match format {
        Format::Json => Source::Json(json::Stream::behind(text, line)),
        Format::Yaml => Source::Yaml(Sections::new(text, 0, line)),
    };
    Documents {
        text,
        skipped: 0,
        options: options.clone(),
        source,
        ready: Vec::new(),
        error: None,
        fallback: None,
        done: false,
    }
}

/// Reads an input that must hold exactly one document (`null` if it holds none).
pub fn one(input: &[u8], options: &Options) -> Result<Value, YamlError> {
    let mut documents = documents(input, options);
    let first = documents.next().transpose()?;
    if let Some(second) = documents.next().transpose()? {
        return Err(YamlError { line: second.line, column: 1, fault: YamlFault::SecondDocument });
    }
    Ok(first.map_or(Value::Null, |document| document.value))
}

enum Source<'a> {
    Json(json::Stream<'a>),
    Yaml(Sections<'a>),
}

/// The iterator that [`documents`] returns.
pub struct Documents<'a> {
    text: &'a str,
    /// Bytes before `text` (a byte-order mark).
    skipped: usize,
    options: Options,
    source: Source<'a>,
    /// Documents of the present section that are not handed out yet, last one first.
    ready: Vec<Document>,
    error: Option<YamlError>,
    /// What the JSON reader said before the rest was taken for YAML.
    fallback: Option<YamlError>,
    done: bool,
}

impl Documents<'_> {
    /// Reads one more JSON value or YAML section; `None` at the end.
    fn advance(&mut self) -> Option<Result<Vec<Document>, YamlError>> {
        loop {
            match &mut self.source {
                Source::Json(stream) => match stream.next(&self.options)? {
                    Ok((value, line, bytes)) => {
                        let format = Format::Json;
                        let repeated = Vec::new();
                        return Some(Ok(vec![Document { value, line, bytes, format, repeated }]));
                    }
                    Err(error) if stream.values() <= 1 => {
                        let (offset, line) = stream.position();
                        self.fallback = Some(error);
                        self.source =
                            Source::Yaml(Sections::new(&self.text[offset..], offset, line));
                    }
                    Err(error) => return Some(Err(error)),
                },
                Source::Yaml(sections) => {
                    let section = match sections.next()? {
                        Ok(section) => section,
                        Err(error) => return Some(Err(error)),
                    };
                    let text = text::ended(&self.text[section.bytes.clone()]);
                    let read = match fast::section(&text, section.line, &self.options) {
                        Some(found) => Ok(vec![found]),
                        None => build::section(&text, section.line, &self.options),
                    };
                    let json = self.fallback.take();
                    return Some(match (read, json) {
                        (Ok(read), _) => Ok(read
                            .into_iter()
                            .map(|(value, line, repeated)| Document {
                                value,
                                line,
                                bytes: section.bytes.clone(),
                                format: Format::Yaml,
                                repeated,
                            })
                            .collect()),
                        // It was meant as what gets further; both stop at the end of a text that
                        // is cut off.
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
                    document.bytes.start + self.skipped..document.bytes.end + self.skipped;
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
