//! Writing files whole or not at all.

use crate::{FILE_MODE, folder_of, random_name};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What a file is to outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The process.
    Process,
    /// A power cut: content and name are flushed.
    PowerCut,
}

/// What becomes the content of a file. Its own name is random and beside the file, made exclusively,
/// readable by its owner only; dropped before [`Draft::publish`] it is gone.
#[derive(Debug)]
pub struct Draft {
    file: File,
    path: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Draft {
    /// Begins what becomes the content of `target`.
    pub fn begin(target: &Path) -> io::Result<Self> {
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
        }
        let path = folder_of(target).join(random_name(".mainstay-")?);
        // Exclusively: a link of that name would not be followed, nor a file overwritten.
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path)?;
        Ok(Self { file, path, target: target.to_owned(), published: false })
    }

    /// Gives the content its name. Whatever had the name loses it; a link is replaced, not followed.
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

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            // The first error is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Replaces a file, or makes it: whole or not at all, readable by its owner only.
pub fn replace(target: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut draft = Draft::begin(target)?;
    draft.write_all(content)?;
    draft.publish(durability)
}
