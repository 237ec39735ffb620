//! Recorded data that is not part of the project, found through `MAINSTAY_TESTDATA`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of an archive's content, or none, said loudly, when there is no such data here.
///
/// `archive` is a path below `MAINSTAY_TESTDATA` without `.tar.xz`; a folder of that name is used
/// as it is, an archive is unpacked once.
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
    let name = Path::new(archive).file_name().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !target.join(".complete").is_file() {
        std::fs::create_dir_all(&target).unwrap();
        let done =
            Command::new("tar").arg("-xJf").arg(&packed).arg("-C").arg(&target).status().unwrap();
        assert!(done.success(), "tar -xJf {}", packed.display());
        std::fs::write(target.join(".complete"), "").unwrap();
    }
    Some(target)
}
