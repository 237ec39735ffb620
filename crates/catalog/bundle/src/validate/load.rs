//! Loading a folder for the validators, as upstream's validation library loads it.
//!
//! The rules differ from those of [`Bundle::read`](crate::Bundle::read), which follows opm. The
//! folder that contains the ClusterServiceVersion is the folder of manifests, at any path. A file
//! in it that cannot be read is an error; it is not skipped.

use super::{
    LibraryVersion,
    compressed_size::CompressedSize,
    decode::{self, Refused},
    text_coercion,
};
use crate::{
    decode_error::FirstDocumentError,
    error::BundleProblem,
    go_field,
    manifest::Manifest,
    read::Limits,
    reader::{BundleReader, FileContent, length},
    tree::{self, FileTree},
    types,
};
use mainstay_formats::edit_distance;
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::quote;
use mainstay_schema::gojson::{DeclaredType, ValuePathStep};
use serde_json::Value;
use std::{borrow::Cow, rc::Rc, sync::Arc};

/// The deepest nesting of folders.
const MAX_DEPTH: usize = 16;

/// The kind that every bundle has.
const CLUSTER_SERVICE_VERSION: &str = "ClusterServiceVersion";

/// The largest edit distance between a misspelled kind and ClusterServiceVersion.
const MAX_DISTANCE: usize = 3;

/// A CustomResourceDefinition of a bundle.
#[derive(Clone, Debug)]
pub(crate) struct Crd {
    /// The index of its manifest.
    pub(crate) manifest: usize,
    /// Whether the version is `apiextensions.k8s.io/v1`; otherwise it is `v1beta1`.
    pub(crate) v1: bool,
    pub(crate) value: Arc<Value>,
}

/// A bundle as the validators read it: objects, annotations and sizes.
#[derive(Debug)]
pub struct LoadedBundle {
    /// The name of the ClusterServiceVersion as written; empty if it is not a text.
    pub name: String,
    /// The package of the annotations; empty if absent.
    pub package: String,
    /// The channels of the annotations. Without annotations there is one, with an empty name.
    pub channels: Vec<String>,
    /// The default channel of the annotations; empty if absent.
    pub default_channel: String,
    /// The size of all files in bytes.
    pub size: u64,
    /// The compressed size of all files.
    pub(crate) compressed: CompressedSize,
    pub(crate) manifests: Vec<Manifest>,
    /// The ClusterServiceVersion: the index of its manifest, and its value with scalars converted
    /// to texts where the type has texts.
    pub(crate) csv: (usize, Arc<Value>),
    /// CRDs: v1 first, then in the order of files.
    pub(crate) crds: Vec<Crd>,
}

impl LoadedBundle {
    /// The objects, in the order of their files.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The characters of all files, each compressed with gzip and encoded in base64. The call
    /// compresses the files.
    pub fn compressed_size(&self) -> u64 {
        self.compressed.exact()
    }
}

/// The result of loading a folder.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// The bundle; none if there is no ClusterServiceVersion.
    pub subject: Option<LoadedBundle>,
    /// The message with which upstream's tools refuse the folder.
    pub refusal: Option<String>,
    /// The reasons of the refusal, with locations and remedies.
    pub problems: Vec<BundleProblem>,
    /// Content that upstream drops silently: further documents of files.
    pub dropped: Vec<BundleProblem>,
    /// Duplicate keys; upstream silently drops the first value.
    pub repeated: Vec<BundleProblem>,
}

/// Loads a folder.
///
/// `root` is the folder below the tree (`""`: the whole tree), `display_root` its name in messages.
/// Upstream's command line loads only the folder of manifests, so it never reads the annotations.
pub fn load(tree: &dyn FileTree, root: &str, display_root: &str, limits: &Limits) -> LoadResult {
    load_as(tree, root, display_root, limits, LibraryVersion::default())
}

/// Loads a folder as a version of the library does. Older versions do not have the field `release`
/// and drop it.
pub fn load_as(
    tree: &dyn FileTree,
    root: &str,
    display_root: &str,
    limits: &Limits,
    library: LibraryVersion,
) -> LoadResult {
    BundleReader::new(tree, limits).load(root, display_root, library)
}

impl BundleReader<'_> {
    /// Loads a folder as [`load_as`] does.
    pub fn load(&self, root: &str, display_root: &str, library: LibraryVersion) -> LoadResult {
        let mut loader = Loader::new(self, root, display_root.trim_end_matches('/'), library);
        loader.walk(root, 0);
        loader.finish()
    }
}

/// An object whose kind is nearly ClusterServiceVersion.
struct Misspelled {
    file: String,
    line: usize,
    kind: String,
}

struct Loader<'r, 't> {
    reading: &'r BundleReader<'t>,
    library: LibraryVersion,
    root: &'r str,
    display_root: &'r str,
    /// How many more files may be read.
    files_left: usize,
    errors: Vec<String>,
    problems: Vec<BundleProblem>,
    /// Manifest files that hold no object, with the reasons.
    undecoded: Vec<(String, Refused)>,
    dropped: Vec<BundleProblem>,
    repeated: Vec<BundleProblem>,
    misspelled: Vec<Misspelled>,
    found: bool,
    subject: Option<LoadedBundle>,
    annotations: Arc<Value>,
    size: u64,
    compressed: CompressedSize,
}

/// Why a file cannot be read, in upstream's words, and the remedy.
struct FileError {
    why: String,
    remedy: &'static str,
}

/// `folder/name`, or the name alone in the root.
fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl<'r, 't> Loader<'r, 't> {
    fn new(
        reading: &'r BundleReader<'t>,
        root: &'r str,
        display_root: &'r str,
        library: LibraryVersion,
    ) -> Self {
        Self {
            reading,
            library,
            root,
            display_root,
            files_left: reading.limits().files,
            errors: Vec::new(),
            problems: Vec::new(),
            undecoded: Vec::new(),
            dropped: Vec::new(),
            repeated: Vec::new(),
            misspelled: Vec::new(),
            found: false,
            subject: None,
            annotations: Arc::default(),
            size: 0,
            compressed: CompressedSize::default(),
        }
    }

    /// The name of a path of the tree in messages.
    fn display_path(&self, path: &str) -> String {
        let below = path.strip_prefix(self.root).unwrap_or(path).trim_start_matches('/');
        if below.is_empty() {
            self.display_root.to_owned()
        } else {
            format!("{}/{below}", self.display_root)
        }
    }

    fn problem(
        &mut self,
        file: &str,
        line: Option<usize>,
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) {
        let (file, message, remedy) = (file.to_owned(), message.into(), remedy.into());
        let problem = BundleProblem { file, line, message, remedy };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn read(&self, path: &str, kind: tree::FileKind) -> Result<Rc<FileContent>, FileError> {
        let unread = |why: &str, remedy| {
            Err(FileError { why: format!("open {}: {why}", self.display_path(path)), remedy })
        };
        match kind {
            tree::FileKind::File => {}
            tree::FileKind::Outside => {
                let why = "the symbolic link leaves the bundle, or leads nowhere";
                return unread(why, "copy the file into the bundle");
            }
            tree::FileKind::Folder | tree::FileKind::Other => {
                return unread("not a file", "move it out of the bundle");
            }
        }
        let limit = self.reading.limits().file_bytes;
        let content = match self.reading.file(path) {
            Ok(content) => content,
            Err(error) => return unread(&io_error_text(&error), "make the file readable"),
        };
        if length(&content.bytes) > limit {
            return unread(&format!("the file has more than {limit} bytes"), "split the file");
        }
        Ok(content)
    }

    /// Visits a folder and its sub-folders. Annotations and the ClusterServiceVersion may be in any
    /// of them, and each file adds to the size.
    fn walk(&mut self, folder: &str, depth: usize) {
        let entries = match self.reading.list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let verb = if depth == 0 { "lstat" } else { "open" };
                let why = io_error_text(&error);
                self.errors.push(format!("{verb} {}: {why}", self.display_path(folder)));
                self.problem(folder, None, why, "make it a folder that can be read");
                return;
            }
        };
        for entry in entries {
            let path = join(folder, &entry.name);
            if entry.kind == tree::FileKind::Folder {
                if depth < MAX_DEPTH && !entry.name.starts_with('.') {
                    self.walk(&path, depth + 1);
                }
                continue;
            }
            if self.files_left == 0 {
                let message =
                    format!("the bundle has more than {} files", self.reading.limits().files);
                self.errors.push(message.clone());
                self.problem(folder, None, message, "leave files out");
                return;
            }
            self.files_left -= 1;
            self.visit(folder, &path, &entry);
        }
    }

    fn visit(&mut self, folder: &str, path: &str, entry: &tree::FileEntry) {
        let content = match self.read(path, entry.kind) {
            Ok(content) => content,
            Err(FileError { why, remedy }) => {
                if !entry.name.starts_with('.') {
                    self.errors
                        .push(format!("unable to load file {}: {why}", self.display_path(path)));
                    self.problem(path, None, why, remedy);
                }
                return;
            }
        };
        self.size += length(&content.bytes);
        self.compressed.add(&content.bytes);
        if entry.name.starts_with('.') {
            return;
        }
        if entry.name.starts_with("annotations") {
            self.annotations(path, &content);
        }
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
        if is_manifest && let Ok(decoded) = content.document() {
            self.repeated.extend(decode::lost_values(path, &decoded.repeated));
        }
        let decoded = match content.object() {
            Ok(decoded) => decoded,
            Err(refused) => {
                if is_manifest && !entry.name.starts_with("annotations") {
                    self.undecoded.push((path.to_owned(), refused));
                }
                return;
            }
        };
        let kind = decoded.value.get("kind").and_then(Value::as_str);
        if kind != Some(CLUSTER_SERVICE_VERSION) {
            let is_near = |kind: &&str| {
                let lower = CLUSTER_SERVICE_VERSION.to_ascii_lowercase();
                edit_distance::distance(&kind.to_ascii_lowercase(), &lower, MAX_DISTANCE).is_some()
            };
            if let Some(kind) = kind.filter(is_near) {
                let kind = kind.to_owned();
                self.misspelled.push(Misspelled {
                    file: path.to_owned(),
                    line: decoded.line,
                    kind,
                });
            }
            return;
        }
        self.found = true;
        let name = decoded.value.pointer("/metadata/name").and_then(Value::as_str);
        let before = self.errors.len();
        let subject = self.manifests(folder, name.unwrap_or_default());
        if subject.is_some() {
            self.subject = subject;
        } else if self.errors.len() > before {
            self.errors.push("no bundle csv found".to_owned());
        }
    }

    fn annotations(&mut self, path: &str, content: &FileContent) {
        let kind = DeclaredType::Struct(&types::ANNOTATIONS_FILE);
        let refusal = match content.document() {
            Err(refused) if refused.reason == FirstDocumentError::NoDocument => return,
            Err(refused) => refused.clone(),
            Ok(decoded) => match text_coercion::read(&decoded.value, &kind) {
                Ok(value) => {
                    self.annotations = value;
                    return;
                }
                Err(mismatch) => Refused::new(mismatch.reason.into(), Some(decoded.line)),
            },
        };
        let message = format!(
            "unable to load the annotations file {}: {}",
            self.display_path(path),
            refusal.reason
        );
        self.problem(path, refusal.line, refusal.reason.to_string(), "correct the file");
        self.errors.push(message);
    }

    /// The objects of the folder that holds the ClusterServiceVersion.
    fn manifests(&mut self, folder: &str, name: &str) -> Option<LoadedBundle> {
        let mut faults = Vec::new();
        let read = self.objects(folder, name, &mut faults);
        if !faults.is_empty() {
            let faults = aggregate(&faults);
            self.errors.push(format!("error loading objs in directory: {faults}"));
        }
        read
    }

    fn objects(
        &mut self,
        folder: &str,
        name: &str,
        faults: &mut Vec<String>,
    ) -> Option<LoadedBundle> {
        let entries = match self.reading.list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                faults.push(format!(
                    "open {}: {}",
                    self.display_path(folder),
                    io_error_text(&error)
                ));
                return None;
            }
        };
        let mut manifests = Vec::new();
        let mut csv = None;
        let mut crds = Vec::new();
        for entry in entries {
            let path = join(folder, &entry.name);
            if entry.kind == tree::FileKind::Folder {
                faults.push(format!(
                    "bundle manifests dir contains directory: {}",
                    self.display_path(&path)
                ));
                let message = "there is a folder among the manifests";
                self.problem(&path, None, message, "move it out of the folder");
                continue;
            }
            if entry.name.starts_with('.') {
                faults.push(format!(
                    "bundle manifests dir has hidden file: {}",
                    self.display_path(&path)
                ));
                let message = "there is a hidden file among the manifests";
                self.problem(&path, None, message, "remove the file");
                continue;
            }
            let content = match self.read(&path, entry.kind) {
                Ok(content) => content,
                Err(FileError { why, .. }) => {
                    faults.push(format!("unable to load file {}: {why}", self.display_path(&path)));
                    continue;
                }
            };
            let decoded = match content.object() {
                Ok(decoded) => decoded,
                Err(refused) => {
                    let Refused { reason, line } = refused;
                    let remedy = "write one object of Kubernetes in it";
                    faults.push(format!("unable to decode object: {reason}"));
                    self.problem(&path, line, reason.to_string(), remedy);
                    continue;
                }
            };
            if let Some(line) = decoded.second {
                let message =
                    "there is a second document, and only the first of a file counts".to_owned();
                let remedy = "write each object to its own file".into();
                let dropped =
                    BundleProblem { file: path.clone(), line: Some(line), message, remedy };
                self.dropped.push(dropped);
            }
            let source = content.bytes.clone();
            let manifest = Manifest::new(path.clone(), decoded.line, decoded.value, source);
            let at = manifests.len();
            match manifest.kind() {
                "ClusterServiceVersion" if csv.is_some() => {
                    faults.clear();
                    faults.push("invalid bundle: contains multiple CSVs".to_owned());
                    let message = "there is a second ClusterServiceVersion";
                    self.problem(&path, Some(decoded.line), message, "leave one in the bundle");
                    return None;
                }
                "ClusterServiceVersion" => {
                    let kind = types::CLUSTER_SERVICE_VERSION;
                    let value = self.decode_as(&manifest, &entry.name, "CSV", &kind, faults)?;
                    csv = Some((at, value));
                }
                "CustomResourceDefinition" => {
                    let crd = self.definition(&manifest, &entry.name, faults)?;
                    crds.push(Crd { manifest: at, ..crd });
                }
                _ => {}
            }
            manifests.push(manifest);
        }
        crds.sort_by_key(|crd| !crd.v1);
        Some(LoadedBundle {
            name: name.to_owned(),
            package: String::new(),
            channels: Vec::new(),
            default_channel: String::new(),
            size: 0,
            compressed: CompressedSize::default(),
            manifests,
            csv: csv?,
            crds,
        })
    }

    /// A manifest as a value of its type; none, which ends the loading, if it does not have its
    /// type.
    fn decode_as(
        &mut self,
        manifest: &Manifest,
        file: &str,
        what: &str,
        kind: &DeclaredType,
        faults: &mut Vec<String>,
    ) -> Option<Arc<Value>> {
        let mut value = manifest.shared_value().clone();
        if what == "CSV" && self.library == LibraryVersion::V034 {
            let unknown = |name: &String| name.eq_ignore_ascii_case("release");
            let spec = value.get("spec").and_then(Value::as_object);
            if spec.is_some_and(|spec| spec.keys().any(unknown))
                && let Some(spec) = Arc::make_mut(&mut value)["spec"].as_object_mut()
            {
                spec.retain(|name, _| !unknown(name));
            }
        }
        let mismatch = match text_coercion::read(&value, kind) {
            Ok(value) => return Some(value),
            Err(mismatch) => mismatch,
        };
        let line = manifest.line_of(&mismatch.path);
        faults.clear();
        faults.push(format!(
            "unable to parse {what} {file}: error unmarshaling JSON: while decoding JSON: {}",
            mismatch.reason
        ));
        let remedy = "write a value of the type in the message";
        self.problem(manifest.file(), line, mismatch.reason.to_string(), remedy);
        None
    }

    fn definition(
        &mut self,
        manifest: &Manifest,
        file: &str,
        faults: &mut Vec<String>,
    ) -> Option<Crd> {
        let ("apiextensions.k8s.io", version @ ("v1" | "v1beta1")) = manifest.group_version()
        else {
            let api_version = manifest.api_version();
            faults.clear();
            faults.push(format!("unsupported CRD version {api_version} for {file}"));
            let message = format!("the apiVersion {} is not supported", quote(api_version));
            let line = manifest.line_of(&[ValuePathStep::Field("apiVersion".to_owned())]);
            let remedy = "write apiextensions.k8s.io/v1";
            self.problem(manifest.file(), line, message, remedy);
            return None;
        };
        let v1 = version == "v1";
        let kind = DeclaredType::Table(if v1 { types::CRD_V1 } else { types::CRD_V1BETA1 });
        let value = self.decode_as(manifest, file, "CRD", &kind, faults)?;
        Some(Crd { manifest: 0, v1, value })
    }

    fn finish(mut self) -> LoadResult {
        let display_root = self.display_root.to_owned();
        if !self.found {
            self.errors.push(format!("unable to find a csv in bundle directory {display_root}"));
            // One of these files may hold it.
            let undecoded = std::mem::take(&mut self.undecoded);
            let (message, remedy) = if undecoded.is_empty() {
                ("there is no ClusterServiceVersion", "put one among the manifests")
            } else {
                ("there is no ClusterServiceVersion that can be read", "correct the files")
            };
            for (path, Refused { reason, line }) in undecoded {
                let why = match reason {
                    FirstDocumentError::NoDocument => "the file is empty".to_owned(),
                    reason => reason.to_string(),
                };
                self.problem(&path, line, why, "write one object of Kubernetes in it");
            }
            for Misspelled { file, line, kind } in std::mem::take(&mut self.misspelled) {
                let message = format!("there is no kind {}", quote(&kind));
                let remedy = format!("did you mean {CLUSTER_SERVICE_VERSION}?");
                self.problem(&file, Some(line), message, remedy);
            }
            self.problem(self.root, None, message, remedy);
        } else if self.subject.is_none() {
            self.errors.push(format!("unable to load bundle from directory {display_root}"));
        }
        if let Some(subject) = &mut self.subject {
            let said = go_field::field(&self.annotations, "annotations").unwrap_or(&Value::Null);
            let channels = go_field::text(said, types::CHANNELS_KEY);
            subject.channels = channels.split(',').map(str::to_owned).collect();
            go_field::text(said, types::PACKAGE_KEY).clone_into(&mut subject.package);
            go_field::text(said, types::DEFAULT_KEY).clone_into(&mut subject.default_channel);
            (subject.size, subject.compressed) = (self.size, self.compressed);
        }
        let refusal = (!self.errors.is_empty()).then(|| aggregate(&self.errors));
        LoadResult {
            subject: self.subject,
            refusal,
            problems: self.problems,
            dropped: self.dropped,
            repeated: self.repeated,
        }
    }
}

/// Errors in one line: each once, several in brackets.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for error in errors {
        if !seen.contains(&error.as_str()) {
            seen.push(error);
        }
    }
    match seen.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
