//! Files and folders in places that other users of the machine reach.
//!
//! A name in `/tmp` that can be guessed is a name that somebody else can take first: a link there
//! makes a program overwrite another file, a FIFO makes it wait for ever, a folder of somebody else
//! shows them what is written into it. So nothing here trusts a name:
//!
//! ```text
//! PrivateFolder   random name, made exclusively, 0700, gone when dropped
//! Draft, replace  random name beside the file, O_EXCL, 0600, renamed over the file: whole or not at all
//! open, read      O_NOFOLLOW | O_NONBLOCK, and only what turns out to be a regular file
//! open_lock       the same for a file that is locked
//! open_log        for appending: what a person named, which may be a terminal or a pipe that is read
//! named_target    where a link leads that a person named, if nobody else can have put it there
//! claim_inner     a folder that the program itself names: a real one, ours, closed to others
//! claim_data      a folder that a person named for a cluster's data
//! Held            whether a file that is held open still has its name
//! ```
//!
//! What this does not do: protect from root, or from another process of the same user.

mod claim;
mod held;
mod open;
mod write;

pub use claim::{PrivateFolder, claim_data, claim_inner, is_private};
pub use held::Held;
pub use open::{named_target, open, open_lock, open_log, read, read_text};
pub use write::{Draft, Durability, replace};

use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// Mode of folders that are made here.
const FOLDER_MODE: u32 = 0o700;
/// Mode of files that are made here.
const FILE_MODE: u32 = 0o600;

/// The user whose files this process makes. The kernel says it of a file without a name, so that
/// what is compared is exactly what new files get.
fn own_user() -> io::Result<u32> {
    static OWN: OnceLock<u32> = OnceLock::new();
    if let Some(user) = OWN.get() {
        return Ok(*user);
    }
    let file = rustix::fs::memfd_create("owner", rustix::fs::MemfdFlags::CLOEXEC)?;
    let user = rustix::fs::fstat(&file)?.st_uid;
    Ok(*OWN.get_or_init(|| user))
}

/// A name that nobody can guess.
fn random_name(prefix: &str) -> io::Result<String> {
    use std::fmt::Write as _;
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let mut name = prefix.to_owned();
    for byte in random {
        // Writing to a text does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A refusal: the permissions are as they must not be.
fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
