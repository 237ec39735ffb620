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
//! What this does not do: fetch data, or keep what it unpacked; that takes less than two seconds for
//! the largest archive.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The environment variable that names the folder of archives.
const VARIABLE: &str = "MAINSTAY_TESTDATA";

/// The content of `<MAINSTAY_TESTDATA>/<archive>.tar.xz` in a temporary folder, which is gone when
/// the value is dropped. Where the variable is not set or has no such archive, none, and a line that
/// says that `what` was skipped.
///
/// # Panics
///
/// If the archive is there and cannot be unpacked: that is a fault, not missing data.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration")]
pub fn unpack(archive: &str, what: &str) -> Option<TempDir> {
    let root = std::env::var_os(VARIABLE).filter(|root| !root.is_empty());
    match unpack_from(root.as_ref().map(Path::new), archive) {
        Ok(folder) => Some(folder),
        Err(why) => {
            skipped(&format!("{what}: {why}"));
            None
        }
    }
}

/// As [`unpack`], from a given folder; or what is missing.
#[expect(clippy::expect_used, reason = "without temporary folders or tar no test can go on")]
fn unpack_from(root: Option<&Path>, archive: &str) -> Result<TempDir, String> {
    let Some(root) = root else { return Err(format!("{VARIABLE} is not set")) };
    let archive = root.join(format!("{archive}.tar.xz"));
    if !archive.is_file() {
        return Err(format!("there is no {}", archive.display()));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let status =
        Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(status.expect("tar runs").success(), "{} cannot be unpacked", archive.display());
    Ok(folder)
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
    fn missing_data_is_named_and_no_fault() {
        assert_eq!(unpack_from(None, "crds").unwrap_err(), "MAINSTAY_TESTDATA is not set");
        let empty = tempfile::tempdir().unwrap();
        let why = unpack_from(Some(empty.path()), "answers/opm").unwrap_err();
        assert!(why.starts_with("there is no ") && why.ends_with("answers/opm.tar.xz"), "{why}");
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

        let folder = unpack_from(Some(root.path()), "answers/one").unwrap();
        let place = folder.path().to_owned();
        assert_eq!(fs::read_to_string(place.join("one/file")).unwrap(), "content");
        drop(folder);
        assert!(!place.exists());
    }
}
