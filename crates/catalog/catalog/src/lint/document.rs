//! What one document after the other shows, while a file is read.

use super::{halves::halves, near::nearest, range};
use crate::{
    fold,
    problem::{BlobName, Problem},
    read::{Lines, MOST_PROBLEMS, spots_at},
    rule::Rule,
    shape::{self, Odd},
};
use mainstay_gocompat::quote;
use mainstay_schema::gojson::DeclaredStruct;
use mainstay_yaml::{Document, DocumentFormat, PathStep};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// How many blanks may stand before a JSON stream for other tools to see that it is one.
pub(crate) const HIDING_BLANKS: usize = 4096;

/// The types of properties that somebody reads.
const TYPES: [&str; 9] = [
    "olm.package",
    "olm.gvk",
    "olm.gvk.required",
    "olm.package.required",
    "olm.channel",
    "olm.constraint",
    crate::model::BUNDLE_OBJECT,
    crate::model::CSV_METADATA,
    "olm.maxOpenShiftVersion",
];

const SCHEMAS: [&str; 4] = ["olm.package", "olm.channel", "olm.bundle", "olm.deprecations"];

/// The documents of one file, looked at one by one.
pub(crate) struct Looker<'f> {
    file: Arc<str>,
    text: &'f [u8],
    lines: Lines,
    /// The bytes and the form of the document before.
    last: Option<(Range<usize>, DocumentFormat)>,
    /// Where the last section begins that holds several documents, and whether its lines end with
    /// CR alone.
    returns: Option<(usize, bool)>,
    /// Upstream does not take this file for a stream of JSON.
    hidden_json: Option<&'static str>,
    problems: Vec<Problem>,
}

impl<'f> Looker<'f> {
    pub(crate) fn new(file: &Arc<str>, text: &'f [u8]) -> Self {
        let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let hidden_json = if text.starts_with(b"\xef\xbb\xbf") {
            Some("a byte-order mark before JSON")
        } else if blanks >= HIDING_BLANKS {
            Some("4,096 blanks before JSON")
        } else {
            None
        };
        Self {
            file: file.clone(),
            text,
            lines: Lines::default(),
            last: None,
            returns: None,
            hidden_json,
            problems: Vec::new(),
        }
    }

    /// The byte at `offset` belongs to no character; what was read has another sign for it.
    pub(crate) fn exchanged(&mut self, offset: usize) {
        let line = self.lines.of(self.text, offset);
        self.problems.push(Problem {
            rule: Rule::LostCharacter,
            blob: None,
            file: self.file.clone(),
            line: Some(line),
            column: None,
            message: "there are bytes that are not UTF-8 text: U+FFFD is put for each".to_owned(),
            remedy: "save the file as UTF-8".into(),
        });
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Looks at the next document, and says whether nothing is odd about it.
    pub(crate) fn finds_nothing(&mut self, document: &Document) -> bool {
        self.look_at(document);
        self.problems.is_empty()
    }

    /// Looks at the next document of the file.
    pub(crate) fn look_at(&mut self, document: &Document) {
        let blob = document.value.as_object().and_then(shape::called);
        let mut about = About { looker: self, document, blob, places: Vec::new() };
        about.lost();
        about.repeated();
        about.halves();
        if let Value::Object(fields) = &document.value {
            about.fields(fields);
        }
        about.locate();
        self.last = Some((document.bytes.clone(), document.format));
    }
}

/// One document.
struct About<'l, 'f, 'd> {
    looker: &'l mut Looker<'f>,
    document: &'d Document,
    blob: Option<BlobName>,
    /// Which problems stand at which part of the document.
    places: Vec<(usize, Vec<OwnStep>)>,
}

/// A [`PathStep`] that stays.
enum OwnStep {
    Field(String),
    Item(usize),
}

impl OwnStep {
    fn as_step(&self) -> PathStep<'_> {
        match self {
            Self::Field(name) => PathStep::Field(name),
            Self::Item(index) => PathStep::Item(*index),
        }
    }
}

impl About<'_, '_, '_> {
    /// Whether so much was said of the file that nobody reads more.
    fn enough(&mut self) -> bool {
        let Looker { problems, file, .. } = &mut *self.looker;
        if problems.len() == MOST_PROBLEMS {
            let message =
                format!("there are {MOST_PROBLEMS} remarks on the file; there may be more");
            let remedy = "correct these first";
            problems.push(Problem::of_file(Rule::AboveLimit, file.clone(), message, remedy));
        }
        problems.len() > MOST_PROBLEMS
    }

    fn say(
        &mut self,
        rule: Rule,
        path: &[PathStep<'_>],
        message: String,
        remedy: impl Into<String>,
    ) {
        if self.enough() {
            return;
        }
        let owned = |step: &PathStep<'_>| match step {
            PathStep::Field(name) => OwnStep::Field((*name).to_owned()),
            PathStep::Item(index) => OwnStep::Item(*index),
        };
        self.places.push((self.looker.problems.len(), path.iter().map(owned).collect()));
        self.say_at(rule, (self.document.line, None), message, remedy);
    }

    /// Finds the places of what was said, all in one pass over the document.
    fn locate(self) {
        let Looker { text, lines, problems, .. } = self.looker;
        let paths: Vec<Vec<PathStep<'_>>> = self
            .places
            .iter()
            .map(|(_, path)| path.iter().map(OwnStep::as_step).collect())
            .collect();
        let found = spots_at(text, lines, &self.document.bytes, self.document.line, &paths);
        for ((problem, _), (line, column)) in self.places.iter().zip(found) {
            let problem = &mut problems[*problem];
            (problem.line, problem.column) = (Some(line), column);
        }
    }

    fn say_at(
        &mut self,
        rule: Rule,
        (line, column): (usize, Option<usize>),
        message: String,
        remedy: impl Into<String>,
    ) {
        if self.enough() {
            return;
        }
        self.looker.problems.push(Problem {
            rule,
            blob: self.blob.clone(),
            file: self.looker.file.clone(),
            line: Some(line),
            column,
            message,
            remedy: remedy.into().into(),
        });
    }

    /// Whether other tools stop reading before this document.
    fn lost(&mut self) {
        let Some((before, format)) = &self.looker.last else { return };
        let (why, remedy) = match (self.document.format, format, self.looker.hidden_json) {
            (DocumentFormat::Json, _, Some(why)) => {
                (why, "save the file without it, or put each document into a file of its own")
            }
            (DocumentFormat::Yaml, DocumentFormat::Yaml, _) if *before == self.document.bytes => {
                let section = self.looker.text.get(before.clone()).unwrap_or_default();
                let returns = || section.contains(&b'\r') && !section.contains(&b'\n');
                let known = self.looker.returns.filter(|(start, _)| *start == before.start);
                let (_, returns) = known.unwrap_or_else(|| (before.start, returns()));
                self.looker.returns = Some((before.start, returns));
                if returns {
                    ("lines that end with CR alone", "save the file with LF line ends")
                } else {
                    ("no line that begins with \"---\" before it", "put such a line before it")
                }
            }
            _ => return,
        };
        let message = format!("other tools do not read this document: there is {why}");
        self.say(Rule::LostDocument, &[], message, remedy);
    }

    /// Keys that are there twice: of YAML the reader has noted them.
    fn repeated(&mut self) {
        for repeated in &self.document.repeated_keys {
            self.twice(&repeated.key, (repeated.line, None));
        }
        let Looker { text, .. } = *self.looker;
        let bytes = self.document.bytes.clone();
        if self.document.format == DocumentFormat::Json
            && let Some(json) = text.get(bytes.clone())
        {
            // Columns are counted on from the key before, as lines are.
            let (mut from, mut column) = (0, 1);
            for key in mainstay_yaml::repeated_keys(json) {
                let start = bytes.start + key.start;
                let line = self.looker.lines.of(text, start);
                if start < from {
                    (from, column) = (0, 1);
                }
                let passed = &text[from..start];
                let newline = passed.iter().rposition(|&byte| byte == b'\n');
                let rest = newline.map_or(passed, |at| &passed[at + 1..]);
                // Every character has one byte that continues none.
                let characters = rest.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
                column = if newline.is_some() { 1 } else { column } + characters;
                from = start;
                let place = (line, Some(column));
                self.twice(&String::from_utf8_lossy(&json[key]), place);
            }
        }
    }

    /// Escapes that stand for half of a character.
    fn halves(&mut self) {
        let Looker { text, .. } = *self.looker;
        let bytes = self.document.bytes.clone();
        if self.document.format != DocumentFormat::Json {
            return;
        }
        let Some(json) = text.get(bytes.clone()) else { return };
        for half in halves(json) {
            let escape = String::from_utf8_lossy(&json[half..half + 6]).into_owned();
            let line = self.looker.lines.of(text, bytes.start + half);
            let message =
                format!("{escape} is half of a character only: U+FFFD is put in its place");
            let remedy = "write both halves, or the character itself";
            self.say_at(Rule::LostCharacter, (line, None), message, remedy);
        }
    }

    fn twice(&mut self, key: &str, place: (usize, Option<usize>)) {
        let message = format!("the key {key} is there twice, the first value is lost");
        self.say_at(Rule::RepeatedKey, place, message, "keep one of them");
    }

    fn fields(&mut self, fields: &Map<String, Value>) {
        let schema = fold::get_in(fields, "schema").and_then(Value::as_str).unwrap_or_default();
        let Some((shape, _)) = shape::of_document(schema) else {
            self.other(schema, fields);
            return;
        };
        let loss = "rendering the catalog drops it";
        self.odd(&self.document.value, shape, Vec::new(), (Rule::UnknownField, schema, loss));
        if let Some(Value::Array(entries)) = fold::get_in(fields, "entries") {
            self.skip_ranges(entries);
        }
        if let Some(Value::Array(properties)) = fold::get_in(fields, "properties") {
            self.properties(properties);
        }
    }

    /// What is odd about the fields of a value that stands at `path`. An unknown one breaks the
    /// rule given, in what it is called, with the loss.
    fn odd(
        &mut self,
        value: &Value,
        declared: &'static DeclaredStruct,
        mut path: Vec<PathStep<'static>>,
        (rule, called, loss): (Rule, &str, &str),
    ) {
        let mut found = Vec::new();
        let depth = path.len();
        shape::odd_fields(declared, value, &mut path, &mut |path, declared, odd| {
            found.push((path.to_vec(), declared, odd));
        });
        for (path, declared, odd) in found {
            let (name, rule, message, remedy) = match odd {
                // Of whole documents the reader says it.
                Odd::Twice(..) if path.is_empty() => continue,
                Odd::Unknown(name) => {
                    let below: String = path[depth..].iter().map(step_text).collect();
                    let place = match below.trim_start_matches('.') {
                        "" => called.to_owned(),
                        below => format!("{below} of {called}"),
                    };
                    let message = format!("there is no field {} in {place}: {loss}", quote(name));
                    let remedy =
                        match nearest(name, declared.fields.iter().map(|(field, _)| *field), 2) {
                            Some(meant) => format!("did you mean {}?", quote(meant)),
                            None => "remove it".to_owned(),
                        };
                    (name, rule, message, remedy)
                }
                Odd::Twice(first, second) => {
                    let message = format!(
                        "{} and {} differ only in case: one of the values is lost",
                        quote(first),
                        quote(second)
                    );
                    (second, Rule::CaseOfKeys, message, "keep one of the spellings".to_owned())
                }
            };
            let mut path: Vec<PathStep<'_>> = path;
            path.push(PathStep::Field(name));
            self.say(rule, &path, message, remedy);
        }
    }

    /// A document of a schema that is not ours.
    fn other(&mut self, schema: &str, fields: &Map<String, Value>) {
        if schema.starts_with("olm.") || nearest(schema, SCHEMAS, 2).is_some() {
            let message = format!("nothing reads documents of the schema {}", quote(schema));
            let remedy = match nearest(&schema.to_lowercase(), SCHEMAS, 3) {
                Some(meant) => format!("did you mean {}?", quote(meant)),
                None => "names that begin with olm. are reserved; use a domain of yours".to_owned(),
            };
            self.say(Rule::UnknownSchema, &[PathStep::Field("schema")], message, remedy);
        }
        let package = fold::get_in(fields, "package").and_then(Value::as_str);
        let package = package.filter(|package| !package.is_empty());
        for (field, name) in [("schema", Some(schema)), ("package", package)] {
            let Some(name) = name.filter(|name| !name.is_empty() && !can_be_asked_for(name)) else {
                continue;
            };
            let message =
                format!("other tools do not serve a catalog with the {field} {}", quote(name));
            let remedy =
                "begin with a letter or digit; go on with these, dots, dashes and underscores";
            self.say(Rule::NotServed, &[PathStep::Field(field)], message, remedy);
        }
        if let Some(Value::String(package)) = fold::get_in(fields, "package")
            && package.is_empty()
        {
            let message = "the field package is empty".to_owned();
            self.say(
                Rule::MissingName,
                &[PathStep::Field("package")],
                message,
                "name a package, or remove the field",
            );
        }
        if let Some(Value::Array(properties)) = fold::get_in(fields, "properties") {
            self.property_forms(properties, true);
        }
    }

    fn skip_ranges(&mut self, entries: &[Value]) {
        for (index, entry) in entries.iter().enumerate() {
            let text = shape::text(entry, "skipRange");
            if !text.is_empty()
                && let Some((rule, message, remedy)) = range::look_at("skipRange", text, false)
            {
                let path = [
                    PathStep::Field("entries"),
                    PathStep::Item(index),
                    PathStep::Field("skipRange"),
                ];
                self.say(rule, &path, message, remedy);
            }
        }
    }

    /// Whether properties have a type and a value; a value that is `null` is none, and one that is
    /// not there counts if `missing` says so.
    fn property_forms(&mut self, properties: &[Value], missing: bool) {
        for (index, property) in properties.iter().enumerate() {
            let path = [PathStep::Field("properties"), PathStep::Item(index)];
            let kind = shape::text(property, "type");
            if kind.is_empty() {
                let message = format!("property[{index}] has no type");
                self.say(Rule::BadProperty, &path, message, "give it a type, or remove it");
            } else if fold::get(property, "value").map_or(missing, Value::is_null) {
                let message = format!("property[{index}] of type {} has no value", quote(kind));
                self.say(Rule::BadProperty, &path, message, "give it a value, or remove it");
            }
        }
    }

    fn properties(&mut self, properties: &[Value]) {
        // A property of a bundle without any value is noticed when it is loaded.
        let is_bundle = self.blob.as_ref().is_some_and(|blob| &*blob.schema == "olm.bundle");
        self.property_forms(properties, !is_bundle);
        let is_metadata = |property: &(usize, &Value)| {
            shape::text(property.1, "type") == crate::model::CSV_METADATA
        };
        if let Some((index, _)) = properties.iter().enumerate().filter(is_metadata).nth(1) {
            let message = format!(
                "other tools do not serve a catalog with two properties of type {} in a bundle",
                quote(crate::model::CSV_METADATA)
            );
            let path = [PathStep::Field("properties"), PathStep::Item(index)];
            self.say(Rule::NotServed, &path, message, "remove one of them");
        }
        let mut seen = BTreeSet::new();
        for (index, property) in properties.iter().enumerate() {
            let kind = shape::text(property, "type");
            let value = fold::get(property, "value").filter(|value| !value.is_null());
            let Some(value) = value else { continue };
            let path = vec![
                PathStep::Field("properties"),
                PathStep::Item(index),
                PathStep::Field("value"),
            ];
            if !TYPES.contains(&kind) {
                if let Some(meant) = nearest(kind, TYPES, 2).filter(|_| kind.len() > 5) {
                    let message = format!("nothing reads properties of the type {}", quote(kind));
                    let remedy = format!("did you mean {}?", quote(meant));
                    let path = [path[0], path[1], PathStep::Field("type")];
                    self.say(Rule::PropertyType, &path, message, remedy);
                }
                continue;
            }
            if kind == crate::model::BUNDLE_OBJECT || kind == crate::model::CSV_METADATA {
                continue;
            }
            if let Some(shape) = shape::struct_of_property(kind) {
                let called = format!("the value of {kind}");
                let loss = "nothing reads it";
                self.odd(value, shape, path.clone(), (Rule::UnknownValueField, &called, loss));
            }
            if kind == "olm.package.required" {
                self.requirement(value, &path);
            }
            if kind != "olm.package" && !seen.insert((kind, value.to_string())) {
                let message = format!("property[{index}] of type {} is there already", quote(kind));
                self.say(Rule::RepeatedProperty, &path[..2], message, "remove one of them");
            }
        }
    }

    fn requirement(&mut self, value: &Value, path: &[PathStep<'_>]) {
        let at = |field| path.iter().copied().chain([PathStep::Field(field)]).collect::<Vec<_>>();
        if shape::text(value, "packageName").is_empty() {
            let message = "the required package has no name".to_owned();
            let remedy = "say which package in packageName";
            self.say(Rule::BadProperty, &at("packageName"), message, remedy);
        }
        let text = shape::text(value, "versionRange");
        if let Some((rule, message, remedy)) = range::look_at("versionRange", text, true) {
            self.say(rule, &at("versionRange"), message, remedy);
        }
    }
}

/// Whether clients can ask for a schema or package of that name.
fn can_be_asked_for(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) && name.bytes().all(is_inner)
}

fn step_text(step: &PathStep<'_>) -> String {
    match step {
        PathStep::Field(name) => format!(".{name}"),
        PathStep::Item(index) => format!("[{index}]"),
    }
}
