//! The termination log: where a pod tells why it ended.

use super::super::go;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// More is not read from a termination log.
const MOST: usize = 4096;

/// The log, opened while the program can still complain that this fails.
pub(in super::super) struct LastWords(Option<File>);

impl LastWords {
    /// Opens the log, and says why not if that fails. What must exist and does not is no trouble:
    /// then nobody wants it.
    pub(in super::super) fn open(path: &Path, must_exist: bool) -> (Self, Option<String>) {
        let mut options = OpenOptions::new();
        match options.write(true).create(!must_exist).truncate(false).open(path) {
            Ok(file) => (Self(Some(file)), None),
            Err(_) if must_exist => (Self(None), None),
            Err(error) => (Self(None), Some(go::reason(&error))),
        }
    }

    /// Writes the reason, as much of it as will be read.
    pub(in super::super) fn say(self, reason: &str) {
        let Some(mut file) = self.0 else { return };
        let end = reason.floor_char_boundary(MOST);
        // There is nobody left to tell if this fails; the log has it.
        // What is no file cannot be cut, and need not be.
        let _ = file.set_len(0);
        let _ = file.write_all(&reason.as_bytes()[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_written_as_far_as_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        let (nobody, trouble) = LastWords::open(&file, true);
        nobody.say("x");
        assert!(!file.exists() && trouble.is_none());

        for (reason, written) in [
            ("failed to listen: no".to_owned(), "failed to listen: no".to_owned()),
            ("é".repeat(3000), "é".repeat(MOST / 2)),
            // Nothing of a longer reason stays behind it.
            ("no".to_owned(), "no".to_owned()),
        ] {
            let (last, trouble) = LastWords::open(&file, false);
            last.say(&reason);
            assert_eq!((std::fs::read_to_string(&file).unwrap(), trouble), (written, None));
        }
        let (_, trouble) = LastWords::open(folder.path(), false);
        assert_eq!(trouble.as_deref(), Some("is a directory"));
    }
}
