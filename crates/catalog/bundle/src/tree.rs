//! File trees of bundles: a folder of the file system, or files in memory.
//!
//! A tree is untrusted. A link may point anywhere, a file may be a pipe that blocks the reader, and
//! a file may grow during the read. So links are resolved and must stay below the root, only
//! regular files are opened, and every read has a limit.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The kind of an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file, or a link to one inside the tree.
    File,
    /// A folder.
    Folder,
    /// A link that leaves the tree, or leads nowhere.
    Outside,
    /// A device, a pipe or a link to a folder: it cannot be read as a file.
    Other,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The last part of the path.
    pub name: String,
    /// The kind.
    pub kind: FileKind,
}

/// A tree of files.
pub trait FileTree {
    /// The entries of a folder below the root (`""`: the root itself), in any order.
    fn list(&self, folder: &str) -> io::Result<Vec<FileEntry>>;

    /// The bytes of one file, at most `limit` + 1.
    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>>;
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct BundleFolder {
    root: PathBuf,
}

impl BundleFolder {
    /// The folder at `root`; nothing is read yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        let (Ok(root), Ok(target)) = (fs::canonicalize(&self.root), fs::canonicalize(path)) else {
            return FileKind::Outside;
        };
        match fs::metadata(&target) {
            Ok(_)
                if !target.starts_with(&root)
                    && !mainstay_fault::is_on("links-leave-the-bundle") =>
            {
                FileKind::Outside
            }
            Ok(found) if found.is_file() => FileKind::File,
            _ => FileKind::Other,
        }
    }
}

impl FileTree for BundleFolder {
    fn list(&self, folder: &str) -> io::Result<Vec<FileEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_dir() => FileKind::Folder,
                kind if kind.is_file() => FileKind::File,
                kind if kind.is_symlink() => self.kind_of_link(&entry.path()),
                _ => FileKind::Other,
            };
            // A name that is not UTF-8 cannot be read back; no upstream tool writes one.
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(FileEntry { name, kind });
        }
        Ok(entries)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let file = File::open(self.root.join(path))?;
        let length = file.metadata()?.len().min(limit);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Files in memory: the content of an archive, or of a test.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for MemoryFiles {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        Self { files: files.into_iter().map(|(path, bytes)| (path.into(), bytes.into())).collect() }
    }
}

impl FileTree for MemoryFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<FileEntry>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries: Vec<FileEntry> = Vec::new();
        for path in self.files.keys() {
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, FileKind::Folder),
                None => (rest, FileKind::File),
            };
            if entries.iter().all(|entry| entry.name != name) {
                entries.push(FileEntry { name: name.to_owned(), kind });
            }
        }
        if entries.is_empty() && !folder.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(entries)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let end = usize::try_from(limit.saturating_add(1)).unwrap_or(usize::MAX);
        Ok(bytes[..bytes.len().min(end)].to_vec())
    }
}

/// Whether a tree is a bundle: it has the folders `manifests` and `metadata`. Callers take any
/// other tree as a catalog.
pub fn is_bundle(tree: &dyn FileTree) -> bool {
    let has = |entries: &[FileEntry], name: &str| {
        entries.iter().any(|entry| entry.name == name && entry.kind == FileKind::Folder)
    };
    tree.list("").is_ok_and(|found| has(&found, "manifests") && has(&found, "metadata"))
}
