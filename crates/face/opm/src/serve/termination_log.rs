//! The termination log of a pod: the reason why the program ended.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The kubelet reads no more bytes of a termination log.
const MAX_BYTES: usize = 4096;

/// The log, opened at the start, when the program can still report that this fails.
pub(in super::super) struct TerminationLog(Option<File>);

impl TerminationLog {
    /// Opens the log; returns the error, if there is one. A log that must exist and does not is no error:
    /// it is not wanted.
    pub(in super::super) fn open(path: &Path, must_exist: bool) -> (Self, Option<String>) {
        let mut options = OpenOptions::new();
        match options.write(true).create(!must_exist).truncate(false).open(path) {
            Ok(file) => (Self(Some(file)), None),
            Err(_) if must_exist => (Self(None), None),
            Err(error) => (Self(None), Some(mainstay_gocompat::io_error_text(&error))),
        }
    }

    /// Writes the reason, up to the maximum length.
    pub(in super::super) fn write(self, reason: &str) {
        let Some(mut file) = self.0 else { return };
        let end = reason.floor_char_boundary(MAX_BYTES);
        // Errors are ignored: the log of the program has the reason, too.
        // Only a regular file can and must be truncated.
        let _ = file.set_len(0);
        let _ = file.write_all(&reason.as_bytes()[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_written_up_to_the_maximum_length() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        let (nobody, log_problem) = TerminationLog::open(&file, true);
        nobody.write("x");
        assert!(!file.exists() && log_problem.is_none());

        for (reason, written) in [
            ("failed to listen: no".to_owned(), "failed to listen: no".to_owned()),
            ("é".repeat(3000), "é".repeat(MAX_BYTES / 2)),
            // A shorter reason replaces a longer one.
            ("no".to_owned(), "no".to_owned()),
        ] {
            let (termination_log, log_problem) = TerminationLog::open(&file, false);
            termination_log.write(&reason);
            assert_eq!((std::fs::read_to_string(&file).unwrap(), log_problem), (written, None));
        }
        let (_, log_problem) = TerminationLog::open(folder.path(), false);
        assert_eq!(log_problem.as_deref(), Some("is a directory"));
    }
}
