//! Reading of catalog files: from bytes to blobs.

use crate::{
    content::{Origin, Slot},
    cut::Piece,
    decode, golang,
    lint::Looker,
    load::{Keep, LoadOptions},
    odd::{NAMES, expected, folded_duplicates, no_text},
    pack::Packer,
    problem::{BlobName, Part, Problem},
    rule::Rule,
    shape,
    source::{Source, SourceFile, plain},
    syntax,
};
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::quote;
use mainstay_yaml::{
    Document, DuplicateKeys, EmptyDocuments, Format, NodeFault, Options, Step, YamlFault,
    documents, locate_all,
};
use serde_json::{Map, Value};
use std::{io, sync::Arc};

/// The maximum length of upstream's message, in bytes.
const LONGEST_WORDS: usize = 1 << 20;

/// How many problems of one file are reported before its reading stops.
pub(crate) const MOST_PROBLEMS: usize = 10_000;

/// The content of one file.
#[derive(Default)]
pub(crate) struct FileRead {
    pub(crate) blobs: Vec<ReadBlob>,
    pub(crate) problems: Vec<Problem>,
    /// Whether some documents could not be read.
    pub(crate) lost: bool,
    /// The message with which upstream stops reading.
    pub(crate) stop: Option<String>,
    /// The lint problems of the documents, if a lint is requested.
    pub(crate) noted: Vec<Problem>,
    lines: Lines,
}

impl FileRead {
    fn lose(&mut self, problem: Problem) {
        self.problems.push(problem);
        self.lost = true;
    }

    /// Sets upstream's message, if it is the first one. It may repeat a whole document, so it is
    /// truncated: many files may have one.
    fn stop(&mut self, words: impl FnOnce() -> String) {
        self.stop.get_or_insert_with(|| {
            let mut words = words();
            if words.len() > LONGEST_WORDS {
                words.truncate(words.floor_char_boundary(LONGEST_WORDS));
                words.shrink_to_fit();
            }
            words
        });
    }
}

/// One blob, ready to be stored.
pub(crate) struct ReadBlob {
    pub(crate) slot: Slot,
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) facts: decode::Facts,
}

/// Reads a file as a whole, with all its problems. `looks` requests a lint.
pub(crate) fn read_file(
    source: &dyn Source,
    file: &SourceFile,
    options: &LoadOptions,
    looks: bool,
) -> FileRead {
    let mut read = FileRead::default();
    if let Some((message, remedy)) = &file.fault {
        let (path, rule) = (file.path.as_str(), Rule::UnreadableFile);
        read.lose(Problem::of_file(rule, path, message.clone(), remedy.clone()));
        read.stop.clone_from(&file.upstream);
        return read;
    }
    let limit = options.limits.file_bytes;
    let raw = match source.read(&file.path, limit) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("the file is above the limit of {limit} bytes");
            let remedy = "split it, or list it in .indexignore";
            read.lose(Problem::of_file(Rule::AboveLimit, file.path.as_str(), message, remedy));
            return read;
        }
        Err(error) => {
            read.stop(|| format!("open {}: {}", file.path, plain(&error)));
            let message = format!("cannot read the file: {}", plain(&error));
            let remedy = "make it readable for the account that runs this process";
            let (path, rule) = (file.path.as_str(), Rule::UnreadableFile);
            read.lose(Problem::of_file(rule, path, message, remedy));
            return read;
        }
    };
    let path: Arc<str> = file.path.as_str().into();
    let reading = reading(options, looks);
    let fault = std::str::from_utf8(&raw).err();
    let bytes = as_text(raw, &reading);
    let mut looker = looks.then(|| Looker::new(&path, &bytes));
    if let (Some(looker), Some(fault), Ok(_)) = (&mut looker, fault, std::str::from_utf8(&bytes)) {
        looker.exchanged(fault.valid_up_to());
    }
    let mut documents_read = 0;
    let mut packer = Packer::new(options.keep);
    for document in documents(&bytes, &reading) {
        if read.problems.len() >= MOST_PROBLEMS {
            let message =
                format!("there are {MOST_PROBLEMS} problems in the file; its rest was not read");
            let remedy = "correct these first, or list the file in .indexignore";
            read.lose(Problem::of_file(Rule::AboveLimit, file.path.as_str(), message, remedy));
            break;
        }
        match document {
            Ok(document) => {
                documents_read += 1;
                if let Some(looker) = &mut looker {
                    looker.look_at(&document);
                }
                take(document, &path, &bytes, &mut packer, &mut read);
            }
            Err(error) => {
                read.stop(|| syntax::words(&bytes, documents_read, &error));
                let (rule, remedy) = syntax_remedy(&error.fault);
                read.lose(Problem {
                    rule,
                    blob: None,
                    file: path.clone(),
                    line: Some(error.line),
                    column: Some(error.column),
                    remedy: remedy.into(),
                    message: error.fault.to_string(),
                });
            }
        }
    }
    read.noted = looker.map(Looker::into_problems).unwrap_or_default();
    read
}

/// The bytes from which documents are parsed. In a stream of JSON without other faults, upstream
/// replaces each byte that is not UTF-8 with U+FFFD, and so does this function.
pub(crate) fn as_text(bytes: Vec<u8>, reading: &Options) -> Vec<u8> {
    if !is_json(&bytes) || std::str::from_utf8(&bytes).is_ok() {
        return bytes;
    }
    let text = exchanged(&bytes);
    let sound = mainstay_yaml::part(&text, Format::Json, 1, reading).all(|read| read.is_ok());
    if sound { text.into_bytes() } else { bytes }
}

/// The bytes of a file as places in them are counted.
pub(crate) fn as_read(bytes: Vec<u8>) -> Vec<u8> {
    if is_json(&bytes) && std::str::from_utf8(&bytes).is_err() {
        return exchanged(&bytes).into_bytes();
    }
    bytes
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// A text with U+FFFD for each byte that is not UTF-8.
fn exchanged(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// The parser options. `looks` asks for repeated keys.
pub(crate) fn reading(options: &LoadOptions, looks: bool) -> Options {
    Options {
        duplicate_keys: if looks { DuplicateKeys::Note } else { DuplicateKeys::LastWins },
        empty: EmptyDocuments::Keep,
        max_scalar_bytes: options.limits.scalar_bytes,
        max_depth: options.depth(),
        signed_zero: true,
        ..Options::default()
    }
}

/// Reads a part of a file; `None` if it has any problem.
pub(crate) fn read_piece(
    piece: &Piece,
    path: &Arc<str>,
    options: &Options,
    packer: &mut Packer,
    looks: bool,
) -> Option<Vec<ReadBlob>> {
    let mut read = FileRead::default();
    let mut looker = looks.then(|| Looker::new(path, piece.text.as_bytes()));
    for document in mainstay_yaml::part(&piece.text, piece.format, piece.line, options) {
        let document = document.ok()?;
        if let Some(looker) = &mut looker
            && !looker.finds_nothing(&document)
        {
            return None;
        }
        take(document, path, piece.text.as_bytes(), packer, &mut read);
        if !read.problems.is_empty() {
            return None;
        }
    }
    for blob in &mut read.blobs {
        blob.bytes = blob.bytes.start + piece.offset..blob.bytes.end + piece.offset;
    }
    Some(read.blobs)
}

/// Decodes a value that was built in memory, with all its problems.
pub(crate) fn blob_of(value: Value, origin: &Origin) -> FileRead {
    // The text of a value that is not an object is needed for the message.
    let shown = if value.is_object() { String::new() } else { value.to_string() };
    let (line, bytes, format) = (origin.line, 0..shown.len(), Format::Json);
    let document = Document { value, line, bytes, format, repeated: Vec::new() };
    let mut read = FileRead::default();
    take(document, &origin.file, shown.as_bytes(), &mut Packer::new(Keep::All), &mut read);
    read
}

/// Adds one document to the content of a file.
fn take(
    document: Document,
    path: &Arc<str>,
    bytes: &[u8],
    packer: &mut Packer,
    read: &mut FileRead,
) {
    let line = document.line;
    match blob(document, path, bytes, packer, read.stop.is_none()) {
        Ok(blob) => {
            object_faults(&blob, path, bytes, read);
            read.blobs.push(blob);
        }
        Err(mut fault) => {
            let words = std::mem::take(&mut fault.upstream);
            read.stop(|| words);
            let problem = fault.at(path, line, bytes, &mut read.lines);
            read.lose(problem);
        }
    }
}

/// Reports unreadable manifests of a bundle: upstream decodes manifests while it reads.
fn object_faults(blob: &ReadBlob, path: &Arc<str>, bytes: &[u8], read: &mut FileRead) {
    let decode::Facts::Bundle(facts) = &blob.facts else { return };
    let slot = &blob.slot;
    let paths: Vec<&[Part]> =
        facts.object_faults.iter().map(|(wrong, _)| wrong.path.as_slice()).collect();
    let places = spots(bytes, &mut read.lines, &blob.bytes, slot.origin.line, &paths);
    for ((wrong, upstream), (line, column)) in facts.object_faults.iter().zip(places) {
        let message = |why: &str| {
            let (package, name) = (quote(&slot.package), quote(&slot.name));
            format!("read bundle objects: package {package}, bundle {name}: {why}")
        };
        read.stop(|| message(upstream));
        read.problems.push(Problem {
            rule: Rule::BadManifest,
            blob: Some(slot.blob_name()),
            file: path.clone(),
            line: Some(line),
            column,
            message: message(&wrong.message),
            remedy: "correct the property, or remove it".into(),
        });
    }
}

/// The rule and the remedy for a syntax error.
const fn syntax_remedy(fault: &YamlFault) -> (Rule, &'static str) {
    match fault {
        YamlFault::NotUtf8 { .. } | YamlFault::ControlCharacter => {
            let remedy = "save the file as UTF-8 text, or list it in .indexignore if it is no part \
                          of the catalog";
            (Rule::Syntax, remedy)
        }
        YamlFault::Node(NodeFault::TooLong { .. }) => {
            (Rule::AboveLimit, "shorten the value, or keep the manifest in the bundle image only")
        }
        YamlFault::Utf16 => (Rule::Syntax, "save the file as UTF-8"),
        _ => {
            let remedy = "correct the syntax, or list the file in .indexignore if it is no part of \
                          the catalog";
            (Rule::Syntax, remedy)
        }
    }
}

/// A problem of a document, before its exact place is known.
struct Fault {
    rule: Rule,
    /// The name of the document, as far as it was read.
    blob: Option<BlobName>,
    wrong: decode::ShapeError,
    remedy: &'static str,
    bytes: std::ops::Range<usize>,
    /// Upstream's message.
    upstream: String,
}

impl Fault {
    fn at(self, file: &Arc<str>, line: usize, text: &[u8], lines: &mut Lines) -> Problem {
        let spot = spot(text, lines, &self.bytes, line, &self.wrong.path);
        Problem {
            rule: self.rule,
            blob: self.blob,
            file: file.clone(),
            line: Some(spot.0),
            column: spot.1,
            message: self.wrong.message,
            remedy: self.remedy.into(),
        }
    }
}

/// The beginning of a value, for messages.
fn shortened(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > 200 {
        let end = (0..=200).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Turns a document into a blob. `words` asks for upstream's message.
fn blob(
    document: Document,
    file: &Arc<str>,
    text: &[u8],
    packer: &mut Packer,
    words: bool,
) -> Result<ReadBlob, Box<Fault>> {
    let Document { value, line, bytes, format, .. } = document;
    let fault = |rule, message: String, upstream: String, remedy| {
        let wrong = decode::ShapeError { message, path: Vec::new() };
        Box::new(Fault { rule, blob: None, wrong, remedy, bytes: bytes.clone(), upstream })
    };
    // Upstream's YAML decoder adds this context to its errors.
    let decoding = |message: &str| match format {
        Format::Yaml => format!("error unmarshaling JSON: while decoding JSON: {message}"),
        Format::Json => message.to_owned(),
    };
    let not_a_blob = "a document of a catalog is a mapping with the field schema; list files that \
                      are no part of the catalog in .indexignore";
    let a_manifest = "this is a manifest: of a bundle, name the folder that holds manifests and \
                      metadata; else list the file in .indexignore";
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Null => {
            let message = "object '' is missing root schema field".to_owned();
            let upstream = match format {
                // Upstream decodes the whole section, which may hold many such documents.
                Format::Yaml if words => syntax::of_nothing(&text[bytes.clone()], &message),
                Format::Yaml => message.clone(),
                Format::Json => "object 'null\n' is missing root schema field".to_owned(),
            };
            return Err(fault(Rule::EmptyDocument, message, upstream, "remove the empty document"));
        }
        other => {
            let found = mainstay_gocompat::values::json_kind(&other);
            let message = format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            let shown = match format {
                Format::Yaml => golang::json(&other, true),
                Format::Json => String::from_utf8_lossy(&text[bytes.clone()]).into_owned(),
            };
            let upstream = decoding(&golang::no_object(found, &shown));
            return Err(fault(Rule::NotABlob, message, upstream, not_a_blob));
        }
    };
    if let Some(duplicates) = folded_duplicates(&fields) {
        let message = duplicates.to_string();
        let upstream = decoding(&message);
        let twice =
            |field: &&&str| fields.keys().filter(|key| is_same_field(key, field)).count() > 1;
        let path = shape::FIELDS.iter().find(twice).map(|field| Part::Field(field));
        let fault = fault(Rule::CaseOfKeys, String::new(), upstream, "keep one of the spellings");
        let wrong = decode::ShapeError { message, path: path.into_iter().collect() };
        return Err(Box::new(Fault { blob: shape::called(&fields), wrong, ..*fault }));
    }
    let mut names = [String::new(), String::new(), String::new()];
    for (name, field) in names.iter_mut().zip(NAMES) {
        match fields.iter().find(|(key, _)| is_same_field(key, field)) {
            None => {}
            Some((_, Value::String(text))) => name.clone_from(text),
            Some((key, other)) => {
                let upstream = decoding(&no_text(key, other));
                let message = format!("{}{}", expected(field), shortened(other));
                let wrong = decode::ShapeError { message, path: vec![Part::Field(field)] };
                let remedy =
                    if other.is_null() { "give it a text" } else { "put the text in quotes" };
                let fault = fault(Rule::WrongType, String::new(), upstream, remedy);
                return Err(Box::new(Fault { wrong, ..*fault }));
            }
        }
    }
    let [schema, mut package, name] = names;
    if schema.is_empty() {
        let is_object = ["apiVersion", "kind"].iter().all(|key| fields.contains_key(*key));
        let remedy = if is_object { a_manifest } else { not_a_blob };
        let value = Value::Object(fields);
        let upstream =
            format!("object '{}\n' is missing root schema field", golang::json(&value, false));
        let message = format!("object '{}' is missing root schema field", shortened(&value));
        return Err(fault(Rule::NotABlob, message, upstream, remedy));
    }
    if schema == "olm.bundle" {
        canonical_bundle(&mut fields);
    }
    let facts = decode::facts(&schema, &fields).map_err(|wrong| {
        Box::new(Fault {
            rule: Rule::WrongType,
            blob: Some(BlobName {
                schema: schema.as_str().into(),
                package: package.as_str().into(),
                name: name.as_str().into(),
            }),
            upstream: wrong.message.clone(),
            wrong,
            remedy: "correct the type of the value",
            bytes: bytes.clone(),
        })
    })?;
    // The `name` of a package document is the name of its package.
    if schema == "olm.package" {
        package.clone_from(&name);
    }
    let (packed, hash) = packer.pack(&fields);
    let slot = Slot {
        schema: schema.into(),
        package: package.into(),
        name: name.into(),
        origin: Origin { file: file.clone(), line },
        packed,
        hash,
    };
    Ok(ReadBlob { slot, bytes, facts })
}

/// Renames the fields that are read on demand to their canonical names.
fn canonical_bundle(fields: &mut Map<String, Value>) {
    rename(fields, &["properties"]);
    let Some(Value::Array(properties)) = fields.get_mut("properties") else { return };
    for property in properties {
        let Value::Object(property) = property else { continue };
        rename(property, &["type", "value"]);
        if property.get("type").and_then(Value::as_str) == Some(crate::model::BUNDLE_OBJECT)
            && let Some(Value::Object(object)) = property.get_mut("value")
        {
            rename(object, &["data"]);
        }
    }
}

fn rename(fields: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if fields.contains_key(*name) {
            continue;
        }
        let other = fields.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
        if let Some(value) = other.and_then(|other| fields.remove(&other)) {
            fields.insert((*name).to_owned(), value);
        }
    }
}

/// Counts the lines of a text up to an offset; cheap while offsets grow.
#[derive(Default)]
pub(crate) struct Lines {
    at: usize,
    breaks: usize,
    /// The start of the section that was located last, and the line of its document.
    section: Option<(usize, usize)>,
}

impl Lines {
    /// The line (from 1) of a byte.
    pub(crate) fn of(&mut self, text: &[u8], offset: usize) -> usize {
        let offset = offset.min(text.len());
        let count =
            |part: &[u8]| part.iter().map(|&byte| usize::from(byte == b'\n')).sum::<usize>();
        if offset < self.at {
            self.breaks -= count(&text[offset..self.at]);
        } else {
            self.breaks += count(&text[self.at..offset]);
        }
        self.at = offset;
        self.breaks + 1
    }
}

/// Line and column of a part of the document at `bytes` of a file, which begins on `line`.
fn spot(
    file: &[u8],
    lines: &mut Lines,
    bytes: &std::ops::Range<usize>,
    line: usize,
    path: &[Part],
) -> (usize, Option<usize>) {
    spots(file, lines, bytes, line, &[path])[0]
}

/// As [`spot`], for many parts of one document.
pub(crate) fn spots(
    file: &[u8],
    lines: &mut Lines,
    bytes: &std::ops::Range<usize>,
    line: usize,
    paths: &[&[Part]],
) -> Vec<(usize, Option<usize>)> {
    let steps = |path: &&[Part]| -> Vec<Step<'_>> {
        path.iter()
            .map(|part| match part {
                Part::Field(name) => Step::Field(name),
                Part::Item(index) => Step::Item(*index),
            })
            .collect()
    };
    let paths: Vec<Vec<Step<'_>>> = paths.iter().map(steps).collect();
    spots_at(file, lines, bytes, line, &paths)
}

/// As [`spots`], for paths with any field names.
pub(crate) fn spots_at(
    file: &[u8],
    lines: &mut Lines,
    bytes: &std::ops::Range<usize>,
    line: usize,
    paths: &[Vec<Step<'_>>],
) -> Vec<(usize, Option<usize>)> {
    let text = file.get(bytes.clone()).and_then(|part| std::str::from_utf8(part).ok());
    let Some(text) = text.filter(|_| paths.iter().any(|path| !path.is_empty())) else {
        return vec![(line, None); paths.len()];
    };
    // Only the first document of a section can be located.
    if lines.section.is_some_and(|(start, first)| start == bytes.start && line > first) {
        return vec![(line, None); paths.len()];
    }
    lines.section = Some((bytes.start, line));
    // Comments may precede the document: its bytes then start on an earlier line than its text.
    let first = lines.of(file, bytes.start);
    let found = locate_all(text, paths);
    let place = |(path, found): (&Vec<Step<'_>>, _)| match found {
        Some((row, column)) if first + row > line && !path.is_empty() => {
            (first + row - 1, Some(column))
        }
        _ => (line, None),
    };
    paths.iter().zip(found).map(place).collect()
}
