//! Archives: the names in them, and where their content lies in the file.

use super::{Content, LayoutError, Parts};
use crate::{
    compress::{self, Compression},
    store::Store,
    tar::{Kind, Reader},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// How large an archive may be when it is not compressed.
const LARGEST: u64 = 64 << 30;
/// How many entries it may have, and how long their names may be together.
const MOST: usize = 100_000;
const NAMES: usize = 16 << 20;
/// How many links may lead to each other.
const HOPS: usize = 8;

enum Part {
    File { at: u64, size: u64 },
    Link(String),
}

/// An archive whose parts are read where they lie; a compressed one is opened to a file first, which
/// is gone afterwards.
pub(super) struct Archive {
    path: PathBuf,
    file: File,
    parts: BTreeMap<String, Part>,
}

impl Archive {
    pub(super) fn open(store: &Store, path: &Path) -> Result<Self, LayoutError> {
        let failed =
            |source| LayoutError::Io { what: "cannot read", path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let opened = compress::open(BufReader::new(&file)).map_err(failed)?;
        if opened.compression() != Compression::None {
            let mut plain = spool(store)?;
            let length = io::copy(&mut opened.take(LARGEST + 1), &mut plain).map_err(failed)?;
            if length > LARGEST {
                return Err(too_many(path, "bytes", LARGEST));
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

/// A file without a name.
fn spool(store: &Store) -> Result<File, LayoutError> {
    let writer = store.writer(LARGEST)?;
    let file = writer.file().map_err(|source| LayoutError::Io {
        what: "cannot open a file in",
        path: store.root().to_owned(),
        source,
    })?;
    // Its name goes with the writer.
    Ok(file)
}

fn list(path: &Path, file: &File) -> Result<BTreeMap<String, Part>, LayoutError> {
    let wrong = |source| LayoutError::Archive { path: path.to_owned(), source };
    let mut reader = Reader::new(BufReader::new(file));
    let (mut parts, mut names) = (BTreeMap::new(), 0);
    while let Some(entry) = reader.next().map_err(wrong)? {
        // Names that are no text are nothing a layout has.
        let Ok(name) = String::from_utf8(entry.name) else { continue };
        names += name.len() + entry.target.len();
        if parts.len() >= MOST {
            return Err(too_many(path, "entries", MOST as u64));
        }
        if names > NAMES {
            return Err(too_many(path, "bytes of names", NAMES as u64));
        }
        let name = plain(&name);
        let part = match entry.kind {
            Kind::File => Part::File { at: reader.position(), size: entry.size },
            Kind::Symlink | Kind::Hardlink => {
                let Ok(target) = String::from_utf8(entry.target) else { continue };
                // Only within the archive: a name that is not in it leads nowhere.
                let folder = match entry.kind {
                    Kind::Symlink => name.rsplit_once('/').map_or("", |(folder, _)| folder),
                    _ => "",
                };
                Part::Link(plain(&format!("{folder}/{target}")))
            }
            Kind::Folder | Kind::Other(_) => continue,
        };
        parts.insert(name, part);
    }
    Ok(parts)
}

/// A name without `.`, `..` and slashes that mean nothing.
fn plain(name: &str) -> String {
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
        let mut name = plain(name);
        for _ in 0..HOPS {
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
