//! Recorded test data that is not part of the project, for tests that may be skipped without it.
//!
//! The environment variable `MAINSTAY_TESTDATA` names a folder of archives, `NAME.tar.xz`. A test
//! unpacks what it needs, and returns early if the variable is not set:
//!
//! ```no_run
//! let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded verdicts") else { return };
//! // … compares with the files below data.path() …
//! mainstay_testdata::ran("720 recorded verdicts");
//! ```
//!
//! Each such check is reported by a line `ran: …` or `skipped: …` on standard error itself, which
//! the test harness does not capture, so that the log of a passing run contains it.
//!
//! If the variable names a folder, all archives must be there: a missing archive fails the test,
//! because otherwise a check could be lost unnoticed.
//!
//! This crate does not fetch data, and does not cache unpacked archives; unpacking the largest
//! takes less than two seconds.

mod python_json;
mod recorded;

pub use python_json::python_json;
pub use recorded::{fill_random, image_files, read_json, sorted_entries};

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The environment variable that names the folder of archives.
const VARIABLE: &str = "MAINSTAY_TESTDATA";

/// Unpacks `<MAINSTAY_TESTDATA>/<archive>.tar.xz` into a temporary folder, which is removed when
/// the value is dropped. If the variable is not set, returns none and reports that `what` was
/// skipped.
///
/// # Panics
///
/// The folder lacks the archive, or it cannot be unpacked: that is an error, not missing data.
pub fn unpack(archive: &str, what: &str) -> Option<TempDir> {
    let Some(root) = root() else {
        skipped(&format!("{what}: {VARIABLE} is not set"));
        return None;
    };
    Some(unpack_from(&root, archive))
}

/// The path `<MAINSTAY_TESTDATA>/<name>`; none if the variable is not set.
///
/// # Panics
///
/// The folder lacks the file.
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

/// Like [`unpack`], from a given folder.
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

/// The environment variable with which tests try all of their inputs.
const DEEP: &str = "MAINSTAY_DEEP";

/// Whether tests try all of their inputs, which takes minutes: whether `MAINSTAY_DEEP` is set, as `.ci/deep` does.
#[expect(clippy::disallowed_methods, reason = "the depth of a test is not configuration")]
pub fn is_deep() -> bool {
    std::env::var_os(DEEP).is_some()
}

/// Every `step`th of many inputs, always the same ones; all of them with `MAINSTAY_DEEP`. Reports their number.
pub fn sample<T>(what: &str, inputs: Vec<T>, step: usize) -> Vec<T> {
    if is_deep() {
        return inputs;
    }
    let all = inputs.len();
    let sampled: Vec<T> = inputs.into_iter().step_by(step).collect();
    ran(&format!("{what}: {} of {all} inputs, all of them with {DEEP}", sampled.len()));
    sampled
}

/// Reports that a check was skipped, and why.
pub fn skipped(what: &str) {
    report("skipped", what);
}

/// Reports that a check ran on data that may be missing.
pub fn ran(what: &str) {
    report("ran", what);
}

/// Writes the line at once, so that concurrent tests do not mix their lines.
fn report(outcome: &str, what: &str) {
    let line = format!("{outcome}: {what}\n");
    // A closed standard error is no failure.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    #[should_panic(expected = "MAINSTAY_TESTDATA names a folder without")]
    fn missing_archive_in_the_folder_panics() {
        let empty = tempfile::tempdir().unwrap();
        unpack_from(empty.path(), "answers/opm");
    }

    #[test]
    fn unpacked_archive_is_removed_on_drop() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("answers/one")).unwrap();
        fs::write(root.path().join("answers/one/file"), "content").unwrap();
        let archive = root.path().join("answers/one.tar.xz");
        let answers = root.path().join("answers");
        let tar = Command::new("tar")
            .arg("-cJf")
            .arg(&archive)
            .arg("-C")
            .arg(&answers)
            .arg("one")
            .status();
        assert!(tar.unwrap().success());

        let folder = unpack_from(root.path(), "answers/one");
        let path = folder.path().to_owned();
        assert_eq!(fs::read_to_string(path.join("one/file")).unwrap(), "content");
        drop(folder);
        assert!(!path.exists());
    }
}
