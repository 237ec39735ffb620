//! Reading a tree of files into a catalog.
//!
//! Files are read and parsed by as many threads as there are cores, each document down to what
//! the model needs; the order of files and lines is restored before anything is judged, so that
//! catalogs, digests and errors do not depend on the number of cores.

use crate::{
    check::{self, Item},
    content::{Area, Origin, Slot, pack},
    decode, fold,
    ignored::{self, Ignored},
    model::Catalog,
    problem::{Finding, LoadError, Part, Problem},
    source::{Folder, Source, SourceFile, plain},
};
use mainstay_yaml::{Document, EmptyDocuments, Options, Step, documents, locate};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Bounds on what a catalog may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of one scalar, such as one base64 manifest.
    pub scalar_bytes: usize,
    /// How many files there may be.
    pub files: usize,
}

impl Default for Limits {
    /// Several times what published catalogs need: 512 MiB, 16 MiB, 100,000 files.
    fn default() -> Self {
        Self { file_bytes: 512 << 20, scalar_bytes: 16 << 20, files: 100_000 }
    }
}

/// How to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Bounds on the input.
    pub limits: Limits,
    /// How many threads may parse; as many as there are cores when not said.
    pub threads: Option<NonZeroUsize>,
}

impl Catalog {
    /// Loads the catalog in a folder. Blocks on files and burns CPU: not for async threads.
    ///
    /// # Errors
    /// Everything that is wrong with the content, each with its place. Nothing is loaded then.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Arc<Self>, LoadError> {
        Self::load_from(&Folder::new(path), options)
    }

    /// Loads the catalog in any tree of files.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn load_from(source: &dyn Source, options: &LoadOptions) -> Result<Arc<Self>, LoadError> {
        let name = source.name();
        let fail = |message: String, remedy: &'static str| LoadError {
            problems: vec![Problem::of_file(name.as_str(), message, remedy)],
        };
        let files = source
            .files()
            .map_err(|message| fail(message, "give the path of a folder with a catalog"))?;
        if files.len() > options.limits.files {
            let message = format!(
                "there are {} files, above the limit of {}",
                files.len(),
                options.limits.files
            );
            return Err(fail(message, "put the catalog into a folder of its own"));
        }
        let mut problems = Vec::new();
        let files = without_ignored(source, files, options, &mut problems);
        let reads = read_all(source, &files, options);
        let mut collected = Collected::default();
        for read in reads {
            problems.extend(read.problems);
            for blob in read.blobs {
                collected.add(blob);
            }
        }
        let complete = problems.is_empty();
        let (catalog, findings) = collected.build();
        problems.extend(place(
            source,
            options,
            findings.into_iter().filter(|finding| complete || !finding.follows_from_gaps),
        ));
        if problems.is_empty() {
            return Ok(Arc::new(catalog));
        }
        problems.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        problems.dedup();
        Err(LoadError { problems })
    }
}

/// The files that belong to the catalog. Faults count only for those.
fn without_ignored(
    source: &dyn Source,
    files: Vec<SourceFile>,
    options: &LoadOptions,
    problems: &mut Vec<Problem>,
) -> Vec<SourceFile> {
    let is_patterns = |path: &str| path.rsplit('/').next() == Some(ignored::FILE);
    let (mut patterns, files): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_patterns(&file.path));
    // Outer folders before inner ones.
    patterns.sort_by_key(|file| (file.path.matches('/').count(), file.path.clone()));
    let mut ignored = Ignored::default();
    for file in patterns {
        let read = match file.fault {
            Some((message, remedy)) => Err((message, remedy)),
            None => source
                .read(&file.path, options.limits.file_bytes)
                .map_err(|error| (plain(&error), "make it readable, or remove it".into())),
        };
        match read.map(String::from_utf8) {
            Ok(Ok(text)) => {
                ignored.add(&file.path, text.strip_prefix('\u{feff}').unwrap_or(&text));
            }
            Ok(Err(_)) => problems.push(Problem::of_file(
                file.path,
                "the patterns are not UTF-8 text",
                "save the file as UTF-8",
            )),
            Err((message, remedy)) => {
                problems.push(Problem::of_file(file.path, message, remedy));
            }
        }
    }
    files.into_iter().filter(|file| !ignored.ignores(&file.path)).collect()
}

/// What came out of one file.
#[derive(Default)]
struct FileRead {
    blobs: Vec<ReadBlob>,
    problems: Vec<Problem>,
}

/// One blob, ready to be stored.
pub(crate) struct ReadBlob {
    pub(crate) slot: Slot,
    pub(crate) bytes: std::ops::Range<usize>,
    pub(crate) facts: decode::Facts,
}

/// Reads all files; results are in the order of the files.
fn read_all(source: &dyn Source, files: &[SourceFile], options: &LoadOptions) -> Vec<FileRead> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = options.threads.unwrap_or_else(cores).get().min(files.len().max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return done };
            done.push((index, read_file(source, file, options)));
        }
    };
    let mut results: Vec<FileRead> = Vec::new();
    results.resize_with(files.len(), FileRead::default);
    let mut keep = |done: Vec<(usize, FileRead)>| {
        for (index, read) in done {
            results[index] = read;
        }
    };
    if threads == 1 {
        keep(work());
        return results;
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(done) => keep(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    results
}

fn read_file(source: &dyn Source, file: &SourceFile, options: &LoadOptions) -> FileRead {
    let mut read = FileRead::default();
    if let Some((message, remedy)) = &file.fault {
        read.problems.push(Problem::of_file(file.path.as_str(), message.clone(), remedy.clone()));
        return read;
    }
    let limit = options.limits.file_bytes;
    let bytes = match source.read(&file.path, limit) {
        Ok(bytes) if bytes.len() as u64 <= limit => bytes,
        Ok(_) => {
            let message = format!("the file is above the limit of {limit} bytes");
            let remedy = "split it, or list it in .indexignore";
            read.problems.push(Problem::of_file(file.path.as_str(), message, remedy));
            return read;
        }
        Err(error) => {
            let message = format!("cannot read the file: {}", plain(&error));
            let remedy = "make it readable for the account that runs this process";
            read.problems.push(Problem::of_file(file.path.as_str(), message, remedy));
            return read;
        }
    };
    let path: Arc<str> = file.path.as_str().into();
    let reading = Options {
        empty: EmptyDocuments::Keep,
        max_scalar_bytes: options.limits.scalar_bytes,
        ..Options::default()
    };
    for document in documents(&bytes, &reading) {
        match document {
            Ok(document) => {
                let line = document.line;
                match blob(document, &path) {
                    Ok(blob) => read.blobs.push(blob),
                    Err(fault) => read.problems.push(fault.at(&path, line, &bytes)),
                }
            }
            Err(error) => read.problems.push(Problem {
                file: path.clone(),
                line: Some(error.line),
                column: Some(error.column),
                remedy: syntax_remedy(&error.message).into(),
                message: error.message,
            }),
        }
    }
    read
}

fn syntax_remedy(message: &str) -> &'static str {
    if message.contains("not UTF-8") || message.contains("control characters") {
        "save the file as UTF-8 text, or list it in .indexignore if it is no part of the catalog"
    } else if message.contains("above the limit") {
        "shorten the value, or keep the manifest in the bundle image only"
    } else if message.contains("UTF-16") {
        "save the file as UTF-8"
    } else {
        "correct the syntax, or list the file in .indexignore if it is no part of the catalog"
    }
}

/// What is wrong with a document as a whole or with a part of it.
struct Fault {
    wrong: decode::Wrong,
    remedy: &'static str,
    bytes: std::ops::Range<usize>,
}

impl Fault {
    fn at(self, file: &Arc<str>, line: usize, text: &[u8]) -> Problem {
        let spot = spot(text, &self.bytes, line, &self.wrong.path);
        Problem {
            file: file.clone(),
            line: Some(spot.0),
            column: spot.1,
            message: self.wrong.message,
            remedy: self.remedy.into(),
        }
    }
}

/// Turns a document into a blob.
fn blob(document: Document, file: &Arc<str>) -> Result<ReadBlob, Fault> {
    let Document { value, line, bytes, .. } = document;
    let fault = |message: String, remedy| Fault {
        wrong: decode::Wrong { message, path: Vec::new() },
        remedy,
        bytes: bytes.clone(),
    };
    let not_a_blob = "a document of a catalog is a mapping with the field schema; list files that \
                      are no part of the catalog in .indexignore";
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Null => {
            let message = "object '' is missing root schema field".to_owned();
            return Err(fault(message, "remove the empty document"));
        }
        other => {
            let found = crate::shape::word(&other);
            let message = format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            return Err(fault(message, not_a_blob));
        }
    };
    if let Some(message) = folded_duplicates(&fields) {
        return Err(fault(message, "keep one of the spellings"));
    }
    let mut names = [String::new(), String::new(), String::new()];
    for (name, field) in names.iter_mut().zip(["schema", "package", "name"]) {
        match fold::get_in(&fields, field) {
            None => {}
            Some(Value::String(text)) => name.clone_from(text),
            Some(other) => {
                let message =
                    format!("expected value for key \"{field}\" to be a string, got {other}");
                let wrong = decode::Wrong { message, path: vec![Part::Field(field)] };
                let remedy =
                    if other.is_null() { "give it a text" } else { "put the text in quotes" };
                return Err(Fault { wrong, ..fault(String::new(), remedy) });
            }
        }
    }
    let [schema, mut package, name] = names;
    if schema.is_empty() {
        let mut text = Value::Object(fields).to_string();
        if text.len() > 200 {
            let end = (0..=200).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        let message = format!("object '{text}' is missing root schema field");
        return Err(fault(message, not_a_blob));
    }
    if schema == "olm.bundle" {
        canonical_bundle(&mut fields);
    }
    let facts = decode::facts(&schema, &fields).map_err(|wrong| Fault {
        wrong,
        remedy: "correct the type of the value",
        bytes: bytes.clone(),
    })?;
    // The documents of a package carry its name as their name.
    if schema == "olm.package" {
        package.clone_from(&name);
    }
    let json = Value::Object(fields).to_string().into_bytes();
    let slot = Slot {
        schema: schema.into(),
        package: package.into(),
        name: name.into(),
        origin: Origin { file: file.clone(), line },
        stored: pack(&json).into_boxed_slice(),
        plain: json.len(),
        hash: Sha256::digest(&json).into(),
    };
    Ok(ReadBlob { slot, bytes, facts })
}

/// Keys of a document that differ only in case, in upstream's words.
fn folded_duplicates(fields: &Map<String, Value>) -> Option<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in fields.keys() {
        groups.entry(name.to_uppercase().to_lowercase()).or_default().push(name);
    }
    let mut messages: Vec<String> = groups
        .into_iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(key, names)| format!("duplicate keys for key \"{key}\": [{}]", names.join(" ")))
        .collect();
    match messages.len() {
        0 | 1 => messages.pop(),
        _ => Some(format!("[{}]", messages.join(", "))),
    }
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

/// All blobs of a catalog, in order, on their way into an area.
#[derive(Default)]
pub(crate) struct Collected {
    area: Area,
    items: Vec<Item>,
    /// Schemas, packages and files are few; each text is kept once.
    names: std::collections::BTreeSet<Arc<str>>,
}

impl Collected {
    pub(crate) fn add(&mut self, blob: ReadBlob) {
        let ReadBlob { mut slot, bytes, facts } = blob;
        for name in [&mut slot.schema, &mut slot.package, &mut slot.name] {
            match self.names.get(&**name) {
                Some(known) => *name = known.clone(),
                None => {
                    self.names.insert(name.clone());
                }
            }
        }
        self.items.push(Item { slot: self.area.slots.len(), bytes, facts });
        self.area.slots.push(slot);
    }

    /// The catalog of all blobs, and what is wrong with it. Use it only if nothing is.
    pub(crate) fn build(self) -> (Catalog, Vec<Finding>) {
        let digest = digest(&self.area.slots);
        let area = Arc::new(self.area);
        let outcome = check::build(&self.items, &area);
        let others = outcome.others.iter().map(|&slot| area.blob(slot)).collect();
        (Catalog { digest, packages: outcome.packages, others, area }, outcome.findings)
    }
}

/// The hash over the sorted hashes of all blobs.
fn digest(slots: &[Slot]) -> String {
    let mut hashes: Vec<&[u8; 32]> = slots.iter().map(|slot| &slot.hash).collect();
    hashes.sort_unstable();
    let mut all = Sha256::new();
    for hash in hashes {
        all.update(hash);
    }
    let mut text = "sha256:".to_owned();
    for byte in all.finalize() {
        text.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
        );
    }
    text
}

/// Gives findings their exact places, by reading the files once more.
fn place(
    source: &dyn Source,
    options: &LoadOptions,
    findings: impl Iterator<Item = Finding>,
) -> Vec<Problem> {
    let mut texts: BTreeMap<Arc<str>, Vec<u8>> = BTreeMap::new();
    findings
        .map(|finding| {
            let Finding { origin, bytes, path, message, remedy, follows_from_gaps: _ } = finding;
            let text = texts.entry(origin.file.clone()).or_insert_with(|| {
                source.read(&origin.file, options.limits.file_bytes).unwrap_or_default()
            });
            let (line, column) = spot(text, &bytes, origin.line, &path);
            Problem { file: origin.file, line: Some(line), column, message, remedy }
        })
        .collect()
}

/// Line and column of a part of a document that lies at `bytes` of a file and begins on `line`.
fn spot(
    file: &[u8],
    bytes: &std::ops::Range<usize>,
    line: usize,
    path: &[Part],
) -> (usize, Option<usize>) {
    if path.is_empty() {
        return (line, None);
    }
    let Some(text) = file.get(bytes.clone()).and_then(|part| std::str::from_utf8(part).ok()) else {
        return (line, None);
    };
    let steps: Vec<Step<'_>> = path
        .iter()
        .map(|part| match part {
            Part::Field(name) => Step::Field(name),
            Part::Item(index) => Step::Item(*index),
        })
        .collect();
    // The document may begin with comments: its bytes start on an earlier line than its text.
    let first = 1 + String::from_utf8_lossy(&file[..bytes.start]).matches('\n').count();
    match locate(text, &steps) {
        Some((row, column)) if first + row > line => (first + row - 1, Some(column)),
        _ => (line, None),
    }
}
