//! File identity: whether an open file still has its name.

use crate::open::stat_without_following;
use rustix::fs::StatVfsMountFlags;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The identity of a file that a process keeps open while it uses a folder, such as a lock file.
#[derive(Clone, Debug)]
pub struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The identity of a file that was opened by `path`.
    pub fn new(file: &File, path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        Ok(Self { path: path.to_owned(), device: stat.st_dev, inode: stat.st_ino })
    }

    /// Checks that the folder is still usable: the name leads to the same file, and the file system is
    /// writable. Costs two system calls and no disk access.
    pub fn check(&self) -> io::Result<()> {
        let stat = match stat_without_following(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it was removed"));
            }
            stat => stat?,
        };
        if (stat.st_dev, stat.st_ino) != (self.device, self.inode) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another file has its name"));
        }
        let system = rustix::fs::statvfs(&self.path)?;
        if system.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
