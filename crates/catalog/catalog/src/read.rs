//! Reading of catalog files: from bytes to blobs.

use crate::{
    compression::{BlobCompressor, CompressedBlob},
    content::{BlobOrigin, Slot},
    decode,
    document_error::{NAMES, folded_duplicates, not_text_message, not_text_prefix},
    go_format,
    lint::DocumentLinter,
    load::{DocumentRules, KeptContent, LoadOptions},
    problem::{BlobName, CatalogProblem, PathPart},
    rule::CatalogRule,
    shape,
    source::{FileSource, SourceFile},
    splitter::FilePart,
    syntax,
};
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::quote;
use mainstay_yaml::{
    Document, DocumentFormat, DuplicateKeys, EmptyDocuments, NodeFault, Options, PathStep,
    YamlFault, documents, locate_all,
};
use serde_json::Value;
use std::{io, sync::Arc};

/// The maximum length of upstream's message, in bytes.
const MAX_UPSTREAM_BYTES: usize = 1 << 20;

/// How many problems of one file are reported before its reading stops.
pub(crate) const MAX_PROBLEMS: usize = 10_000;

/// The content of one file.
#[derive(Default)]
pub(crate) struct FileContent {
    pub(crate) blobs: Vec<DecodedBlob>,
    pub(crate) problems: Vec<CatalogProblem>,
    /// Whether some documents could not be read.
    pub(crate) lost: bool,
    /// The message with which upstream stops reading.
    pub(crate) stop: Option<String>,
    /// The lint problems of the documents, if a lint is requested.
    pub(crate) lint_problems: Vec<CatalogProblem>,
    lines: LineCounter,
}

impl FileContent {
    fn add_loss(&mut self, problem: CatalogProblem) {
        self.problems.push(problem);
        self.lost = true;
    }

    /// Sets upstream's message, if it is the first one. It may repeat a whole document, so it is
    /// truncated: many files may have one.
    fn set_upstream(&mut self, words: impl FnOnce() -> String) {
        self.stop.get_or_insert_with(|| {
            let mut words = words();
            if words.len() > MAX_UPSTREAM_BYTES {
                words.truncate(words.floor_char_boundary(MAX_UPSTREAM_BYTES));
                words.shrink_to_fit();
            }
            words
        });
    }
}

/// One blob, ready to be stored.
pub(crate) struct DecodedBlob {
    pub(crate) slot: Slot,
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) facts: decode::Facts,
}

/// Reads a file as a whole, with all its problems. `lint` requests a lint.
pub(crate) fn read_file(
    source: &dyn FileSource,
    file: &SourceFile,
    options: &LoadOptions,
    lint: bool,
) -> FileContent {
    let mut read = FileContent::default();
    if let Some((message, remedy)) = &file.fault {
        let (path, rule) = (file.path.as_str(), CatalogRule::UnreadableFile);
        read.add_loss(CatalogProblem::of_file(rule, path, message.clone(), remedy.clone()));
        read.stop.clone_from(&file.upstream);
        return read;
    }
    let limit = options.limits.file_bytes;
    let raw = match source.read(&file.path, limit) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("the file is above the limit of {limit} bytes");
            let remedy = "split it, or list it in .indexignore";
            read.add_loss(CatalogProblem::of_file(
                CatalogRule::AboveLimit,
                file.path.as_str(),
                message,
                remedy,
            ));
            return read;
        }
        Err(error) => {
            read.set_upstream(|| format!("open {}: {}", file.path, io_error_text(&error)));
            let message = format!("cannot read the file: {}", io_error_text(&error));
            let remedy = "make it readable for the account that runs this process";
            let (path, rule) = (file.path.as_str(), CatalogRule::UnreadableFile);
            read.add_loss(CatalogProblem::of_file(rule, path, message, remedy));
            return read;
        }
    };
    let path: Arc<str> = file.path.as_str().into();
    let yaml_options = yaml_options(options, lint);
    let fault = std::str::from_utf8(&raw).err();
    let bytes = decode_text(raw, &yaml_options);
    let mut linter = lint.then(|| DocumentLinter::new(&path, &bytes));
    if let (Some(linter), Some(fault), Ok(_)) = (&mut linter, fault, std::str::from_utf8(&bytes)) {
        linter.report_replaced_byte(fault.valid_up_to());
    }
    let mut documents_read = 0;
    let mut compressor = BlobCompressor::new(options.keep);
    for document in documents(&bytes, &yaml_options) {
        if read.problems.len() >= MAX_PROBLEMS {
            let message =
                format!("there are {MAX_PROBLEMS} problems in the file; its rest was not read");
            let remedy = "correct these first, or list the file in .indexignore";
            read.add_loss(CatalogProblem::of_file(
                CatalogRule::AboveLimit,
                file.path.as_str(),
                message,
                remedy,
            ));
            break;
        }
        match document {
            Ok(document) => {
                documents_read += 1;
                if let Some(linter) = &mut linter {
                    linter.check_document(&document);
                }
                add_document(document, &path, &bytes, options.rules, &mut compressor, &mut read);
            }
            Err(error) => {
                read.set_upstream(|| syntax::words(&bytes, documents_read, &error));
                let (rule, remedy) = syntax_remedy(&error.fault);
                read.add_loss(CatalogProblem {
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
    read.lint_problems = linter.map(DocumentLinter::into_problems).unwrap_or_default();
    read
}

/// The bytes from which documents are parsed. In a stream of JSON without other faults, upstream
/// replaces each byte that is not UTF-8 with U+FFFD, and so does this function.
pub(crate) fn decode_text(bytes: Vec<u8>, yaml_options: &Options) -> Vec<u8> {
    if !is_json(&bytes) || std::str::from_utf8(&bytes).is_ok() {
        return bytes;
    }
    let text = with_replacement_characters(&bytes);
    let sound = mainstay_yaml::documents_of_part(&text, DocumentFormat::Json, 1, yaml_options)
        .all(|read| read.is_ok());
    if sound { text.into_bytes() } else { bytes }
}

/// The bytes of a file as places in them are counted.
pub(crate) fn replace_invalid_utf8(bytes: Vec<u8>) -> Vec<u8> {
    if is_json(&bytes) && std::str::from_utf8(&bytes).is_err() {
        return with_replacement_characters(&bytes).into_bytes();
    }
    bytes
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// A text with U+FFFD for each byte that is not UTF-8.
fn with_replacement_characters(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// The parser options. `lint` asks for repeated keys.
pub(crate) fn yaml_options(options: &LoadOptions, lint: bool) -> Options {
    Options {
        duplicate_keys: if lint { DuplicateKeys::Note } else { DuplicateKeys::LastWins },
        empty: EmptyDocuments::Keep,
        max_scalar_bytes: options.limits.scalar_bytes,
        max_depth: options.depth(),
        signed_zero: true,
        ..Options::default()
    }
}

/// Reads a part of a file; `None` if it has any problem.
pub(crate) fn read_part(
    part: &FilePart,
    path: &Arc<str>,
    options: &Options,
    rules: DocumentRules,
    compressor: &mut BlobCompressor,
    lint: bool,
) -> Option<Vec<DecodedBlob>> {
    let mut read = FileContent::default();
    let mut linter = lint.then(|| DocumentLinter::new(path, part.text.as_bytes()));
    for document in mainstay_yaml::documents_of_part(&part.text, part.format, part.line, options) {
        let document = document.ok()?;
        if let Some(linter) = &mut linter
            && !linter.is_clean(&document)
        {
            return None;
        }
        add_document(document, path, part.text.as_bytes(), rules, compressor, &mut read);
        if !read.problems.is_empty() {
            return None;
        }
    }
    for blob in &mut read.blobs {
        blob.bytes = blob.bytes.start + part.offset..blob.bytes.end + part.offset;
    }
    Some(read.blobs)
}

/// Decodes a value that was built in memory, with all its problems.
pub(crate) fn decode_value(value: Value, origin: &BlobOrigin) -> FileContent {
    // The text of a value that is not an object is needed for the message.
    let json = if value.is_object() { String::new() } else { value.to_string() };
    let (line, bytes, format) = (origin.line, 0..json.len(), DocumentFormat::Json);
    let document = Document { value, line, bytes, format, repeated_keys: Vec::new() };
    let mut read = FileContent::default();
    add_document(
        document,
        &origin.file,
        json.as_bytes(),
        DocumentRules::Catalog,
        &mut BlobCompressor::new(KeptContent::All),
        &mut read,
    );
    read
}

/// Adds one document to the content of a file.
fn add_document(
    document: Document,
    path: &Arc<str>,
    bytes: &[u8],
    rules: DocumentRules,
    compressor: &mut BlobCompressor,
    read: &mut FileContent,
) {
    let line = document.line;
    match decode_blob(document, path, bytes, rules, compressor, read.stop.is_none()) {
        Ok(blob) => {
            report_object_faults(&blob, path, bytes, read);
            read.blobs.push(blob);
        }
        Err(mut fault) => {
            let words = std::mem::take(&mut fault.upstream);
            read.set_upstream(|| words);
            let problem = fault.at(path, line, bytes, &mut read.lines);
            read.add_loss(problem);
        }
    }
}

/// Reports unreadable manifests of a bundle: upstream decodes manifests while it reads.
fn report_object_faults(blob: &DecodedBlob, path: &Arc<str>, bytes: &[u8], read: &mut FileContent) {
    let decode::Facts::Bundle(facts) = &blob.facts else { return };
    let slot = &blob.slot;
    let paths: Vec<&[PathPart]> =
        facts.object_faults.iter().map(|(error, _)| error.path.as_slice()).collect();
    let places = locate_parts(bytes, &mut read.lines, &blob.bytes, slot.origin.line, &paths);
    for ((error, upstream), (line, column)) in facts.object_faults.iter().zip(places) {
        let message = |why: &str| {
            let (package, name) = (quote(&slot.package), quote(&slot.name));
            format!("read bundle objects: package {package}, bundle {name}: {why}")
        };
        read.set_upstream(|| message(upstream));
        read.problems.push(CatalogProblem {
            rule: CatalogRule::BadManifest,
            blob: Some(slot.blob_name()),
            file: path.clone(),
            line: Some(line),
            column,
            message: message(&error.message),
            remedy: "correct the property, or remove it".into(),
        });
    }
}

/// The rule and the remedy for a syntax error.
const fn syntax_remedy(fault: &YamlFault) -> (CatalogRule, &'static str) {
    match fault {
        YamlFault::NotUtf8 { .. } | YamlFault::ControlCharacter => {
            let remedy = "save the file as UTF-8 text, or list it in .indexignore if it is no part \
                          of the catalog";
            (CatalogRule::Syntax, remedy)
        }
        YamlFault::Node(NodeFault::TooLong { .. }) => (
            CatalogRule::AboveLimit,
            "shorten the value, or keep the manifest in the bundle image only",
        ),
        YamlFault::Utf16 => (CatalogRule::Syntax, "save the file as UTF-8"),
        _ => {
            let remedy = "correct the syntax, or list the file in .indexignore if it is no part of \
                          the catalog";
            (CatalogRule::Syntax, remedy)
        }
    }
}

/// A problem of a document, before its exact place is known.
struct DocumentFault {
    rule: CatalogRule,
    /// The name of the document, as far as it was read.
    blob: Option<BlobName>,
    error: decode::ShapeError,
    remedy: &'static str,
    bytes: std::ops::Range<usize>,
    /// Upstream's message.
    upstream: String,
}

impl DocumentFault {
    fn at(
        self,
        file: &Arc<str>,
        line: usize,
        text: &[u8],
        lines: &mut LineCounter,
    ) -> CatalogProblem {
        let spot = locate_part(text, lines, &self.bytes, line, &self.error.path);
        CatalogProblem {
            rule: self.rule,
            blob: self.blob,
            file: file.clone(),
            line: Some(spot.0),
            column: spot.1,
            message: self.error.message,
            remedy: self.remedy.into(),
        }
    }
}

/// The beginning of a value, for messages.
fn abbreviate(value: &Value) -> String {
    let mut text = value.to_string();
    if text.len() > 200 {
        let end = (0..=200).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Turns a document into a blob. `words` asks for upstream's message.
fn decode_blob(
    document: Document,
    file: &Arc<str>,
    text: &[u8],
    rules: DocumentRules,
    compressor: &mut BlobCompressor,
    words: bool,
) -> Result<DecodedBlob, Box<DocumentFault>> {
    let Document { value, line, bytes, format, .. } = document;
    let fault = |rule, message: String, upstream: String, remedy| {
        let error = decode::ShapeError { message, path: Vec::new() };
        Box::new(DocumentFault { rule, blob: None, error, remedy, bytes: bytes.clone(), upstream })
    };
    // Upstream's YAML decoder adds this context to its errors.
    let decoding = |message: &str| match format {
        DocumentFormat::Yaml => format!("error unmarshaling JSON: while decoding JSON: {message}"),
        DocumentFormat::Json => message.to_owned(),
    };
    let not_a_blob_remedy = "a document of a catalog is a mapping with the field schema; list files that \
                      are no part of the catalog in .indexignore";
    let manifest_remedy = "this is a manifest: of a bundle, name the folder that holds manifests and \
                      metadata; else list the file in .indexignore";
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Null => {
            let message = "object '' is missing root schema field".to_owned();
            let upstream = match format {
                // Upstream decodes the whole section, which may hold many such documents.
                DocumentFormat::Yaml if words => syntax::of_nothing(&text[bytes.clone()], &message),
                DocumentFormat::Yaml => message.clone(),
                DocumentFormat::Json => "object 'null\n' is missing root schema field".to_owned(),
            };
            return Err(fault(
                CatalogRule::EmptyDocument,
                message,
                upstream,
                "remove the empty document",
            ));
        }
        other => {
            let found = mainstay_gocompat::values::json_kind(&other);
            let message = format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            let json = match format {
                DocumentFormat::Yaml => go_format::json(&other, true),
                DocumentFormat::Json => String::from_utf8_lossy(&text[bytes.clone()]).into_owned(),
            };
            let upstream = decoding(&go_format::not_an_object(found, &json));
            return Err(fault(CatalogRule::NotABlob, message, upstream, not_a_blob_remedy));
        }
    };
    if let Some(duplicates) = folded_duplicates(&fields) {
        let message = duplicates.to_string();
        let upstream = decoding(&message);
        let is_repeated =
            |field: &&&str| fields.keys().filter(|key| is_same_field(key, field)).count() > 1;
        let path = shape::FIELDS.iter().find(is_repeated).map(|field| PathPart::Field(field));
        let fault =
            fault(CatalogRule::CaseOfKeys, String::new(), upstream, "keep one of the spellings");
        let error = decode::ShapeError { message, path: path.into_iter().collect() };
        return Err(Box::new(DocumentFault { blob: shape::blob_name(&fields), error, ..*fault }));
    }
    let mut names = [String::new(), String::new(), String::new()];
    for (name, field) in names.iter_mut().zip(NAMES) {
        match fields.iter().find(|(key, _)| is_same_field(key, field)) {
            None => {}
            Some((_, Value::String(text))) => name.clone_from(text),
            Some((key, other)) => {
                let upstream = decoding(&not_text_message(key, other));
                let message = format!("{}{}", not_text_prefix(field), abbreviate(other));
                let error = decode::ShapeError { message, path: vec![PathPart::Field(field)] };
                let remedy =
                    if other.is_null() { "give it a text" } else { "put the text in quotes" };
                let fault = fault(CatalogRule::WrongType, String::new(), upstream, remedy);
                return Err(Box::new(DocumentFault { error, ..*fault }));
            }
        }
    }
    let [schema, mut package, name] = names;
    let has_schema = match rules {
        DocumentRules::Catalog => !schema.is_empty(),
        DocumentRules::Meta => fields.keys().any(|key| is_same_field(key, "schema")),
    };
    if !has_schema {
        let is_object = ["apiVersion", "kind"].iter().all(|key| fields.contains_key(*key));
        let remedy = if is_object { manifest_remedy } else { not_a_blob_remedy };
        let value = Value::Object(fields);
        let upstream =
            format!("object '{}\n' is missing root schema field", go_format::json(&value, false));
        let message = format!("object '{}' is missing root schema field", abbreviate(&value));
        return Err(fault(CatalogRule::NotABlob, message, upstream, remedy));
    }
    if rules == DocumentRules::Meta {
        let slot = slot([schema, package, name], file, line, compressor.compress(&fields));
        return Ok(DecodedBlob { slot, bytes, facts: decode::Facts::Other });
    }
    if schema == "olm.bundle" {
        shape::canonical_bundle(&mut fields);
    }
    let facts = decode::facts(&schema, &fields).map_err(|error| {
        Box::new(DocumentFault {
            rule: CatalogRule::WrongType,
            blob: Some(BlobName {
                schema: schema.as_str().into(),
                package: package.as_str().into(),
                name: name.as_str().into(),
            }),
            upstream: error.message.clone(),
            error,
            remedy: "correct the type of the value",
            bytes: bytes.clone(),
        })
    })?;
    // The `name` of a package document is the name of its package.
    if schema == "olm.package" {
        package.clone_from(&name);
    }
    let slot = slot([schema, package, name], file, line, compressor.compress(&fields));
    Ok(DecodedBlob { slot, bytes, facts })
}

/// The table row of a document.
fn slot(
    [schema, package, name]: [String; 3],
    file: &Arc<str>,
    line: usize,
    (compressed, hash): (Option<CompressedBlob>, Option<[u8; 32]>),
) -> Slot {
    Slot {
        schema: schema.into(),
        package: package.into(),
        name: name.into(),
        origin: BlobOrigin { file: file.clone(), line },
        compressed,
        hash,
    }
}

/// Counts the lines of a text up to an offset; cheap while offsets grow.
#[derive(Default)]
pub(crate) struct LineCounter {
    at: usize,
    breaks: usize,
    /// The start of the section that was located last, and the line of its document.
    section: Option<(usize, usize)>,
}

impl LineCounter {
    /// The line (from 1) of a byte.
    pub(crate) fn line_at(&mut self, text: &[u8], offset: usize) -> usize {
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
fn locate_part(
    file: &[u8],
    lines: &mut LineCounter,
    bytes: &std::ops::Range<usize>,
    line: usize,
    path: &[PathPart],
) -> (usize, Option<usize>) {
    locate_parts(file, lines, bytes, line, &[path])[0]
}

/// As [`spot`], for many parts of one document.
pub(crate) fn locate_parts(
    file: &[u8],
    lines: &mut LineCounter,
    bytes: &std::ops::Range<usize>,
    line: usize,
    paths: &[&[PathPart]],
) -> Vec<(usize, Option<usize>)> {
    let steps = |path: &&[PathPart]| -> Vec<PathStep<'_>> {
        path.iter()
            .map(|part| match part {
                PathPart::Field(name) => PathStep::Field(name),
                PathPart::Item(index) => PathStep::Item(*index),
            })
            .collect()
    };
    let paths: Vec<Vec<PathStep<'_>>> = paths.iter().map(steps).collect();
    locate_paths(file, lines, bytes, line, &paths)
}

/// As [`locate_parts`], for paths with any field names.
pub(crate) fn locate_paths(
    file: &[u8],
    lines: &mut LineCounter,
    bytes: &std::ops::Range<usize>,
    line: usize,
    paths: &[Vec<PathStep<'_>>],
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
    let first = lines.line_at(file, bytes.start);
    let found = locate_all(text, paths);
    let place = |(path, found): (&Vec<PathStep<'_>>, _)| match found {
        Some((row, column)) if first + row > line && !path.is_empty() => {
            (first + row - 1, Some(column))
        }
        _ => (line, None),
    };
    paths.iter().zip(found).map(place).collect()
}
