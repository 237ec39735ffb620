//! Lint of one document at a time, while a file is read.

use super::{range, similar_names::nearest, surrogates::unpaired_surrogates};
use crate::{
    case_fold,
    problem::{BlobName, CatalogProblem},
    read::{LineCounter, MAX_PROBLEMS, locate_paths},
    rule::CatalogRule,
    shape::{self, FieldNameFault},
};
use mainstay_gocompat::quote;
use mainstay_schema::gojson::DeclaredStruct;
use mainstay_yaml::{Document, DocumentFormat, PathStep};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// How many blanks before a JSON stream hide it from other tools.
pub(crate) const HIDING_BLANKS: usize = 4096;

/// The types of properties that some tool reads.
const PROPERTY_TYPES: [&str; 9] = [
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

/// Lints the documents of one file, one after the other.
pub(crate) struct DocumentLinter<'f> {
    file: Arc<str>,
    text: &'f [u8],
    lines: LineCounter,
    /// The byte range and the format of the previous document.
    last: Option<(Range<usize>, DocumentFormat)>,
    /// The start of the last YAML section with several documents, and whether its lines end with CR
    /// alone.
    returns: Option<(usize, bool)>,
    /// Why upstream does not recognize this file as a stream of JSON.
    hidden_json: Option<&'static str>,
    problems: Vec<CatalogProblem>,
}

impl<'f> DocumentLinter<'f> {
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
            lines: LineCounter::default(),
            last: None,
            returns: None,
            hidden_json,
            problems: Vec::new(),
        }
    }

    /// Reports that U+FFFD replaces the byte at `offset`, which is not UTF-8 text.
    pub(crate) fn report_replaced_byte(&mut self, offset: usize) {
        let line = self.lines.line_at(self.text, offset);
        self.problems.push(CatalogProblem {
            rule: CatalogRule::LostCharacter,
            blob: None,
            file: self.file.clone(),
            line: Some(line),
            column: None,
            message: "some bytes are not UTF-8 text: U+FFFD replaces each of them".to_owned(),
            remedy: "save the file as UTF-8".into(),
        });
    }

    pub(crate) fn into_problems(self) -> Vec<CatalogProblem> {
        self.problems
    }

    /// Checks the next document. Returns whether the file has no problem so far.
    pub(crate) fn is_clean(&mut self, document: &Document) -> bool {
        self.check_document(document);
        self.problems.is_empty()
    }

    /// Checks the next document of the file.
    pub(crate) fn check_document(&mut self, document: &Document) {
        let blob = document.value.as_object().and_then(shape::blob_name);
        let mut lint = DocumentLint { linter: self, document, blob, paths_of_problems: Vec::new() };
        lint.check_lost_document();
        lint.check_repeated_keys();
        lint.check_surrogates();
        if let Value::Object(fields) = &document.value {
            lint.check_fields(fields);
        }
        lint.locate();
        self.last = Some((document.bytes.clone(), document.format));
    }
}

/// The check of one document.
struct DocumentLint<'l, 'f, 'd> {
    linter: &'l mut DocumentLinter<'f>,
    document: &'d Document,
    blob: Option<BlobName>,
    /// The index of each problem, with its path in the document.
    paths_of_problems: Vec<(usize, Vec<OwnedStep>)>,
}

/// An owned [`Step`].
enum OwnedStep {
    Field(String),
    Item(usize),
}

impl OwnedStep {
    fn as_step(&self) -> PathStep<'_> {
        match self {
            Self::Field(name) => PathStep::Field(name),
            Self::Item(index) => PathStep::Item(*index),
        }
    }
}

impl DocumentLint<'_, '_, '_> {
    /// Whether the file has so many problems that no more are reported.
    fn is_full(&mut self) -> bool {
        let DocumentLinter { problems, file, .. } = &mut *self.linter;
        if problems.len() == MAX_PROBLEMS {
            let message = format!("the file has {MAX_PROBLEMS} lint problems; there may be more");
            let remedy = "correct these first";
            problems.push(CatalogProblem::of_file(
                CatalogRule::AboveLimit,
                file.clone(),
                message,
                remedy,
            ));
        }
        problems.len() > MAX_PROBLEMS
    }

    fn report(
        &mut self,
        rule: CatalogRule,
        path: &[PathStep<'_>],
        message: String,
        remedy: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        let owned = |step: &PathStep<'_>| match step {
            PathStep::Field(name) => OwnedStep::Field((*name).to_owned()),
            PathStep::Item(index) => OwnedStep::Item(*index),
        };
        self.paths_of_problems.push((self.linter.problems.len(), path.iter().map(owned).collect()));
        self.report_at(rule, (self.document.line, None), message, remedy);
    }

    /// Finds the places of all reported problems, in one pass over the document.
    fn locate(self) {
        let DocumentLinter { text, lines, problems, .. } = self.linter;
        let paths: Vec<Vec<PathStep<'_>>> = self
            .paths_of_problems
            .iter()
            .map(|(_, path)| path.iter().map(OwnedStep::as_step).collect())
            .collect();
        let found = locate_paths(text, lines, &self.document.bytes, self.document.line, &paths);
        for ((problem, _), (line, column)) in self.paths_of_problems.iter().zip(found) {
            let problem = &mut problems[*problem];
            (problem.line, problem.column) = (Some(line), column);
        }
    }

    fn report_at(
        &mut self,
        rule: CatalogRule,
        (line, column): (usize, Option<usize>),
        message: String,
        remedy: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        self.linter.problems.push(CatalogProblem {
            rule,
            blob: self.blob.clone(),
            file: self.linter.file.clone(),
            line: Some(line),
            column,
            message,
            remedy: remedy.into().into(),
        });
    }

    /// Checks whether other tools stop reading before this document.
    fn check_lost_document(&mut self) {
        let Some((before, format)) = &self.linter.last else { return };
        let (why, remedy) = match (self.document.format, format, self.linter.hidden_json) {
            (DocumentFormat::Json, _, Some(why)) => {
                (why, "save the file without it, or put each document into a file of its own")
            }
            (DocumentFormat::Yaml, DocumentFormat::Yaml, _) if *before == self.document.bytes => {
                let section = self.linter.text.get(before.clone()).unwrap_or_default();
                let returns = || section.contains(&b'\r') && !section.contains(&b'\n');
                let last_section = self.linter.returns.filter(|(start, _)| *start == before.start);
                let (_, returns) = last_section.unwrap_or_else(|| (before.start, returns()));
                self.linter.returns = Some((before.start, returns));
                if returns {
                    ("lines that end with CR alone", "save the file with LF line ends")
                } else {
                    ("no line that begins with \"---\" before it", "put such a line before it")
                }
            }
            _ => return,
        };
        let message = format!("other tools do not read this document: there is {why}");
        self.report(CatalogRule::LostDocument, &[], message, remedy);
    }

    /// Reports repeated keys: those of YAML come from the reader.
    fn check_repeated_keys(&mut self) {
        for repeated in &self.document.repeated_keys {
            self.report_repeated_key(&repeated.key, (repeated.line, None));
        }
        let DocumentLinter { text, .. } = *self.linter;
        let bytes = self.document.bytes.clone();
        if self.document.format == DocumentFormat::Json
            && let Some(json) = text.get(bytes.clone())
        {
            // Columns are counted from the previous key, as lines are.
            let (mut from, mut column) = (0, 1);
            for key in mainstay_yaml::repeated_keys(json) {
                let start = bytes.start + key.start;
                let line = self.linter.lines.line_at(text, start);
                if start < from {
                    (from, column) = (0, 1);
                }
                let passed = &text[from..start];
                let newline = passed.iter().rposition(|&byte| byte == b'\n');
                let rest = newline.map_or(passed, |at| &passed[at + 1..]);
                // Each character has one byte that is not a continuation byte.
                let characters = rest.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
                column = if newline.is_some() { 1 } else { column } + characters;
                from = start;
                let place = (line, Some(column));
                self.report_repeated_key(&String::from_utf8_lossy(&json[key]), place);
            }
        }
    }

    /// Reports escapes of unpaired surrogates.
    fn check_surrogates(&mut self) {
        let DocumentLinter { text, .. } = *self.linter;
        let bytes = self.document.bytes.clone();
        if self.document.format != DocumentFormat::Json {
            return;
        }
        let Some(json) = text.get(bytes.clone()) else { return };
        for half in unpaired_surrogates(json) {
            let escape = String::from_utf8_lossy(&json[half..half + 6]).into_owned();
            let line = self.linter.lines.line_at(text, bytes.start + half);
            let message = format!("{escape} is an unpaired surrogate: U+FFFD replaces it");
            let remedy = "write both halves, or the character itself";
            self.report_at(CatalogRule::LostCharacter, (line, None), message, remedy);
        }
    }

    fn report_repeated_key(&mut self, key: &str, place: (usize, Option<usize>)) {
        let message = format!("the key {key} is there twice, the first value is lost");
        self.report_at(CatalogRule::RepeatedKey, place, message, "keep one of them");
    }

    fn check_fields(&mut self, fields: &Map<String, Value>) {
        let schema =
            case_fold::get_in(fields, "schema").and_then(Value::as_str).unwrap_or_default();
        let Some((shape, _)) = shape::of_document(schema) else {
            self.check_custom_schema(schema, fields);
            return;
        };
        let loss = "rendering the catalog drops it";
        self.check_field_names(
            &self.document.value,
            shape,
            Vec::new(),
            (CatalogRule::UnknownField, schema, loss),
        );
        if let Some(Value::Array(entries)) = case_fold::get_in(fields, "entries") {
            self.check_skip_ranges(entries);
        }
        if let Some(Value::Array(properties)) = case_fold::get_in(fields, "properties") {
            self.check_properties(properties);
        }
    }

    /// Checks the field names of the value at `path`. An unknown field breaks `rule`; the message
    /// names the value as `container`, and the `loss`.
    fn check_field_names(
        &mut self,
        value: &Value,
        declared: &'static DeclaredStruct,
        mut path: Vec<PathStep<'static>>,
        (rule, container, loss): (CatalogRule, &str, &str),
    ) {
        let mut found = Vec::new();
        let depth = path.len();
        shape::visit_field_faults(declared, value, &mut path, &mut |path, declared, fault| {
            found.push((path.to_vec(), declared, fault));
        });
        for (path, declared, fault) in found {
            let (name, rule, message, remedy) = match fault {
                // The reader reports them for whole documents.
                FieldNameFault::Repeated(..) if path.is_empty() => continue,
                FieldNameFault::Unknown(name) => {
                    let below: String = path[depth..].iter().map(step_text).collect();
                    let place = match below.trim_start_matches('.') {
                        "" => container.to_owned(),
                        below => format!("{below} of {container}"),
                    };
                    let message = format!("there is no field {} in {place}: {loss}", quote(name));
                    let remedy =
                        match nearest(name, declared.fields.iter().map(|(field, _)| *field), 2) {
                            Some(meant) => format!("did you mean {}?", quote(meant)),
                            None => "remove it".to_owned(),
                        };
                    (name, rule, message, remedy)
                }
                FieldNameFault::Repeated(first, second) => {
                    let message = format!(
                        "{} and {} differ only in case: one of the values is lost",
                        quote(first),
                        quote(second)
                    );
                    (
                        second,
                        CatalogRule::CaseOfKeys,
                        message,
                        "keep one of the spellings".to_owned(),
                    )
                }
            };
            let mut path: Vec<PathStep<'_>> = path;
            path.push(PathStep::Field(name));
            self.report(rule, &path, message, remedy);
        }
    }

    /// Checks a document of a custom schema.
    fn check_custom_schema(&mut self, schema: &str, fields: &Map<String, Value>) {
        if schema.starts_with("olm.") || nearest(schema, SCHEMAS, 2).is_some() {
            let message = format!("nothing reads documents of the schema {}", quote(schema));
            let remedy = match nearest(&schema.to_lowercase(), SCHEMAS, 3) {
                Some(meant) => format!("did you mean {}?", quote(meant)),
                None => "names that begin with olm. are reserved; use a domain of yours".to_owned(),
            };
            self.report(CatalogRule::UnknownSchema, &[PathStep::Field("schema")], message, remedy);
        }
        let package = case_fold::get_in(fields, "package").and_then(Value::as_str);
        let package = package.filter(|package| !package.is_empty());
        for (field, name) in [("schema", Some(schema)), ("package", package)] {
            let Some(name) = name.filter(|name| !name.is_empty() && !is_servable_name(name)) else {
                continue;
            };
            let message =
                format!("other tools do not serve a catalog with the {field} {}", quote(name));
            let remedy =
                "begin with a letter or digit; go on with these, dots, dashes and underscores";
            self.report(CatalogRule::NotServed, &[PathStep::Field(field)], message, remedy);
        }
        if let Some(Value::String(package)) = case_fold::get_in(fields, "package")
            && package.is_empty()
        {
            let message = "the field package is empty".to_owned();
            self.report(
                CatalogRule::MissingName,
                &[PathStep::Field("package")],
                message,
                "name a package, or remove the field",
            );
        }
        if let Some(Value::Array(properties)) = case_fold::get_in(fields, "properties") {
            self.check_property_forms(properties, true);
        }
    }

    fn check_skip_ranges(&mut self, entries: &[Value]) {
        for (index, entry) in entries.iter().enumerate() {
            let text = shape::text(entry, "skipRange");
            if !text.is_empty()
                && let Some((rule, message, remedy)) = range::check_range("skipRange", text, false)
            {
                let path = [
                    PathStep::Field("entries"),
                    PathStep::Item(index),
                    PathStep::Field("skipRange"),
                ];
                self.report(rule, &path, message, remedy);
            }
        }
    }

    /// Checks that properties have a type and a value. A `null` value is reported; an absent value
    /// only if `missing` is set.
    fn check_property_forms(&mut self, properties: &[Value], missing: bool) {
        for (index, property) in properties.iter().enumerate() {
            let path = [PathStep::Field("properties"), PathStep::Item(index)];
            let kind = shape::text(property, "type");
            if kind.is_empty() {
                let message = format!("property[{index}] has no type");
                self.report(
                    CatalogRule::BadProperty,
                    &path,
                    message,
                    "give it a type, or remove it",
                );
            } else if case_fold::get(property, "value").map_or(missing, Value::is_null) {
                let message = format!("property[{index}] of type {} has no value", quote(kind));
                self.report(
                    CatalogRule::BadProperty,
                    &path,
                    message,
                    "give it a value, or remove it",
                );
            }
        }
    }

    fn check_properties(&mut self, properties: &[Value]) {
        // Loading reports a bundle property without any value.
        let is_bundle = self.blob.as_ref().is_some_and(|blob| &*blob.schema == "olm.bundle");
        self.check_property_forms(properties, !is_bundle);
        let is_metadata = |property: &(usize, &Value)| {
            shape::text(property.1, "type") == crate::model::CSV_METADATA
        };
        if let Some((index, _)) = properties.iter().enumerate().filter(is_metadata).nth(1) {
            let message = format!(
                "other tools do not serve a catalog with two properties of type {} in a bundle",
                quote(crate::model::CSV_METADATA)
            );
            let path = [PathStep::Field("properties"), PathStep::Item(index)];
            self.report(CatalogRule::NotServed, &path, message, "remove one of them");
        }
        let mut seen = BTreeSet::new();
        for (index, property) in properties.iter().enumerate() {
            let kind = shape::text(property, "type");
            let value = case_fold::get(property, "value").filter(|value| !value.is_null());
            let Some(value) = value else { continue };
            let path = vec![
                PathStep::Field("properties"),
                PathStep::Item(index),
                PathStep::Field("value"),
            ];
            if !PROPERTY_TYPES.contains(&kind) {
                if let Some(meant) = nearest(kind, PROPERTY_TYPES, 2).filter(|_| kind.len() > 5) {
                    let message = format!("nothing reads properties of the type {}", quote(kind));
                    let remedy = format!("did you mean {}?", quote(meant));
                    let path = [path[0], path[1], PathStep::Field("type")];
                    self.report(CatalogRule::PropertyType, &path, message, remedy);
                }
                continue;
            }
            if kind == crate::model::BUNDLE_OBJECT || kind == crate::model::CSV_METADATA {
                continue;
            }
            if let Some(shape) = shape::struct_of_property(kind) {
                let container = format!("the value of {kind}");
                let loss = "nothing reads it";
                self.check_field_names(
                    value,
                    shape,
                    path.clone(),
                    (CatalogRule::UnknownValueField, &container, loss),
                );
            }
            if kind == "olm.package.required" {
                self.check_required_package(value, &path);
            }
            if kind != "olm.package" && !seen.insert((kind, value.to_string())) {
                let message = format!("property[{index}] of type {} is a duplicate", quote(kind));
                self.report(
                    CatalogRule::RepeatedProperty,
                    &path[..2],
                    message,
                    "remove one of them",
                );
            }
        }
    }

    fn check_required_package(&mut self, value: &Value, path: &[PathStep<'_>]) {
        let at = |field| path.iter().copied().chain([PathStep::Field(field)]).collect::<Vec<_>>();
        if shape::text(value, "packageName").is_empty() {
            let message = "the required package has no name".to_owned();
            let remedy = "say which package in packageName";
            self.report(CatalogRule::BadProperty, &at("packageName"), message, remedy);
        }
        let text = shape::text(value, "versionRange");
        if let Some((rule, message, remedy)) = range::check_range("versionRange", text, true) {
            self.report(rule, &at("versionRange"), message, remedy);
        }
    }
}

/// Whether clients can request a schema or package of that name.
fn is_servable_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) && name.bytes().all(is_inner)
}

fn step_text(step: &PathStep<'_>) -> String {
    match step {
        PathStep::Field(name) => format!(".{name}"),
        PathStep::Item(index) => format!("[{index}]"),
    }
}
