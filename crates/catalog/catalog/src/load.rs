//! Reading a tree of files into a catalog.
//!
//! Documents are read and parsed by as many threads as there are cores, each down to what the model
//! needs; the order of files and lines is restored before anything is judged, so that catalogs,
//! digests and errors do not depend on the number of cores.

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

/// Bounds on what a catalog may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of one scalar, such as one base64 manifest.
    pub scalar_bytes: usize,
    /// How many files there may be.
    pub files: usize,
    /// How deep values may nest. Above 127 documents are read on large stacks; what is kept of
    /// documents could not be looked at again, so more counts with [`Keep::Facts`] only. Upstream reads
    /// [`Limits::DEEPEST`].
    pub depth: usize,
}

impl Limits {
    /// The nesting that upstream's readers allow.
    pub const DEEPEST: usize = 10_000;
}

impl Default for Limits {
    /// Several times what published catalogs need: 512 MiB, 16 MiB, 100,000 files, 127
    /// levels.
    fn default() -> Self {
        Self { file_bytes: 512 << 20, scalar_bytes: 16 << 20, files: 100_000, depth: 127 }
    }
}

/// What a catalog keeps of its documents, beside what the index is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All of their content, compressed, and a digest over it: for catalogs that stay.
    #[default]
    All,
    /// All of their content, compressed, but no digest: for those that are written once and let
    /// go.
    Light,
    /// Nothing: for those that are judged or listed. [`Blob::json`](crate::Blob::json), and what
    /// builds on it, is an error then.
    Facts,
}

/// How to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Bounds on the input.
    pub limits: Limits,
    /// How many threads may parse; as many as there are cores when not said.
    pub threads: Option<NonZeroUsize>,
    /// What is kept of the documents.
    pub keep: Keep,
}

impl LoadOptions {
    /// How deep values may nest: what is kept must be fit to be looked at again.
    pub(crate) fn depth(&self) -> usize {
        let usual = Limits::default().depth;
        if self.keep == Keep::Facts { self.limits.depth } else { self.limits.depth.min(usual) }
    }
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
        let read = read(source, options, false)?;
        read.declared.judge(Some((source, options)), read.problems, read.complete, read.upstream)
    }
}

/// What a tree of files gave.
pub(crate) struct TreeRead {
    pub(crate) declared: Declared,
    pub(crate) problems: Vec<Problem>,
    /// No document was lost.
    pub(crate) complete: bool,
    /// Where upstream stops reading.
    pub(crate) upstream: Option<String>,
    /// What the files show beside that, if somebody asks.
    pub(crate) noted: Vec<Problem>,
}

/// Reads all documents of a tree. `looks` asks for what is noted.
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
    // Folder by folder: the order in which upstream comes across them.
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

/// The files of a tree that a catalog is read from, in the order of their paths: those that
/// `.indexignore` leaves out are missing, and so is `.indexignore` itself.
///
/// # Errors
/// When there is no such tree, there are too many files, or patterns cannot be read.
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

/// Refuses more files than there may be.
fn limit(files: &[SourceFile], options: &LoadOptions) -> Result<(), TreeError> {
    let (found, limit) = (files.len(), options.limits.files);
    if found > limit { Err(TreeError::TooManyFiles { found, limit }) } else { Ok(()) }
}

/// The files that belong to the catalog. Faults count only for those.
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
