//! Atomic writes: a file is replaced whole or not at all.

use crate::{FILE_MODE, folder_of, random_name};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What a written file must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    Process,
    /// A power cut: content and name are flushed to the disk.
    PowerCut,
}

/// The new content of a file, in a temporary file beside it. The temporary file has a random name, is
/// created exclusively, and only its owner can read it. Dropping it before [`AtomicFile::publish`]
/// removes it.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    published: bool,
}

impl AtomicFile {
    /// Creates the temporary file for `target`.
    pub fn create(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
        }
        let path = folder_of(target).join(random_name(".mainstay-")?);
        // Exclusively: no link of that name is followed, and no file overwritten.
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path)?;
        Ok(Self { file, path, target: target.to_owned(), published: false })
    }

    /// Renames the temporary file to `target`. An existing file loses the name; a link is replaced, not
    /// followed.
    pub fn publish(mut self, durability: Durability) -> io::Result<()> {
        if durability == Durability::PowerCut {
            self.file.sync_all()?;
        }
        fs::rename(&self.path, &self.target)?;
        self.published = true;
        match durability {
            Durability::PowerCut => File::open(folder_of(&self.target))?.sync_all(),
            Durability::Process => Ok(()),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.published {
            // The caller reports the first error.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Replaces or creates a file: whole or not at all, readable by its owner only.
pub fn replace(target: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(content)?;
    file.publish(durability)
}
