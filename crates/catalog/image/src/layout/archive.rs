//! Tar archives with images: an index from names to the offsets of their content in the file.

use super::{Content, LayoutError, Parts};
use crate::{
    compress::{self, Compression},
    store::ImageStore,
    tar::{TarEntryKind, TarReader},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// The maximum size of an uncompressed archive, in bytes.
const MAX_SIZE: u64 = 64 << 30;
/// How many entries an archive may have, and the maximum length of their names together in bytes.
const MAX_ENTRIES: usize = 100_000;
const MAX_NAME_BYTES: usize = 16 << 20;
/// How many links may refer to each other.
const MAX_LINKS: usize = 8;

enum Part {
    File { at: u64, size: u64 },
    Link(String),
}

/// An archive whose parts are read in place. A compressed archive is decompressed to a temporary
/// file first.
pub(super) struct Archive {
    path: PathBuf,
    file: File,
    parts: BTreeMap<String, Part>,
}

impl Archive {
    pub(super) fn open(store: &ImageStore, path: &Path) -> Result<Self, LayoutError> {
        let failed =
            |source| LayoutError::Io { what: "cannot read", path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let opened = compress::open(BufReader::new(&file)).map_err(failed)?;
        if opened.compression() != Compression::None {
            let mut plain = spool(store)?;
            let length = io::copy(&mut opened.take(MAX_SIZE + 1), &mut plain).map_err(failed)?;
            if length > MAX_SIZE {
                return Err(too_many(path, "bytes", MAX_SIZE));
            }
            plain.flush().map_err(failed)?;
            file = plain;
        }
        file.rewind().map_err(failed)?;
        let parts = list(path, &file)?;
        Ok(Self { path: path.to_owned(), file, parts })
    }
}

fn too_many(path: &Path, what: &'static str, limit: u64) -> LayoutError {
    LayoutError::TooMany { path: path.to_owned(), what, limit }
}

/// A temporary file without a name.
fn spool(store: &ImageStore) -> Result<File, LayoutError> {
    let writer = store.writer(MAX_SIZE)?;
    let file = writer.file().map_err(|source| LayoutError::Io {
        what: "cannot open a file in",
        path: store.root().to_owned(),
        source,
    })?;
    // The writer removes the name when it is dropped.
    Ok(file)
}

fn list(path: &Path, file: &File) -> Result<BTreeMap<String, Part>, LayoutError> {
    let wrong = |source| LayoutError::Archive { path: path.to_owned(), source };
    let mut reader = TarReader::new(BufReader::new(file));
    let (mut parts, mut names) = (BTreeMap::new(), 0);
    while let Some(entry) = reader.next().map_err(wrong)? {
        // A layout has only names that are UTF-8 text.
        let Ok(name) = String::from_utf8(entry.name) else { continue };
        names += name.len() + entry.target.len();
        if parts.len() >= MAX_ENTRIES {
            return Err(too_many(path, "entries", MAX_ENTRIES as u64));
        }
        if names > MAX_NAME_BYTES {
            return Err(too_many(path, "bytes of names", MAX_NAME_BYTES as u64));
        }
        let name = normalize(&name);
        let part = match entry.kind {
            TarEntryKind::File => Part::File { at: reader.position(), size: entry.size },
            TarEntryKind::Symlink | TarEntryKind::Hardlink => {
                let Ok(target) = String::from_utf8(entry.target) else { continue };
                // Links are resolved within the archive: other targets do not exist.
                let folder = match entry.kind {
                    TarEntryKind::Symlink => name.rsplit_once('/').map_or("", |(folder, _)| folder),
                    _ => "",
                };
                Part::Link(normalize(&format!("{folder}/{target}")))
            }
            TarEntryKind::Folder | TarEntryKind::Other(_) => continue,
        };
        parts.insert(name, part);
    }
    Ok(parts)
}

/// A name without `.`, `..` and superfluous slashes.
fn normalize(name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

impl Parts for Archive {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Content<'_>>, LayoutError> {
        let mut name = normalize(name);
        for _ in 0..MAX_LINKS {
            match self.parts.get(&name) {
                None => return Ok(None),
                Some(Part::Link(target)) => name.clone_from(target),
                Some(Part::File { at, size }) => {
                    let mut file = &self.file;
                    file.seek(SeekFrom::Start(*at)).map_err(|source| LayoutError::Io {
                        what: "cannot read",
                        path: self.path.clone(),
                        source,
                    })?;
                    return Ok(Some((Box::new(file.take(*size)), *size)));
                }
            }
        }
        Ok(None)
    }
}
