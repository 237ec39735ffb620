//! Folders that only this user may write to.

use crate::open::{file_type, stat_without_following};
use crate::{FOLDER_MODE, own_user, permission_denied, random_name};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The write permission of others.
const OTHERS_WRITE: u32 = 0o002;
/// The sticky bit: only owners of files may rename and remove them.
const STICKY: u32 = 0o1000;

/// A folder with a random name that only this user can access. Dropping it removes the folder with its
/// content.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Creates one below `parent`, which may be writable by everybody.
    pub fn create_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        // Exclusively: an existing name, also a link, is an error. The umask can only remove
        // permissions.
        let path = parent.join(random_name(prefix)?);
        DirBuilder::new().mode(FOLDER_MODE).create(&path)?;
        let folder = Self { path };
        // Some file systems do not keep owners and modes.
        if is_private_folder(&folder.path) {
            Ok(folder)
        } else {
            Err(permission_denied("folders in it cannot be closed to others".to_owned()))
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // A failure cannot be handled here. Links in the folder are removed, not followed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether a name is a folder of this user, not a link, without permissions for others, as
/// `$XDG_RUNTIME_DIR` must be.
pub fn is_private_folder(folder: &Path) -> bool {
    let (Ok(stat), Ok(own)) = (stat_without_following(folder), own_user()) else { return false };
    file_type(&stat) == FileType::Directory
        && stat.st_uid == own
        && stat.st_mode & 0o777 == FOLDER_MODE
}

/// Creates a folder that the program named, or takes the existing one: it must be a folder of this user
/// and not a link. Removes the permissions of others.
pub fn claim_private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(CWD, folder, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(error @ (rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP)) => {
            let is_link = stat_without_following(folder)
                .is_ok_and(|metadata| file_type(&metadata) == FileType::Symlink);
            return Err(if is_link {
                permission_denied("it is a link and not a folder".to_owned())
            } else {
                error.into()
            });
        }
        Err(error) => return Err(error.into()),
    };
    let stat = rustix::fs::fstat(&opened)?;
    let own = own_user()?;
    if stat.st_uid != own {
        return Err(permission_denied(format!("it belongs to another user ({})", stat.st_uid)));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(FOLDER_MODE))?;
    }
    Ok(())
}

/// Creates the folder that a person named for data, with its parents, or checks the existing one.
/// Returns a warning, if there is one.
///
/// A new folder is closed to others. An existing one must belong to this user, or to root as volumes of
/// containers do. Its read permissions stay, but only owner and group may write to it. If others may
/// write: this user's folder loses that permission, root's gives a warning, and a sticky one (`/tmp`) is
/// an error. A parent in which others can replace the folder gives a warning.
pub fn claim_data_folder(folder: &Path) -> io::Result<Option<String>> {
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    let (stat, own) = (rustix::fs::fstat(&opened)?, own_user()?);
    if stat.st_uid != own && stat.st_uid != 0 {
        return Err(permission_denied(format!(
            "it belongs to another user ({}), who could read its keys and exchange its files",
            stat.st_uid
        )));
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        if stat.st_mode & STICKY != 0 {
            return Err(permission_denied("everybody may make files in it".to_owned()));
        }
        if stat.st_uid != own {
            return Ok(Some(format!(
                "{} belongs to root, and everybody may write to it",
                folder.display()
            )));
        }
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(stat.st_mode & 0o775))?;
    }
    let real = folder.canonicalize()?;
    for above in real.ancestors().skip(1) {
        let stat = rustix::fs::stat(above)?;
        let foreign = stat.st_uid != own && stat.st_uid != 0;
        let shared = stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & STICKY == 0;
        if foreign || shared {
            let who = if foreign {
                format!("another user ({}), to whom {} belongs,", stat.st_uid, above.display())
            } else {
                format!("everybody may write to {}, so anybody", above.display())
            };
            return Ok(Some(format!("{who} can exchange {}", folder.display())));
        }
    }
    Ok(None)
}
