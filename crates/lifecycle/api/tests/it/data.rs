//! Recorded data that is not part of the project, found through `MAINSTAY_TESTDATA`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Tests run at the same time, and each archive is unpacked once.
static UNPACKING: Mutex<()> = Mutex::new(());

/// The folder of an archive's content, or none, said loudly, when there is no such data here.
///
/// `archive` is a path below `MAINSTAY_TESTDATA` without `.tar.xz`; a folder of that name is used
/// as it is.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration")]
pub(crate) fn folder(archive: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("MAINSTAY_TESTDATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: MAINSTAY_TESTDATA is not set, nothing was compared with {archive}");
        return None;
    };
    let plain = root.join(archive);
    if plain.is_dir() {
        return Some(plain);
    }
    let packed = root.join(format!("{archive}.tar.xz"));
    if !packed.is_file() {
        eprintln!("SKIPPED: neither {} nor {} is there", plain.display(), packed.display());
        return None;
    }
    let _guard = UNPACKING.lock().unwrap_or_else(PoisonError::into_inner);
    let name = Path::new(archive).file_name()?.to_str()?;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !target.is_dir() {
        // Other test binaries may do the same: only a whole folder gets the final name.
        let part = target.with_file_name(format!("{name}.{}", std::process::id()));
        std::fs::create_dir_all(&part).unwrap();
        let done =
            Command::new("tar").arg("-xJf").arg(&packed).arg("-C").arg(&part).status().unwrap();
        assert!(done.success(), "tar -xJf {}", packed.display());
        if std::fs::rename(&part, &target).is_err() {
            std::fs::remove_dir_all(&part).unwrap();
        }
    }
    Some(target)
}
