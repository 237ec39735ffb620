//! Loading of a tree of files into a catalog.
//!
//! As many threads as there are cores read and parse documents, down to the facts that the model
//! needs. The order of files and lines is restored before the checks, so that catalogs, digests and
//! errors do not depend on the number of cores.

use crate::{
    Declared,
    ignored::{self, Ignored, TooSlow},
    model::Catalog,
    problem::{LoadError, Problem},
    read::FileRead,
    rule::Rule,
    source::{Folder, Source, SourceFile, TreeError, plain},
    work::read_all,
};
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
    /// their stored content could not be parsed again; so more counts with [`Keep::Facts`] only.
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
pub enum Keep {
    /// All content, compressed, with a digest: for catalogs that are served.
    #[default]
    All,
    /// All content, compressed, without a digest: for catalogs that are written once.
    Light,
    /// No content: for catalogs that are only checked or listed. [`Blob::json`](crate::Blob::json)
    /// and the functions that use it return an error.
    Facts,
}

/// Options for loading a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Limits on the input.
    pub limits: Limits,
    /// How many threads parse; by default as many as there are cores.
    pub threads: Option<NonZeroUsize>,
    /// How much content of the documents is stored.
    pub keep: Keep,
}

impl LoadOptions {
    /// The maximum nesting of values. Stored content must be parsable again.
    pub(crate) fn depth(&self) -> usize {
        let usual = Limits::default().depth;
        if self.keep == Keep::Facts { self.limits.depth } else { self.limits.depth.min(usual) }
    }
}

impl Catalog {
    /// Loads the catalog in a folder. Blocks on files and uses the CPU: not for async threads.
    ///
    /// # Errors
    /// All problems of the content, each with its place. Nothing is loaded then.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Arc<Self>, LoadError> {
        Self::load_from(&Folder::new(path), options)
    }

    /// Loads the catalog in any tree of files.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn load_from(source: &dyn Source, options: &LoadOptions) -> Result<Arc<Self>, LoadError> {
        let read = read(source, options, false)?;
        read.declared.judge(Some((source, options)), read.problems, read.complete, read.upstream)
    }
}

/// The content of a tree of files.
pub(crate) struct TreeRead {
    pub(crate) declared: Declared,
    pub(crate) problems: Vec<Problem>,
    /// Whether every document was read.
    pub(crate) complete: bool,
    /// The message with which upstream stops reading.
    pub(crate) upstream: Option<String>,
    /// The lint problems of the files, if a lint is requested.
    pub(crate) noted: Vec<Problem>,
}

/// Reads all documents of a tree, with lint problems if `looks` is set.
pub(crate) fn read(
    source: &dyn Source,
    options: &LoadOptions,
    looks: bool,
) -> Result<TreeRead, LoadError> {
    let name = source.name();
    let fail = |message: String, remedy: &'static str, upstream: Option<String>| {
        LoadError::new(
            vec![Problem::of_file(Rule::NoCatalog, name.as_str(), message, remedy)],
            upstream,
        )
    };
    let mut files = source.files().map_err(|error| {
        let upstream = match &error {
            TreeError::NoFolder(error) => format!("stat {name}: {}", plain(error)),
            error => format!("{} {error}", mainstay_gocompat::quote(&name)),
        };
        fail(error.to_string(), "give the path of a folder with a catalog", Some(upstream))
    })?;
    limit(&files, options).map_err(|error| {
        fail(error.to_string(), "put the catalog into a folder of its own", None)
    })?;
    // Sorted by path component, in the order of upstream's walk.
    files.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let (mut problems, mut noted) = (Vec::new(), Vec::new());
    let files = without_ignored(source, files, options, &mut problems, &mut noted);
    let mut complete = problems.is_empty();
    let mut declared = Declared::default();
    let mut upstream = None;
    for read in read_all(source, &files, options, looks) {
        let FileRead { blobs, problems: found, lost, stop, noted: more, .. } = read;
        problems.extend(found);
        noted.extend(more);
        complete &= !lost;
        if upstream.is_none() {
            upstream = stop;
        }
        for blob in blobs {
            declared.add(blob);
        }
    }
    Ok(TreeRead { declared, problems, complete, upstream, noted })
}

/// The files of a catalog in the order of their paths, without `.indexignore` files and the files
/// that they ignore.
///
/// # Errors
/// If the tree does not exist, has too many files, or patterns cannot be read.
pub fn catalog_files(
    source: &dyn Source,
    options: &LoadOptions,
) -> Result<Vec<SourceFile>, TreeError> {
    let mut files = source.files()?;
    limit(&files, options)?;
    files.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let (mut problems, mut noted) = (Vec::new(), Vec::new());
    let mut files = without_ignored(source, files, options, &mut problems, &mut noted);
    if let Some(Problem { file, message, .. }) = problems.into_iter().next() {
        return Err(TreeError::Patterns { file, message });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Refuses more files than the limit.
fn limit(files: &[SourceFile], options: &LoadOptions) -> Result<(), TreeError> {
    let (found, limit) = (files.len(), options.limits.files);
    if found > limit { Err(TreeError::TooManyFiles { found, limit }) } else { Ok(()) }
}

/// The files that are not ignored. Faults of ignored files do not count.
fn without_ignored(
    source: &dyn Source,
    files: Vec<SourceFile>,
    options: &LoadOptions,
    problems: &mut Vec<Problem>,
    noted: &mut Vec<Problem>,
) -> Vec<SourceFile> {
    let is_patterns = |path: &str| path.rsplit('/').next() == Some(ignored::FILE);
    let (patterns, files): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_patterns(&file.path));
    let mut ignored = Ignored::default();
    let mut left = ignored::MOST_BYTES.min(options.limits.file_bytes);
    for file in patterns {
        let read = match file.fault {
            Some((message, remedy)) => Err((message, remedy)),
            None => source.read(&file.path, left).map_err(|error| {
                if error.kind() == io::ErrorKind::FileTooLarge {
                    let limit = ignored::MOST_BYTES.min(options.limits.file_bytes);
                    let message = format!("the patterns of the tree are above {limit} bytes");
                    return (message, "write fewer patterns, for whole folders".into());
                }
                (plain(&error), "make it readable, or remove it".into())
            }),
        };
        left = left.saturating_sub(read.as_ref().map_or(0, |text| text.len() as u64));
        match read.map(String::from_utf8) {
            Ok(Ok(text)) => {
                let marked = text.strip_prefix('\u{feff}');
                ignored.add(&file.path, marked.unwrap_or(&text));
                if marked.is_some() {
                    noted.push(Problem::of_file(
                        Rule::IgnoreFile,
                        file.path,
                        "other tools lose the first pattern: there is a byte-order mark before it",
                        "save the file without it",
                    ));
                }
            }
            Ok(Err(_)) => problems.push(Problem::of_file(
                Rule::IgnoreFile,
                file.path,
                "the patterns are not UTF-8 text",
                "save the file as UTF-8",
            )),
            Err((message, remedy)) => {
                problems.push(Problem::of_file(Rule::IgnoreFile, file.path, message, remedy));
            }
        }
    }
    let mut kept = Vec::with_capacity(files.len());
    for file in files {
        match ignored.ignores(&file.path) {
            Ok(true) => {}
            Ok(false) => kept.push(file),
            Err(TooSlow) => {
                problems.push(Problem::of_file(
                    Rule::AboveLimit,
                    file.path,
                    "the patterns in .indexignore take too long to compare with all files up to this one",
                    "write fewer patterns with several wildcards in a name",
                ));
                break;
            }
        }
    }
    kept
}
