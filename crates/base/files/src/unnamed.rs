//! Files without a name: space on a disk that is freed with its file descriptor.

use crate::{FILE_MODE, random_name};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Creates a file without a name on the file system of a folder, for reading and writing. No other
/// program can open it, and its space is freed when the process drops it or ends.
pub fn create_unnamed(folder: &Path) -> io::Result<File> {
    // EXCL: it can never get a name.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, folder, flags, Mode::from_raw_mode(FILE_MODE)) {
        Ok(file) => Ok(File::from(file)),
        // File systems without such files say this: NFS, and older overlays.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_and_unlink(folder),
        Err(error) => Err(error.into()),
    }
}

/// The same for any file system: a file that loses its name at once.
fn create_and_unlink(folder: &Path) -> io::Result<File> {
    let path = folder.join(random_name(".mainstay-")?);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn unnamed_file_is_written_and_read_and_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for create in [create_unnamed, create_and_unlink] {
            let file = create(folder.path()).unwrap();
            file.write_all_at(b"content", 3).unwrap();
            let mut read = [0; 4];
            file.read_exact_at(&mut read, 6).unwrap();
            assert_eq!(&read, b"tent");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        let missing = create_unnamed(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
