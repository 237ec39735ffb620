//! The file-system interface of a journal: a folder and its files.
//!
//! Tests implement it with disks that are full or lie.

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The mode of folders: only for their owner.
const OWNER_FOLDER: u32 = 0o700;
/// The mode of new files in a folder.
const OWNER_FILE: u32 = 0o600;

/// A folder of files.
pub(crate) trait Disk: Send + Sync {
    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
    /// The names of all files in the folder.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens a file for reading and writing; creates it if `create`, else it must exist.
    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Links or copies a file into a folder inside this one.
    fn keep(&self, name: &str, folder: &str) -> io::Result<()>;
    /// Makes the names of files durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub(crate) trait DiskFile: Send {
    fn length(&self) -> io::Result<u64>;
    /// Fills the buffer from an offset.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all bytes at an offset. After an error any part may have been written.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Whether the file has no name any more: its content is lost when the process ends.
    fn is_removed(&self) -> io::Result<bool>;
}

/// Creates a folder with its parents, durably, because files in it depend on them. Only its owner
/// has access, as the folder contains Secrets: permissions of others are removed, and a link or the
/// folder of another user is refused.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    if let Some(parent) = folder.parent() {
        fs::DirBuilder::new().recursive(true).mode(OWNER_FOLDER).create(parent)?;
    }
    mainstay_files::claim_private_folder(folder)?;
    for created in missing {
        if let Some(parent) = created.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
    }
    Ok(())
}

/// A real folder behind a handle. Its files are created, renamed and removed in the folder that was
/// opened, even if its path leads to another one by now.
pub(crate) struct Folder {
    path: PathBuf,
    handle: File,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), handle: File::open(path)? })
    }
}

impl Disk for Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // The store creates neither names that are not UTF-8 nor subfolders that it reads.
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags.set(OFlags::CREATE, create);
        let mode = Mode::from_raw_mode(OWNER_FILE);
        Ok(Box::new(File::from(openat(&self.handle, name, flags, mode)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn keep(&self, name: &str, folder: &str) -> io::Result<()> {
        let folder = self.path(folder);
        mainstay_files::claim_private_folder(&folder)?;
        let (from, to) = (self.path(name), folder.join(name));
        // Some file systems have no hard links.
        fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop))?;
        File::open(&to)?.sync_all()?;
        File::open(&folder)?.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.metadata()?.nlink() == 0)
    }
}
