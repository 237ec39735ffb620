//! Sources of catalog files: folders, and files in memory.
//!
//! A folder is untrusted. A link may point anywhere, a name may be a pipe without a writer, and a
//! file may grow while it is read. So links are resolved and must stay below the root, only regular
//! files are opened, and no read exceeds its limit.

use mainstay_gocompat::io_error_text;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The maximum nesting of folders.
const MAX_DEPTH: usize = 64;

/// A file of a tree, readable or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path below the root, with `/` between the parts.
    pub path: String,
    /// Why the file must not be read, and the remedy.
    pub fault: Option<(String, Cow<'static, str>)>,
    /// Upstream's error, if upstream does not read the file.
    pub upstream: Option<String>,
}

/// Why a tree of files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The folder does not exist, or cannot be read.
    #[error("cannot read the catalog folder: {}", io_error_text(.0))]
    NoFolder(io::Error),
    /// The path is not a folder.
    #[error("is not a directory")]
    NotAFolder,
    /// There are too many files.
    #[error("there are {found} files, above the limit of {limit}")]
    TooManyFiles {
        /// How many files the tree has.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// An `.indexignore` file cannot be read.
    #[error("{file}: {message}")]
    Patterns {
        /// The file.
        file: Arc<str>,
        /// Why the file cannot be read.
        message: String,
    },
}

/// A tree of files.
pub trait FileSource: Sync {
    /// The name of the tree in messages.
    fn name(&self) -> String;

    /// All files below the root, in the order of their paths.
    ///
    /// # Errors
    /// If the tree does not exist.
    fn files(&self) -> Result<Vec<SourceFile>, TreeError>;

    /// The bytes of one file.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] for a file of more than `limit` bytes.
    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path, limit)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// A reader for one file. A file that is already longer than `limit` bytes is refused with
    /// [`io::ErrorKind::FileTooLarge`]; the caller must stop reading a file that grows.
    fn open(&self, path: &str, limit: u64) -> io::Result<Box<dyn Read + Send + '_>>;
}

/// A folder of the file system, as a source.
#[derive(Clone, Debug)]
pub struct FolderSource {
    root: PathBuf,
}

impl FolderSource {
    /// The folder at `root`; this reads nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn walk(&self, root: &Path, below: &str, depth: usize, found: &mut Vec<SourceFile>) {
        let faulty = |path: &str, message: String, remedy: &'static str| SourceFile {
            path: path.to_owned(),
            upstream: match message.split_once(": ") {
                Some((TO_FOLDER, why)) => {
                    Some(format!("read {}/{path}: {why}", self.root.display()))
                }
                Some((_, why)) => Some(format!("open {path}: {why}")),
                None => None,
            },
            fault: Some((message, remedy.into())),
        };
        let sound = |path| SourceFile { path, fault: None, upstream: None };
        let listed =
            fs::read_dir(root.join(below)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match listed {
            Ok(entries) if depth < MAX_DEPTH => entries,
            Ok(_) => {
                let message = format!("folders are nested deeper than {MAX_DEPTH} levels");
                found.push(faulty(below, message, "flatten the folder"));
                return;
            }
            Err(error) => {
                let message = format!("cannot list the folder: {}", io_error_text(&error));
                found.push(faulty(below, message, READABLE));
                return;
            }
        };
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = if below.is_empty() { name.into_owned() } else { format!("{below}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.walk(root, &path, depth + 1, found),
                Ok(kind) if kind.is_symlink() => found.push(match link_fault(root, &path) {
                    None => sound(path),
                    Some((message, remedy)) => faulty(&path, message, remedy),
                }),
                Ok(kind) if kind.is_file() => found.push(sound(path)),
                Ok(_) => {
                    let message = "neither a file nor a folder".to_owned();
                    found.push(faulty(&path, message, "remove it, or list it in .indexignore"));
                }
                Err(error) => found.push(faulty(&path, io_error_text(&error), READABLE)),
            }
        }
    }
}

/// The beginning of the message about a link to a folder.
const TO_FOLDER: &str = "the symbolic link points to a folder";
const READABLE: &str = "make it readable for the account that runs this process";

/// Why a symbolic link must not be followed.
fn link_fault(root: &Path, path: &str) -> Option<(String, &'static str)> {
    let target = match fs::canonicalize(root.join(path)) {
        Ok(target) => target,
        Err(error) => {
            let message =
                format!("the symbolic link cannot be followed: {}", io_error_text(&error));
            return Some((message, "correct or remove the link"));
        }
    };
    if !target.starts_with(root) && !mainstay_fault::is_on("links-leave-the-catalog") {
        let message = format!(
            "the symbolic link leaves the catalog folder (it points to {})",
            target.display()
        );
        return Some((message, "copy the file into the folder"));
    }
    match fs::metadata(&target) {
        Ok(kind) if kind.is_file() => None,
        Ok(kind) if kind.is_dir() => {
            let message = format!("{TO_FOLDER}: is a directory");
            Some((message, "copy the folder, or list the link in .indexignore"))
        }
        Ok(_) => Some((
            "the symbolic link points to neither a file nor a folder".to_owned(),
            "remove the link",
        )),
        Err(error) => Some((io_error_text(&error), READABLE)),
    }
}

impl FileSource for FolderSource {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn files(&self) -> Result<Vec<SourceFile>, TreeError> {
        let root = fs::canonicalize(&self.root).map_err(TreeError::NoFolder)?;
        if !root.is_dir() {
            return Err(TreeError::NotAFolder);
        }
        let mut found = Vec::new();
        self.walk(&root, "", 0, &mut found);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn open(&self, path: &str, limit: u64) -> io::Result<Box<dyn Read + Send + '_>> {
        let file = File::open(self.root.join(path))?;
        if file.metadata()?.len() > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Box::new(file))
    }
}

/// Files in memory: the contents of an archive, or of a test.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    files: BTreeMap<String, Vec<u8>>,
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for MemorySource {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        Self { files: files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect() }
    }
}

impl FileSource for MemorySource {
    fn name(&self) -> String {
        "the catalog".to_owned()
    }

    fn files(&self) -> Result<Vec<SourceFile>, TreeError> {
        let file = |path: &String| SourceFile { path: path.clone(), fault: None, upstream: None };
        Ok(self.files.keys().map(file).collect())
    }

    fn open(&self, path: &str, limit: u64) -> io::Result<Box<dyn Read + Send + '_>> {
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Box::new(bytes.as_slice()))
    }
}
