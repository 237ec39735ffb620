//! Files and folders in locations that other users of the machine can write to.
//!
//! Another user can create a name in `/tmp` first if it can be guessed. A link there makes a program
//! overwrite another file, a FIFO blocks it for ever, and a folder of another user shows them its content.
//! So this crate trusts no name:
//!
//! ```text
//! PrivateFolder          random name, created exclusively, 0700, removed when dropped
//! AtomicFile, replace    random name beside the file, O_EXCL, 0600, renamed over the file: whole or not at all
//! create_unnamed         O_TMPFILE: no name at all, space that is freed with the file descriptor
//! open, read             O_NOFOLLOW | O_NONBLOCK, and regular files only
//! open_lock              the same for a lock file
//! open_log               for appending: a file that a person named, or a terminal, or a pipe with a reader
//! resolve_named_file     the target of a link that a person named, if no other user can have made it
//! claim_private_folder   a folder that the program named: no link, ours, closed to others
//! claim_data_folder      a folder that a person named for the data of a cluster
//! FileIdentity           whether an open file still has its name
//! ```
//!
//! This does not protect from root, or from another process of the same user.

mod claim;
mod identity;
mod open;
mod unnamed;
mod write;

pub use claim::{PrivateFolder, claim_data_folder, claim_private_folder, is_private_folder};
pub use identity::FileIdentity;
pub use open::{open, open_lock, open_log, read, read_text, resolve_named_file};
pub use unnamed::create_unnamed;
pub use write::{AtomicFile, Durability, replace};

use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// The mode of new folders.
const FOLDER_MODE: u32 = 0o700;
/// The mode of new files.
const FILE_MODE: u32 = 0o600;

/// The user that owns new files of this process. It is read from a file without a name, so it is
/// exactly the owner that new files get.
fn own_user() -> io::Result<u32> {
    static OWN: OnceLock<u32> = OnceLock::new();
    if let Some(user) = OWN.get() {
        return Ok(*user);
    }
    let file = rustix::fs::memfd_create("owner", rustix::fs::MemfdFlags::CLOEXEC)?;
    let user = rustix::fs::fstat(&file)?.st_uid;
    Ok(*OWN.get_or_init(|| user))
}

/// A name that cannot be guessed.
fn random_name(prefix: &str) -> io::Result<String> {
    use std::fmt::Write as _;
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let mut name = prefix.to_owned();
    for byte in random {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The error for an unsafe owner or mode.
fn permission_denied(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
