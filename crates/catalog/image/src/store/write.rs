//! Writing blobs: to a temporary file, which is flushed and renamed.

use super::{ImageStore, ImageStoreError, io_error};
use crate::digest::{Algorithm, Digest, Hasher, hex};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The mode of files: for their owner only.
const OWNER_FILE: u32 = 0o600;

/// Marks a file as used now, by its modification time.
pub(super) fn mark_used(file: &File) -> io::Result<()> {
    let at = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
    match rustix::fs::futimens(file, &times) {
        // A read-only file system needs no mark, because nothing is collected there.
        Ok(()) | Err(rustix::io::Errno::ROFS | rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Flushes the entry of a file in its folder.
pub(super) fn sync_folder(path: &Path) -> Result<(), ImageStoreError> {
    let folder = path.parent().unwrap_or(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(io_error("cannot flush", folder))
}

/// Creates a temporary file with a random name.
pub(super) fn create_temporary(root: &Path) -> Result<(File, PathBuf), ImageStoreError> {
    let folder = root.join("partial");
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        io_error("cannot name a file in", &folder)(io::Error::other(error.to_string()))
    })?;
    let path = folder.join(format!("new-{}", hex(&random)));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(OWNER_FILE).open(&path);
    Ok((file.map_err(io_error("cannot make", &path))?, path))
}

/// A blob that is being written. Dropping it before [`BlobWriter::commit`] removes the content, unless
/// it can be resumed.
#[derive(Debug)]
pub struct BlobWriter {
    store: ImageStore,
    file: File,
    path: PathBuf,
    hasher: Hasher,
    length: u64,
    limit: u64,
    /// Whether the file stays when the writer is dropped.
    keep: bool,
}

impl ImageStore {
    /// A writer for at most `limit` bytes, with a SHA-256 digest.
    pub fn writer(&self, limit: u64) -> Result<BlobWriter, ImageStoreError> {
        self.writer_of(Algorithm::Sha256, limit)
    }

    /// A writer for at most `limit` bytes, with a digest of an algorithm.
    pub fn writer_of(
        &self,
        algorithm: Algorithm,
        limit: u64,
    ) -> Result<BlobWriter, ImageStoreError> {
        let (file, path) = create_temporary(&self.root)?;
        let hasher = Hasher::new(algorithm);
        Ok(BlobWriter { store: self.clone(), file, path, hasher, length: 0, limit, keep: false })
    }

    /// A writer that continues an unfinished write of the same content, also of a process that has
    /// ended. While another writer has the content, the new one starts from nothing.
    ///
    /// [`BlobWriter::length`] is the size of the existing part, which is read and hashed again.
    pub fn resume(&self, digest: &Digest, limit: u64) -> Result<BlobWriter, ImageStoreError> {
        let name = format!("{}-{}", digest.algorithm().name(), digest.hex());
        let path = self.root.join("partial").join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(OWNER_FILE);
        let mut file = options.open(&path).map_err(io_error("cannot make", &path))?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
            || !is_same_file(&file, &path)
        {
            return self.writer_of(digest.algorithm(), limit);
        }
        let mut hasher = Hasher::new(digest.algorithm());
        let (mut length, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer).map_err(io_error("cannot read", &path))? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    length += count as u64;
                }
            }
        }
        let mut writer =
            BlobWriter { store: self.clone(), file, path, hasher, length, limit, keep: true };
        if length > limit {
            writer.restart()?;
        }
        Ok(writer)
    }
}

/// Whether a path still leads to the opened file: another process may have committed it meanwhile.
fn is_same_file(file: &File, path: &Path) -> bool {
    let named = rustix::fs::stat(path).map(|stat| (stat.st_dev, stat.st_ino));
    let opened = rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    named.is_ok() && named == opened
}

impl BlobWriter {
    /// The number of bytes so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The file itself, for content that never gets a name: dropping the writer removes the name,
    /// and closing the last handle removes the content.
    pub(crate) fn file(self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Appends content.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ImageStoreError> {
        if bytes.len() as u64 > self.limit.saturating_sub(self.length) {
            self.keep = false;
            return Err(ImageStoreError::TooLong(self.limit));
        }
        self.file.write_all(bytes).map_err(io_error("cannot write", &self.path))?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Discards the content and starts again.
    pub fn restart(&mut self) -> Result<(), ImageStoreError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(io_error("cannot empty", &self.path))?;
        let algorithm = self.hasher.clone().finish().algorithm();
        (self.hasher, self.length) = (Hasher::new(algorithm), 0);
        Ok(())
    }

    /// Moves the content into the store, if it has the announced digest and size. Otherwise the
    /// content is removed.
    pub fn commit(
        mut self,
        wanted: Option<&Digest>,
        size: Option<u64>,
    ) -> Result<Digest, ImageStoreError> {
        self.keep = false;
        let found = self.hasher.clone().finish();
        if let Some(wanted) = size
            && wanted != self.length
            && !mainstay_fault::is_on("sizes-are-not-verified")
        {
            return Err(ImageStoreError::Size { digest: found, wanted, found: self.length });
        }
        if let Some(wanted) = wanted
            && *wanted != found
            && !mainstay_fault::is_on("digests-are-not-verified")
        {
            return Err(ImageStoreError::Digest { wanted: wanted.clone(), found });
        }
        let target = self.store.blob_path(&found);
        self.file.sync_all().map_err(io_error("cannot flush", &self.path))?;
        fs::rename(&self.path, &target).map_err(io_error("cannot write", &target))?;
        // The file was renamed, so dropping the writer must not remove another file at its old
        // path.
        self.keep = true;
        sync_folder(&target)?;
        Ok(found)
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_file(&self.path);
        }
    }
}
