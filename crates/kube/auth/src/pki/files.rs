//! Files that only their owner may read, written whole or not at all.

use super::PkiError;
use mainstay_files::Durability;
use std::fmt::Display;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// How long a file of keys or certificates may be, in bytes.
const LONGEST: u64 = 1 << 20;

/// A folder for keys.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if needed and takes it away from everybody else; that of another user, or a
    /// link, is refused.
    pub(super) fn prepare(folder: &Path) -> Result<Self, PkiError> {
        let failed = |source| PkiError::PrepareFolder { folder: folder.to_owned(), source };
        if let Some(above) = folder.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(failed)?;
        }
        mainstay_files::claim_private_folder(folder).map_err(failed)?;
        Ok(Self(folder.to_owned()))
    }

    /// The text of a file; none if it is not there.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let file = self.0.join(name);
        match mainstay_files::read_text(&file, LONGEST) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Not text at all: what reads it will say that it is damaged.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(String::new())),
            Err(source) => Err(PkiError::Read { file, source }),
        }
    }

    /// Names of files that begin and end so, in order.
    pub(super) fn names(&self, prefix: &str, suffix: &str) -> Result<Vec<String>, PkiError> {
        let failed = |source| PkiError::Read { file: self.0.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            names.extend(
                name.to_str().filter(|name| name.starts_with(prefix)).map(ToOwned::to_owned),
            );
        }
        names.retain(|name| name.ends_with(suffix));
        names.sort();
        Ok(names)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), PkiError> {
        write(&self.0.join(name), text)
    }

    pub(super) fn damaged(&self, name: &str, problem: &impl Display) -> PkiError {
        PkiError::Damaged { file: self.0.join(name), problem: problem.to_string() }
    }
}

/// Writes a file whole or not at all, readable by its owner only from its first byte on, and flushes
/// it.
pub(super) fn write(file: &Path, text: &str) -> Result<(), PkiError> {
    mainstay_files::replace(file, text.as_bytes(), Durability::PowerCut)
        .map_err(|source| PkiError::Write { file: file.to_owned(), source })
}
