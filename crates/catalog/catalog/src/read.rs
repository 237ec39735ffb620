//! Reading files: from bytes to blobs.

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
    Document, DocumentFormat, DuplicateKeys, EmptyDocuments, NodeFault, Options, PathStep,
    YamlFault, documents, locate_all,
};
use serde_json::{Map, Value};
use std::{io, sync::Arc};

/// Bytes of upstream's words that are kept.
const LONGEST_WORDS: usize = 1 << 20;

/// How many problems of one file are told before its reading stops.
pub(crate) const MOST_PROBLEMS: usize = 10_000;

/// What came out of one file.
#[derive(Default)]
pub(crate) struct FileRead {
    pub(crate) blobs: Vec<ReadBlob>,
    pub(crate) problems: Vec<Problem>,
    /// Some of it could not be read.
    pub(crate) lost: bool,
    /// Where upstream stops reading, in its words.
    pub(crate) stop: Option<String>,
    /// What the documents show beside that, if somebody asks.
    pub(crate) noted: Vec<Problem>,
    lines: Lines,
}

impl FileRead {
    fn lose(&mut self, problem: Problem) {
        self.problems.push(problem);
        self.lost = true;
    }

    /// Notes upstream's words, if they are the first. They may repeat a whole document; beyond a
    /// megabyte nobody reads them, and there may be many files.
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

/// Reads a file as a whole, with everything that is wrong with it. `looks` asks for what is noted.
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

/// The bytes of a file as documents are read from them. In a stream of JSON that has no other
/// fault, upstream puts U+FFFD for each byte that belongs to no character, and so does this.
pub(crate) fn as_text(bytes: Vec<u8>, reading: &Options) -> Vec<u8> {
    if !is_json(&bytes) || std::str::from_utf8(&bytes).is_ok() {
        return bytes;
    }
    let text = exchanged(&bytes);
    let sound = mainstay_yaml::documents_of_part(&text, DocumentFormat::Json, 1, reading)
        .all(|read| read.is_ok());
    if sound { text.into_bytes() } else { bytes }
}

/// The bytes of a file that was read, as places in it are counted.
pub(crate) fn as_read(bytes: Vec<u8>) -> Vec<u8> {
    if is_json(&bytes) && std::str::from_utf8(&bytes).is_err() {
        return exchanged(&bytes).into_bytes();
    }
    bytes
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// A text with U+FFFD for each byte that belongs to no character.
fn exchanged(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// How documents are read. `looks` asks for what is lost in them.
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

/// Reads a part of a file; `None` if there is anything wrong with it.
pub(crate) fn read_piece(
    piece: &Piece,
    path: &Arc<str>,
    options: &Options,
    packer: &mut Packer,
    looks: bool,
) -> Option<Vec<ReadBlob>> {
    let mut read = FileRead::default();
    let mut looker = looks.then(|| Looker::new(path, piece.text.as_bytes()));
    for document in mainstay_yaml::documents_of_part(&piece.text, piece.format, piece.line, options)
    {
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

/// The blob that a value stands for which somebody has made, with everything wrong about it.
pub(crate) fn blob_of(value: Value, origin: &Origin) -> FileRead {
    // What is no object is shown as it would be written.
    let shown = if value.is_object() { String::new() } else { value.to_string() };
    let (line, bytes, format) = (origin.line, 0..shown.len(), DocumentFormat::Json);
    let document = Document { value, line, bytes, format, repeated_keys: Vec::new() };
    let mut read = FileRead::default();
    take(document, &origin.file, shown.as_bytes(), &mut Packer::new(Keep::All), &mut read);
    read
}

/// Takes one document into what was read.
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

/// Notes the manifests of a bundle that cannot be read: upstream opens them while it reads.
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

/// Which rule a text breaks that cannot be read, and what to do.
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

/// What is wrong with a document as a whole or with a part of it.
struct Fault {
    rule: Rule,
    /// Which document it is, as far as that was read.
    blob: Option<BlobName>,
    wrong: decode::ShapeError,
    remedy: &'static str,
    bytes: std::ops::Range<usize>,
    /// The same in upstream's words.
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

/// Turns a document into a blob. `words` asks for upstream's.
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
    // Upstream's decoder of YAML says where its error comes from.
    let decoding = |message: &str| match format {
        DocumentFormat::Yaml => format!("error unmarshaling JSON: while decoding JSON: {message}"),
        DocumentFormat::Json => message.to_owned(),
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
                // It takes a look at the whole section, which may hold many such documents.
                DocumentFormat::Yaml if words => syntax::of_nothing(&text[bytes.clone()], &message),
                DocumentFormat::Yaml => message.clone(),
                DocumentFormat::Json => "object 'null\n' is missing root schema field".to_owned(),
            };
            return Err(fault(Rule::EmptyDocument, message, upstream, "remove the empty document"));
        }
        other => {
            let found = mainstay_gocompat::values::json_kind(&other);
            let message = format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            let shown = match format {
                DocumentFormat::Yaml => golang::json(&other, true),
                DocumentFormat::Json => String::from_utf8_lossy(&text[bytes.clone()]).into_owned(),
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
    // The documents of a package carry its name as their name.
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

/// Gives the fields that are read lazily later the names they are looked up by.
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

/// How many lines a text has up to a place; cheap while the places grow.
#[derive(Default)]
pub(crate) struct Lines {
    at: usize,
    breaks: usize,
    /// Where the section begins that was looked through last, and the line of its document.
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

/// Line and column of a part of a document that lies at `bytes` of a file and begins on `line`.
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
    let steps = |path: &&[Part]| -> Vec<PathStep<'_>> {
        path.iter()
            .map(|part| match part {
                Part::Field(name) => PathStep::Field(name),
                Part::Item(index) => PathStep::Item(*index),
            })
            .collect()
    };
    let paths: Vec<Vec<PathStep<'_>>> = paths.iter().map(steps).collect();
    spots_at(file, lines, bytes, line, &paths)
}

/// As [`spots`], for paths of any names.
pub(crate) fn spots_at(
    file: &[u8],
    lines: &mut Lines,
    bytes: &std::ops::Range<usize>,
    line: usize,
    paths: &[Vec<PathStep<'_>>],
) -> Vec<(usize, Option<usize>)> {
    let text = file.get(bytes.clone()).and_then(|part| std::str::from_utf8(part).ok());
    let Some(text) = text.filter(|_| paths.iter().any(|path| !path.is_empty())) else {
        return vec![(line, None); paths.len()];
    };
    // What is looked through is the first document of a section.
    if lines.section.is_some_and(|(start, first)| start == bytes.start && line > first) {
        return vec![(line, None); paths.len()];
    }
    lines.section = Some((bytes.start, line));
    // The document may begin with comments: its bytes start on an earlier line than its text.
    let first = lines.of(file, bytes.start);
    let found = locate_all(text, paths);
    let place = |(path, found): (&Vec<PathStep<'_>>, _)| match found {
        Some((row, column)) if first + row > line && !path.is_empty() => {
            (first + row - 1, Some(column))
        }
        _ => (line, None),
    };
    paths.iter().zip(found).map(place).collect()
}
