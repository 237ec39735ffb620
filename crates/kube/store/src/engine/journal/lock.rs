//! The folder lock: one process per data folder.

use super::names::LOCK;
use crate::OpenError;
use mainstay_files::FileIdentity;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// The lock of a folder; it ends when this is dropped or the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    held: FileIdentity,
}

impl Lock {
    /// Locks a folder, which must exist.
    pub(crate) fn take(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(LOCK);
        let io_error = |attempt: &'static str| {
            let path = path.clone();
            move |source| OpenError::Io { attempt, path, source }
        };
        let mut file = mainstay_files::open_lock(&path).map_err(io_error("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The name of the holder is a courtesy; the refusal is what matters.
                let _ = file.read_to_string(&mut text);
                let holder = match text.trim().parse::<u32>() {
                    Ok(id) => format!("process {id}"),
                    Err(_) => "another process".to_owned(),
                };
                return Err(OpenError::Locked { path: folder.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(io_error("lock")(source)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(io_error("write"))?;
        let held = FileIdentity::new(&file, &path).map_err(io_error("read"))?;
        Ok(Self { file, held })
    }

    /// The lock file by its name, which exists for as long as the folder is the one that was
    /// opened.
    pub(crate) const fn held(&self) -> &FileIdentity {
        &self.held
    }
}

impl Drop for Lock {
    /// Unlocks explicitly. Closing the file would not be enough while another thread starts a child
    /// process: the child has a copy of every open file until it runs its own program, and the lock
    /// would last as long as the last copy.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!("cannot unlock the data folder: {error}");
        }
    }
}
