//! Whether a file that is held open is still the one of its name.

use crate::open::unfollowed_stat;
use rustix::fs::StatVfsMountFlags;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file that a process holds open for as long as it works in a folder, such as its lock.
#[derive(Clone, Debug)]
pub struct Held {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Held {
    /// The file that was opened by a name.
    pub fn new(file: &File, path: &Path) -> io::Result<Self> {
        let found = rustix::fs::fstat(file)?;
        Ok(Self { path: path.to_owned(), device: found.st_dev, inode: found.st_ino })
    }

    /// Whether the folder can still be worked in: the name leads to the same file, and the file system
    /// can be written to. Two questions to the kernel, none to the disk.
    pub fn check(&self) -> io::Result<()> {
        let found = match unfollowed_stat(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it was removed"));
            }
            found => found?,
        };
        if (found.st_dev, found.st_ino) != (self.device, self.inode) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another file has its name"));
        }
        let system = rustix::fs::statvfs(&self.path)?;
        if system.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
