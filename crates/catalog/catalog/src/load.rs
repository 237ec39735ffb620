//! Loading of a tree of files into a catalog.
//!
//! As many threads as there are cores read and parse documents, down to the facts that the model
//! needs. The order of files and lines is restored before the checks, so that catalogs, digests and
//! errors do not depend on the number of cores.

use crate::{
    CatalogDocuments,
    indexignore::{self, IgnorePatterns, PatternLimitExceeded},
    model::Catalog,
    parallel_read::read_files,
    problem::{CatalogProblem, LoadError},
    read::FileContent,
    rule::CatalogRule,
    source::{FileSource, FolderSource, SourceFile, TreeError},
};
use mainstay_gocompat::io_error_text;
use std::{io, num::NonZeroUsize, path::Path, sync::Arc};

/// Limits on the size of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a file, in bytes.
    pub file_bytes: u64,
    /// The maximum size of a scalar, such as a base64 manifest, in bytes.
    pub scalar_bytes: usize,
    /// The maximum number of files.
    pub files: usize,
    /// The maximum nesting of values. Above 127 levels, documents are parsed on large stacks, and
    /// their stored content could not be parsed again; so more counts with [`KeptContent::Facts`] only.
    /// Upstream reads [`Limits::DEEPEST`].
    pub depth: usize,
}

impl Limits {
    /// The nesting that upstream's parsers allow.
    pub const DEEPEST: usize = 10_000;
}

impl Default for Limits {
    /// Several times what published catalogs need: 512 MiB, 16 MiB, 100,000 files, 127 levels.
    fn default() -> Self {
        Self { file_bytes: 512 << 20, scalar_bytes: 16 << 20, files: 100_000, depth: 127 }
    }
}

/// How much content of its documents a catalog stores beside the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptContent {
    /// All content, compressed, with a digest: for catalogs that are served.
    #[default]
    All,
    /// All content, compressed, without a digest: for catalogs that are written once.
    Light,
    /// No content: for catalogs that are only checked or listed. [`Blob::json`](crate::Blob::json)
    /// and the functions that use it return an error.
    Facts,
}

/// What a document must be to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentRules {
    /// What opm requires: the shape that its schema has. For documents that make an index.
    #[default]
    Catalog,
    /// What catalogd requires: an object with a schema, and texts as schema, package and name. For
    /// documents that are served as they are ([`CatalogDocuments::read`]). No index can be made of
    /// them. Only files whose names end in `.json`, `.yaml` or `.yml` are read.
    Meta,
}

impl DocumentRules {
    /// Whether a file with that path is read, as far as its name says.
    fn reads(self, path: &str) -> bool {
        const ENDINGS: [&str; 3] = [".json", ".yaml", ".yml"];
        match self {
            Self::Catalog => true,
            Self::Meta => {
                let name = path.rsplit('/').next().unwrap_or_default();
                name == indexignore::FILE || ENDINGS.iter().any(|ending| name.ends_with(ending))
            }
        }
    }
}

/// Options for loading a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Limits on the input.
    pub limits: Limits,
    /// How many threads parse; by default as many as there are cores.
    pub threads: Option<NonZeroUsize>,
    /// How much content of the documents is stored.
    pub keep: KeptContent,
    /// What a document must be.
    pub rules: DocumentRules,
}

impl LoadOptions {
    /// The maximum nesting of values. Stored content must be parsable again.
    pub(crate) fn depth(&self) -> usize {
        let usual = Limits::default().depth;
        if self.keep == KeptContent::Facts {
            self.limits.depth
        } else {
            self.limits.depth.min(usual)
        }
    }
}

impl Catalog {
    /// Loads the catalog in a folder. Blocks on files and uses the CPU: not for async threads.
    ///
    /// # Errors
    /// All problems of the content, each with its place. Nothing is loaded then.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Arc<Self>, LoadError> {
        Self::load_from(&FolderSource::new(path), options)
    }

    /// Loads the catalog in any tree of files.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn load_from(
        source: &dyn FileSource,
        options: &LoadOptions,
    ) -> Result<Arc<Self>, LoadError> {
        let read = read(source, options, false)?;
        read.declared.into_catalog(
            Some((source, options)),
            read.problems,
            read.complete,
            read.upstream,
        )
    }
}

/// The content of a tree of files.
pub(crate) struct TreeContent {
    pub(crate) declared: CatalogDocuments,
    pub(crate) problems: Vec<CatalogProblem>,
    /// Whether every document was read.
    pub(crate) complete: bool,
    /// The message with which upstream stops reading.
    pub(crate) upstream: Option<String>,
    /// The lint problems of the files, if a lint is requested.
    pub(crate) lint_problems: Vec<CatalogProblem>,
}

/// Reads all documents of a tree, with lint problems if `lint` is set.
pub(crate) fn read(
    source: &dyn FileSource,
    options: &LoadOptions,
    lint: bool,
) -> Result<TreeContent, LoadError> {
    let name = source.name();
    let fail = |message: String, remedy: &'static str, upstream: Option<String>| {
        LoadError::new(
            vec![CatalogProblem::of_file(CatalogRule::NoCatalog, name.as_str(), message, remedy)],
            upstream,
        )
    };
    let mut files = source.files().map_err(|error| {
        let upstream = match &error {
            TreeError::NoFolder(error) => format!("stat {name}: {}", io_error_text(error)),
            error => format!("{} {error}", mainstay_gocompat::quote(&name)),
        };
        fail(error.to_string(), "give the path of a folder with a catalog", Some(upstream))
    })?;
    files.retain(|file| options.rules.reads(&file.path));
    check_file_count(&files, options).map_err(|error| {
        fail(error.to_string(), "put the catalog into a folder of its own", None)
    })?;
    // Sorted by path component, in the order of upstream's walk.
    files.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let (mut problems, mut lint_problems) = (Vec::new(), Vec::new());
    let files = without_ignored(source, files, options, &mut problems, &mut lint_problems);
    let mut complete = problems.is_empty();
    let mut declared = CatalogDocuments::default();
    let mut upstream = None;
    for read in read_files(source, &files, options, lint) {
        let FileContent { blobs, problems: found, lost, stop, lint_problems: more, .. } = read;
        problems.extend(found);
        lint_problems.extend(more);
        complete &= !lost;
        if upstream.is_none() {
            upstream = stop;
        }
        for blob in blobs {
            declared.add(blob);
        }
    }
    Ok(TreeContent { declared, problems, complete, upstream, lint_problems })
}

/// The files of a catalog in the order of their paths, without `.indexignore` files and the files
/// that they ignore.
///
/// # Errors
/// If the tree does not exist, has too many files, or patterns cannot be read.
pub fn catalog_files(
    source: &dyn FileSource,
    options: &LoadOptions,
) -> Result<Vec<SourceFile>, TreeError> {
    let mut files = source.files()?;
    check_file_count(&files, options)?;
    files.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let (mut problems, mut lint_problems) = (Vec::new(), Vec::new());
    let mut files = without_ignored(source, files, options, &mut problems, &mut lint_problems);
    if let Some(CatalogProblem { file, message, .. }) = problems.into_iter().next() {
        return Err(TreeError::Patterns { file, message });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Refuses more files than the limit.
fn check_file_count(files: &[SourceFile], options: &LoadOptions) -> Result<(), TreeError> {
    let (found, limit) = (files.len(), options.limits.files);
    if found > limit { Err(TreeError::TooManyFiles { found, limit }) } else { Ok(()) }
}

/// The files that are not ignored. Faults of ignored files do not count.
fn without_ignored(
    source: &dyn FileSource,
    files: Vec<SourceFile>,
    options: &LoadOptions,
    problems: &mut Vec<CatalogProblem>,
    lint_problems: &mut Vec<CatalogProblem>,
) -> Vec<SourceFile> {
    let is_patterns = |path: &str| path.rsplit('/').next() == Some(indexignore::FILE);
    let (patterns, files): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_patterns(&file.path));
    let mut ignored = IgnorePatterns::default();
    let mut remaining = indexignore::MAX_BYTES.min(options.limits.file_bytes);
    for file in patterns {
        let read = match file.fault {
            Some((message, remedy)) => Err((message, remedy)),
            None => source.read(&file.path, remaining).map_err(|error| {
                if error.kind() == io::ErrorKind::FileTooLarge {
                    let limit = indexignore::MAX_BYTES.min(options.limits.file_bytes);
                    let message = format!("the patterns of the tree are above {limit} bytes");
                    return (message, "write fewer patterns, for whole folders".into());
                }
                (io_error_text(&error), "make it readable, or remove it".into())
            }),
        };
        remaining = remaining.saturating_sub(read.as_ref().map_or(0, |text| text.len() as u64));
        match read.map(String::from_utf8) {
            Ok(Ok(text)) => {
                let without_mark = text.strip_prefix('\u{feff}');
                ignored.add(&file.path, without_mark.unwrap_or(&text));
                if without_mark.is_some() {
                    lint_problems.push(CatalogProblem::of_file(
                        CatalogRule::IgnoreFile,
                        file.path,
                        "other tools lose the first pattern: there is a byte-order mark before it",
                        "save the file without it",
                    ));
                }
            }
            Ok(Err(_)) => problems.push(CatalogProblem::of_file(
                CatalogRule::IgnoreFile,
                file.path,
                "the patterns are not UTF-8 text",
                "save the file as UTF-8",
            )),
            Err((message, remedy)) => {
                problems.push(CatalogProblem::of_file(
                    CatalogRule::IgnoreFile,
                    file.path,
                    message,
                    remedy,
                ));
            }
        }
    }
    let mut stored = Vec::with_capacity(files.len());
    for file in files {
        match ignored.ignores(&file.path) {
            Ok(true) => {}
            Ok(false) => stored.push(file),
            Err(PatternLimitExceeded) => {
                problems.push(CatalogProblem::of_file(
                    CatalogRule::AboveLimit,
                    file.path,
                    "the patterns in .indexignore take too long to compare with all files up to this one",
                    "write fewer patterns with several wildcards in a name",
                ));
                break;
            }
        }
    }
    stored
}
