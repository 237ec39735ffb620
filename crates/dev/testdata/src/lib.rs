//! Recorded data that is not part of the project, for tests that can do without it.
//!
//! The environment variable `MAINSTAY_TESTDATA` names a folder of archives, `NAME.tar.xz`. A test
//! unpacks what it needs and ends early where it is not at hand:
//!
//! ```no_run
//! let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded verdicts") else { return };
//! // … compares with what lies below data.path() …
//! mainstay_testdata::ran("720 recorded verdicts");
//! ```
//!
//! What ran and what did not is said on standard error itself, which the test harness does not
//! capture, so that the log of a passing run tells it: a line `ran: …` or `skipped: …` each.
//!
//! Where the variable names a folder, all of it must be there: an archive that the folder lacks is a
//! failure, for else a check could be lost without anybody noticing.
//!
//! What this does not do: fetch data, or keep what it unpacked; that takes less than two seconds for
//! the largest archive.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The environment variable that names the folder of archives.
const VARIABLE: &str = "MAINSTAY_TESTDATA";

/// The content of `<MAINSTAY_TESTDATA>/<archive>.tar.xz` in a temporary folder, which is gone when
/// the value is dropped. Where the variable is not set, none, and a line that says that `what` was
/// skipped.
///
/// # Panics
///
/// If the folder that the variable names lacks the archive, or it cannot be unpacked: that is a fault,
/// not missing data.
pub fn unpack(archive: &str, what: &str) -> Option<TempDir> {
    let Some(root) = root() else {
        skipped(&format!("{what}: {VARIABLE} is not set"));
        return None;
    };
    Some(unpack_from(&root, archive))
}

/// The file `<MAINSTAY_TESTDATA>/<name>`; none where the variable is not set.
///
/// # Panics
///
/// If the folder that the variable names lacks the file.
pub fn file(name: &str) -> Option<PathBuf> {
    let path = root()?.join(name);
    assert!(path.is_file(), "{VARIABLE} names a folder without {name}");
    Some(path)
}

/// The folder that the variable names.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration")]
fn root() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|root| !root.is_empty()).map(PathBuf::from)
}

/// As [`unpack`], from a given folder.
#[expect(clippy::expect_used, reason = "without temporary folders or tar no test can go on")]
fn unpack_from(root: &Path, archive: &str) -> TempDir {
    let archive = root.join(format!("{archive}.tar.xz"));
    assert!(archive.is_file(), "{VARIABLE} names a folder without {}", archive.display());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let status =
        Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(status.expect("tar runs").success(), "{} cannot be unpacked", archive.display());
    folder
}

/// Says that a check did not run, and why.
pub fn skipped(what: &str) {
    say("skipped", what);
}

/// Says that a check ran on something that is not always there.
pub fn ran(what: &str) {
    say("ran", what);
}

/// One line in one write, so that tests that run at the same time do not mix theirs.
fn say(which: &str, what: &str) {
    let line = format!("{which}: {what}\n");
    // Who cannot be told has to do without.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    #[should_panic(expected = "MAINSTAY_TESTDATA names a folder without")]
    fn an_archive_that_the_folder_lacks_is_a_fault() {
        let empty = tempfile::tempdir().unwrap();
        unpack_from(empty.path(), "answers/opm");
    }

    #[test]
    fn an_archive_is_unpacked_and_gone_afterwards() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("answers/one")).unwrap();
        fs::write(root.path().join("answers/one/file"), "content").unwrap();
        let packed = root.path().join("answers/one.tar.xz");
        let answers = root.path().join("answers");
        let tar = Command::new("tar")
            .arg("-cJf")
            .arg(&packed)
            .arg("-C")
            .arg(&answers)
            .arg("one")
            .status();
        assert!(tar.unwrap().success());

        let folder = unpack_from(root.path(), "answers/one");
        let place = folder.path().to_owned();
        assert_eq!(fs::read_to_string(place.join("one/file")).unwrap(), "content");
        drop(folder);
        assert!(!place.exists());
    }
}
