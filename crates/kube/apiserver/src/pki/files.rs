//! Files that only their owner may read, written whole or not at all.

use super::PkiError;
use std::fmt::Display;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A folder for keys.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if needed and takes it away from everybody else.
    pub(super) fn prepare(folder: &Path) -> Result<Self, PkiError> {
        let failed = |source| PkiError::PrepareFolder { folder: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mode = fs::metadata(folder).map_err(failed)?.permissions().mode() & 0o777;
        if mode != 0o700 {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(Self(folder.to_owned()))
    }

    /// The text of a file; none if it is not there.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let file = self.0.join(name);
        match fs::read_to_string(&file) {
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
            names.extend(name.to_str().filter(|it| it.starts_with(prefix)).map(ToOwned::to_owned));
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

/// Writes beside the file, syncs, and renames over it. The mode is 0600 from the first byte on.
pub(super) fn write(file: &Path, text: &str) -> Result<(), PkiError> {
    write_through(file, text).map_err(|source| PkiError::Write { file: file.to_owned(), source })
}

fn write_through(file: &Path, text: &str) -> io::Result<()> {
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = (|| {
        // What a killed process of the same number left behind is of no use to anybody.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut out =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&temporary, file)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}
