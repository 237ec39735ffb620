//! Reading a [`Bundle`] from its files, in the order and with the errors of `opm render`.

use crate::{
    bundle::{self, Bundle},
    csv::CsvManifest,
    error::{BundleError, BundleProblem},
    manifest::Manifest,
    metadata::{self, Annotations},
    tree::{BundleFolder, FileEntry, FileKind, FileTree},
    validate::decode,
};
use mainstay_gocompat::io_error_text;
use mainstay_yaml::Document;
use std::path::Path;

/// How much of a bundle is read.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files of one folder.
    pub files: usize,
}

impl Default for Limits {
    /// 32 MiB for a file and 10,000 files: far more than a cluster accepts.
    fn default() -> Self {
        Self { file_bytes: 32 << 20, files: 10_000 }
    }
}

impl Bundle {
    /// Reads the bundle in a folder of the file system.
    ///
    /// # Errors
    /// The first error for which upstream refuses the bundle.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, BundleError> {
        Self::read_from(&BundleFolder::new(folder.as_ref()), &Limits::default())
    }

    /// Reads the bundle in any tree of files.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn read_from(tree: &dyn FileTree, limits: &Limits) -> Result<Self, BundleError> {
        let mut reader = Reader { tree, limits, skipped_content: Vec::new(), repeated: Vec::new() };
        let read = reader.manifests();
        let read = read.and_then(|(manifests, csv)| reader.metadata(manifests, csv));
        let mut bundle =
            read.map_err(|error| error.with_skipped_content(reader.skipped_content.clone()))?;
        bundle.skipped_content = reader.skipped_content;
        bundle.repeated = reader.repeated;
        bundle
            .derive_properties()
            .map_err(|error| error.with_prefix("failed to derive properties: "))?;
        Ok(bundle)
    }
}

struct Reader<'t> {
    tree: &'t dyn FileTree,
    limits: &'t Limits,
    skipped_content: Vec<BundleProblem>,
    repeated: Vec<BundleProblem>,
}

impl Reader<'_> {
    /// The files of a folder by name.
    fn files(&self, folder: &str) -> Result<Vec<FileEntry>, BundleError> {
        let problem = |message: String, remedy: &'static str| {
            let file = folder.to_owned();
            let problem =
                BundleProblem { file, line: None, message: message.clone(), remedy: remedy.into() };
            BundleError::new(message, problem)
        };
        let mut entries = self.tree.list(folder).map_err(|error| {
            let message = format!("open {folder}: {}", io_error_text(&error));
            problem(message, "make it a folder that can be read")
        })?;
        if entries.len() > self.limits.files {
            let message = format!("the folder has more than {} files", self.limits.files);
            return Err(problem(message, "leave files out"));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn skip(&mut self, file: &str, line: Option<usize>, message: String, remedy: &'static str) {
        let file = file.to_owned();
        self.skipped_content.push(BundleProblem { file, line, message, remedy: remedy.into() });
    }

    /// The first document of a file; none if the file is skipped.
    fn first_document(
        &mut self,
        folder: &str,
        entry: &FileEntry,
    ) -> Result<Option<(Document, Vec<u8>)>, BundleError> {
        let path = format!("{folder}/{}", entry.name);
        let refuse = |message: String, remedy: &'static str| {
            let file = path.clone();
            let problem =
                BundleProblem { file, line: None, message: message.clone(), remedy: remedy.into() };
            Err(BundleError::new(format!("{path}: {message}"), problem))
        };
        match entry.kind {
            FileKind::File => {}
            FileKind::Outside => {
                let message = "the symbolic link leaves the bundle, or leads nowhere";
                return refuse(message.to_owned(), "copy the file into the bundle");
            }
            FileKind::Folder | FileKind::Other => {
                let message = "not a file".to_owned();
                self.skip(&path, None, message, "move it out of the bundle");
                return Ok(None);
            }
        }
        let limit = self.limits.file_bytes;
        let bytes = match self.tree.read(&path, limit) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.skip(&path, None, io_error_text(&error), "make the file readable");
                return Ok(None);
            }
        };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
            return refuse(format!("the file has more than {limit} bytes"), "split the file");
        }
        let mut documents = mainstay_yaml::documents(&bytes, &decode::options());
        let mut document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => {
                let line = Some(error.line);
                let message = format!("the file cannot be decoded: {}", error.fault);
                self.skip(&path, line, message, "correct the file");
                return Ok(None);
            }
            None => {
                let message = "the file is empty".to_owned();
                self.skip(&path, None, message, "remove the file");
                return Ok(None);
            }
        };
        if let Some(Ok(second)) = documents.next()
            && !second.value.is_null()
        {
            let message =
                "there is a second document, and only the first of a file counts".to_owned();
            self.skip(&path, Some(second.line), message, "write each object to its own file");
        }
        let repeated = decode::repeated(&mut document, &bytes);
        self.repeated.extend(decode::lost_values(&path, &repeated));
        Ok(Some((document, bytes)))
    }

    /// The objects, and the position of the ClusterServiceVersion.
    fn manifests(&mut self) -> Result<(Vec<Manifest>, usize), BundleError> {
        const FOLDER: &str = "manifests";
        let mut manifests: Vec<Manifest> = Vec::new();
        let mut csv = None;
        for entry in self.files(FOLDER)? {
            if entry.kind == FileKind::Folder || entry.name.starts_with('.') {
                continue;
            }
            let Some((document, source)) = self.first_document(FOLDER, &entry)? else { continue };
            let path = format!("{FOLDER}/{}", entry.name);
            let line = document.line;
            let manifest = Manifest::new(path.clone(), line, document.value, source);
            if manifest.kind().is_empty() || manifest.api_version().matches('/').count() > 1 {
                let message = "the file holds no object: kind is missing".to_owned();
                self.skip(&path, Some(line), message, "give it apiVersion and kind");
                continue;
            }
            if manifest.kind() == "ClusterServiceVersion" {
                if csv.is_some() {
                    let message = "only the first ClusterServiceVersion counts".to_owned();
                    self.skip(&path, Some(line), message, "leave one in the bundle");
                    continue;
                }
                csv = Some(manifests.len());
            }
            manifests.push(manifest);
        }
        let missing = |message: &str, remedy: &'static str| {
            let problem = BundleProblem {
                file: FOLDER.to_owned(),
                line: None,
                message: message.to_owned(),
                remedy: remedy.into(),
            };
            BundleError::new(message, problem)
        };
        if manifests.is_empty() {
            return Err(missing("no bundle objects found", "put the operator's objects there"));
        }
        if let Some(at) = csv {
            CsvManifest::new(&manifests[at]).check_type_and_metadata()?;
        }
        bundle::check_crds(&manifests)?;
        let Some(csv) = csv else {
            return Err(missing("no csv in bundle", "put a ClusterServiceVersion there"));
        };
        let view = CsvManifest::new(&manifests[csv]);
        let before = format!("error checking provided apis in bundle {}: ", view.name());
        bundle::check_owned(&manifests, view).map_err(|error| error.with_prefix(&before))?;
        Ok((manifests, csv))
    }

    fn metadata(&mut self, manifests: Vec<Manifest>, csv: usize) -> Result<Bundle, BundleError> {
        const FOLDER: &str = "metadata";
        let mut annotations: Option<Annotations> = None;
        let mut dependencies = Vec::new();
        let mut properties = Vec::new();
        for entry in self.files(FOLDER)? {
            let Some((document, source)) = self.first_document(FOLDER, &entry)? else { continue };
            let path = format!("{FOLDER}/{}", entry.name);
            if annotations.is_none() {
                annotations = metadata::annotations(&document, &path);
            }
            if dependencies.is_empty() {
                dependencies = metadata::dependencies(&document, &source, &path);
            }
            if properties.is_empty() {
                properties = metadata::properties(&document, &source, &path);
            }
        }
        let Some(annotations) = annotations else {
            let message = "Could not find annotations file".to_owned();
            let problem = BundleProblem {
                file: FOLDER.to_owned(),
                line: None,
                message: message.clone(),
                remedy: "write annotations.yaml with package, channels and default channel".into(),
            };
            return Err(BundleError::new(message, problem));
        };
        Ok(Bundle {
            manifests,
            csv,
            annotations,
            dependencies,
            properties,
            skipped_content: Vec::new(),
            repeated: Vec::new(),
        })
    }
}
