//! Key files: readable by their owner only, and replaced atomically.

use super::PkiError;
use mainstay_files::Durability;
use std::fmt::Display;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The largest file of keys or certificates, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// A folder for keys.
pub(super) struct KeyFolder(PathBuf);

impl KeyFolder {
    /// Creates the folder if needed and removes the access of other users. A folder of another
    /// user, or a symbolic link, is an error.
    pub(super) fn prepare(folder: &Path) -> Result<Self, PkiError> {
        let failed = |source| PkiError::PrepareFolder { folder: folder.to_owned(), source };
        if let Some(parent) = folder.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
        }
        mainstay_files::claim_private_folder(folder).map_err(failed)?;
        Ok(Self(folder.to_owned()))
    }

    /// The text of a file; none if the file does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let file = self.0.join(name);
        match mainstay_files::read_text(&file, MAX_FILE_SIZE) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Binary content: the parser of the text reports the damage.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(String::new())),
            Err(source) => Err(PkiError::Read { file, source }),
        }
    }

    /// The names of files with this prefix and suffix, sorted.
    pub(super) fn file_names(&self, prefix: &str, suffix: &str) -> Result<Vec<String>, PkiError> {
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

    /// Replaces a file.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), PkiError> {
        write(&self.0.join(name), text)
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) -> Result<(), PkiError> {
        let file = self.0.join(name);
        match fs::remove_file(&file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(PkiError::Write { file, source })
            }
            _ => Ok(()),
        }
    }

    /// The error about a damaged file.
    pub(super) fn damaged(&self, name: &str, problem: &impl Display) -> PkiError {
        PkiError::Damaged { file: self.0.join(name), problem: problem.to_string() }
    }
}

/// Replaces a file atomically and flushes it. Only its owner can ever read the file.
pub(super) fn write(file: &Path, text: &str) -> Result<(), PkiError> {
    mainstay_files::replace(file, text.as_bytes(), Durability::PowerCut)
        .map_err(|source| PkiError::Write { file: file.to_owned(), source })
}
