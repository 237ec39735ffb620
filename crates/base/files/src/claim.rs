//! Folders that are for this user alone.

use crate::open::{kind, unfollowed_stat};
use crate::{FOLDER_MODE, own_user, random_name, refused};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Permission of others to write.
const OTHERS_WRITE: u32 = 0o002;
/// Only owners of files rename and remove them.
const STICKY: u32 = 0o1000;

/// A folder of a random name for this process and this user alone; it goes, with all that is in it,
/// when this is dropped.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes one below `parent`, which may be open to everybody.
    pub fn make_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        // Made exclusively: whatever has the name already, also a link, is an error. The umask can
        // only take permissions away.
        let path = parent.join(random_name(prefix)?);
        DirBuilder::new().mode(FOLDER_MODE).create(&path)?;
        let folder = Self { path };
        // An odd file system may have its own idea of owners and modes.
        if is_private(&folder.path) {
            Ok(folder)
        } else {
            Err(refused("folders in it cannot be closed to others".to_owned()))
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Nothing can be done about a failure; links in it are removed and not followed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether a name is a real folder of this user which nobody else may look into or write to, such as
/// `$XDG_RUNTIME_DIR` must be.
pub fn is_private(folder: &Path) -> bool {
    let (Ok(found), Ok(own)) = (unfollowed_stat(folder), own_user()) else { return false };
    kind(&found) == FileType::Directory
        && found.st_uid == own
        && found.st_mode & 0o777 == FOLDER_MODE
}

/// Makes a folder whose name the program chose, or takes the one that is there: a real folder, of
/// this user, from which the permissions of others are taken.
pub fn claim_inner(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(CWD, folder, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(error @ (rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP)) => {
            let is_link =
                unfollowed_stat(folder).is_ok_and(|metadata| kind(&metadata) == FileType::Symlink);
            return Err(if is_link {
                refused("it is a link and not a folder".to_owned())
            } else {
                error.into()
            });
        }
        Err(error) => return Err(error.into()),
    };
    let found = rustix::fs::fstat(&opened)?;
    let own = own_user()?;
    if found.st_uid != own {
        return Err(refused(format!("it belongs to another user ({})", found.st_uid)));
    }
    if found.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// Makes the folder that a person named for data, with everything above it, or judges the one that is
/// there. What comes back is a warning.
///
/// A new folder is closed to others. One that is there must be of this user, or of root as volumes of
/// containers are; it stays readable to whom it was, but nobody besides owner and group may write to
/// it: this user's is closed, root's is warned of, and one that everybody shares (`/tmp`) is refused.
/// A folder above it in which others can exchange it is warned of.
pub fn claim_data(folder: &Path) -> io::Result<Option<String>> {
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    let (found, own) = (rustix::fs::fstat(&opened)?, own_user()?);
    if found.st_uid != own && found.st_uid != 0 {
        return Err(refused(format!(
            "it belongs to another user ({}), who could read its keys and exchange its files",
            found.st_uid
        )));
    }
    if found.st_mode & OTHERS_WRITE != 0 {
        if found.st_mode & STICKY != 0 {
            return Err(refused("everybody may make files in it".to_owned()));
        }
        if found.st_uid != own {
            return Ok(Some(format!(
                "{} belongs to root, and everybody may write to it",
                folder.display()
            )));
        }
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(found.st_mode & 0o775))?;
    }
    let real = folder.canonicalize()?;
    for above in real.ancestors().skip(1) {
        let found = rustix::fs::stat(above)?;
        let strange = found.st_uid != own && found.st_uid != 0;
        let shared = found.st_mode & OTHERS_WRITE != 0 && found.st_mode & STICKY == 0;
        if strange || shared {
            let who = if strange {
                format!("another user ({}), to whom {} belongs,", found.st_uid, above.display())
            } else {
                format!("everybody may write to {}, so anybody", above.display())
            };
            return Ok(Some(format!("{who} can exchange {}", folder.display())));
        }
    }
    Ok(None)
}
