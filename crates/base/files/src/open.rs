//! Opening what is there, without following links, and without waiting.

use crate::{FILE_MODE, folder_of, own_user, refused};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How many links a name may lead through, as the kernel has it.
const MOST_LINKS: u32 = 40;
/// Permission of others to write.
const OTHERS_WRITE: u32 = 0o002;
/// Permission of the group or of others to write.
const SHARED_WRITE: u32 = 0o022;

/// Opens a regular file for reading. A link, a FIFO, a socket or a device is refused, and nothing is
/// waited for.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(unfollowed)?;
    regular(&file)?;
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

/// Opens or makes a file that is locked: a regular file of this user, never what a link leads to.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(FILE_MODE);
    let file = rustix::fs::openat(CWD, path, flags, mode).map_err(unfollowed)?;
    let found = regular(&file)?;
    // Whoever owns it could hold the lock for ever.
    if found.st_uid != own_user()? {
        return Err(refused(format!("it belongs to another user ({})", found.st_uid)));
    }
    Ok(File::from(file))
}

/// Opens or makes a file to append to that a person named: a regular file, a terminal or another
/// device, or a FIFO that somebody reads. Links lead where [`named_target`] says. Whether it is a
/// regular file is told, because nothing else can be put aside and begun again.
pub fn open_log(path: &Path) -> io::Result<(File, bool)> {
    // The files of `/dev` and `/proc` are links of the kernel's.
    let path = match rustix::fs::stat(path) {
        Ok(found) if kind(&found) == FileType::RegularFile => named_target(path)?,
        Ok(_) => path.to_owned(),
        Err(_) => named_target(path)?,
    };
    // Without waiting, a FIFO that nobody reads is an error.
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
    let is_regular = kind(&rustix::fs::fstat(&file)?) == FileType::RegularFile;
    let waiting = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&file, waiting)?;
    Ok((File::from(file), is_regular))
}

/// The file that a name leads to which a person gave, through links if there are any. It need not be
/// there yet.
///
/// A link is followed that this user or root made, or that lies in a folder where nobody else can
/// make one; so `~/.kube/config` may be a link, and one that a stranger put into `/tmp` is refused.
/// A stranger's file in a folder where everybody may write is refused, and whatever is no regular
/// file. The name that comes back is to be opened without following anything.
pub fn named_target(path: &Path) -> io::Result<PathBuf> {
    let own = own_user()?;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // A handle on the name itself, so that what is judged is what is followed.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let named = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(named) => named,
            Err(rustix::io::Errno::NOENT) => return Ok(path),
            Err(error) => return Err(error.into()),
        };
        let found = rustix::fs::fstat(&named)?;
        let folder = folder_of(&path);
        let place = rustix::fs::stat(folder)?;
        let strange = found.st_uid != own && found.st_uid != 0;
        match kind(&found) {
            FileType::Symlink if strange && place.st_mode & SHARED_WRITE != 0 => {
                return Err(refused(format!(
                    "it is a link that another user ({}) made in a folder where others may write",
                    found.st_uid
                )));
            }
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(&named, "", Vec::new())?;
                path = folder.join(OsStr::from_bytes(to.as_bytes()));
            }
            FileType::RegularFile if strange && place.st_mode & OTHERS_WRITE != 0 => {
                return Err(refused(format!(
                    "it is a file that another user ({}) made in a folder where everybody may write",
                    found.st_uid
                )));
            }
            FileType::RegularFile => return Ok(path),
            other => return Err(no_file(other)),
        }
    }
    Err(io::Error::other("it leads through too many links"))
}

/// Whether a name in a folder, not followed, is a file that was opened.
pub(crate) fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// What an open file is, if it is a regular one.
fn regular(file: &impl std::os::fd::AsFd) -> io::Result<Stat> {
    let found = rustix::fs::fstat(file)?;
    match kind(&found) {
        FileType::RegularFile => Ok(found),
        other => Err(no_file(other)),
    }
}

fn no_file(kind: FileType) -> io::Error {
    let what = match kind {
        FileType::Directory => return io::ErrorKind::IsADirectory.into(),
        FileType::Fifo => "it is a FIFO and not a file",
        FileType::Socket => "it is a socket and not a file",
        FileType::Symlink => "it is a link and not a file",
        _ => "it is a device and not a file",
    };
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The kernel's answers to what is not followed and not waited for.
fn unfollowed(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => no_file(FileType::Symlink),
        // For writing, a FIFO without a reader; a socket in any case.
        rustix::io::Errno::NXIO => no_file(FileType::Socket),
        error => error.into(),
    }
}

/// What a name is, which is not followed.
pub(crate) fn unfollowed_stat(path: &Path) -> io::Result<Stat> {
    Ok(rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?)
}
