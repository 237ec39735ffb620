//! Opening files without following links and without blocking.

use crate::{FILE_MODE, folder_of, own_user, permission_denied};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The longest chain of links, as in the kernel.
const MOST_LINKS: u32 = 40;
/// The write permission of others.
const OTHERS_WRITE: u32 = 0o002;
/// The write permissions of the group and of others.
const SHARED_WRITE: u32 = 0o022;

/// Opens a regular file for reading. A link, a FIFO, a socket or a device is an error; this never
/// blocks.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(open_error)?;
    stat_regular_file(&file)?;
    Ok(File::from(file))
}

/// The content of a regular file of at most `limit` bytes; see [`open`].
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is longer than {limit} bytes")));
    }
    Ok(bytes)
}

/// The text of a regular file of at most `limit` bytes; see [`open`].
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Opens or creates a lock file: a regular file of this user, never the target of a link.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(FILE_MODE);
    let file = rustix::fs::openat(CWD, path, flags, mode).map_err(open_error)?;
    let stat = stat_regular_file(&file)?;
    // Another owner could hold the lock for ever.
    if stat.st_uid != own_user()? {
        return Err(permission_denied(format!("it belongs to another user ({})", stat.st_uid)));
    }
    Ok(File::from(file))
}

/// Opens or creates a file for appending that a person named: a regular file, a terminal or another
/// device, or a FIFO with a reader. [`resolve_named_file`] resolves links. The boolean says whether it is
/// a regular file, because only those can be rotated.
pub fn open_log(path: &Path) -> io::Result<(File, bool)> {
    // Names in `/dev` and `/proc` can be links of the kernel.
    let path = match rustix::fs::stat(path) {
        Ok(stat) if file_type(&stat) == FileType::RegularFile => resolve_named_file(path)?,
        Ok(_) => path.to_owned(),
        Err(_) => resolve_named_file(path)?,
    };
    // With O_NONBLOCK, a FIFO without a reader is an error.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file =
        rustix::fs::openat(CWD, &path, flags, Mode::from_raw_mode(FILE_MODE)).map_err(|error| {
            match error {
                rustix::io::Errno::NXIO => io::Error::new(
                    io::ErrorKind::NotConnected,
                    "it is a FIFO that nobody reads, or a device that is not there",
                ),
                error => error.into(),
            }
        })?;
    let is_regular = file_type(&rustix::fs::fstat(&file)?) == FileType::RegularFile;
    let blocking = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&file, blocking)?;
    Ok((File::from(file), is_regular))
}

/// Resolves the links of a file name that a person gave. The file need not exist yet.
///
/// A link is followed if this user or root made it, or if it lies in a folder where no other user can
/// make one. So `~/.kube/config` may be a link, and a link of another user in `/tmp` is an error. A file
/// of another user in a folder where everybody may write is an error, and so is anything but a regular
/// file. The caller must open the returned name without following links.
pub fn resolve_named_file(path: &Path) -> io::Result<PathBuf> {
    let own = own_user()?;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // A handle on the link itself, so that the checked link is the one that is followed.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::NOENT) => return Ok(path),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&handle)?;
        let folder = folder_of(&path);
        let folder_stat = rustix::fs::stat(folder)?;
        let foreign = stat.st_uid != own && stat.st_uid != 0;
        match file_type(&stat) {
            FileType::Symlink if foreign && folder_stat.st_mode & SHARED_WRITE != 0 => {
                return Err(permission_denied(format!(
                    "it is a link that another user ({}) made in a folder where others may write",
                    stat.st_uid
                )));
            }
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(&handle, "", Vec::new())?;
                path = folder.join(OsStr::from_bytes(to.as_bytes()));
            }
            FileType::RegularFile if foreign && folder_stat.st_mode & OTHERS_WRITE != 0 => {
                return Err(permission_denied(format!(
                    "it is a file that another user ({}) made in a folder where everybody may write",
                    stat.st_uid
                )));
            }
            FileType::RegularFile => return Ok(path),
            other => return Err(not_a_file_error(other)),
        }
    }
    Err(io::Error::other("it leads through too many links"))
}

/// The type of a file.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The metadata of an open file, if it is a regular file.
fn stat_regular_file(file: &impl std::os::fd::AsFd) -> io::Result<Stat> {
    let stat = rustix::fs::fstat(file)?;
    match file_type(&stat) {
        FileType::RegularFile => Ok(stat),
        other => Err(not_a_file_error(other)),
    }
}

fn not_a_file_error(kind: FileType) -> io::Error {
    let what = match kind {
        FileType::Directory => return io::ErrorKind::IsADirectory.into(),
        FileType::Fifo => "it is a FIFO and not a file",
        FileType::Socket => "it is a socket and not a file",
        FileType::Symlink => "it is a link and not a file",
        _ => "it is a device and not a file",
    };
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The error of an open without following links and without blocking.
fn open_error(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => not_a_file_error(FileType::Symlink),
        // A socket, or for writing a FIFO without a reader.
        rustix::io::Errno::NXIO => not_a_file_error(FileType::Socket),
        error => error.into(),
    }
}

/// The metadata of a name; a link is not followed.
pub(crate) fn stat_without_following(path: &Path) -> io::Result<Stat> {
    Ok(rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?)
}
