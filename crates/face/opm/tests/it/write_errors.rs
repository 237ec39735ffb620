//! Write errors: a run with incomplete output fails, and leaves no valid catalog behind.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clitest::{SOUND_CATALOG, TestFolder, block_on};
use mainstay_clock::Clock;
use mainstay_opm::CommandIo;
use std::{
    fs,
    io::{self, Write},
};

/// A writer that fails with an error after so many bytes.
struct LimitedWriter(usize, io::ErrorKind);

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0);
        self.0 -= fits;
        if fits == 0 && !bytes.is_empty() { Err(self.1.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run_opm(folder: &TestFolder, arguments: &str, mut stdout: impl Write) -> (u8, String) {
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let mut stderr = Vec::new();
    let mut empty = io::empty();
    let mut io = CommandIo {
        stdin: &mut empty,
        stdout: &mut stdout,
        stderr: &mut stderr,
        folder: folder.path().to_owned(),
        alpha: true,
        terminal: false,
        clock: Clock::system(),
        environment: &|_| None,
    };
    let code = block_on(mainstay_opm::run(&arguments, &mut io));
    (code, String::from_utf8(stderr).unwrap())
}

#[test]
fn opm_fails_when_its_output_does_not_fit_on_the_disk() {
    let folder = TestFolder::with(SOUND_CATALOG);
    for command in ["render c", "render -o yaml c", "alpha list packages c", "init foo"] {
        for limit in [0, 20] {
            let (code, stderr) =
                run_opm(&folder, command, LimitedWriter(limit, io::ErrorKind::StorageFull));
            assert_eq!(code, 1, "{command}: {stderr}");
            assert!(stderr.contains("write /dev/stdout: "), "{command}: {stderr}");
        }
        // A reader that closes the pipe is no error.
        let (code, stderr) =
            run_opm(&folder, command, LimitedWriter(20, io::ErrorKind::BrokenPipe));
        assert_eq!((code, stderr.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn an_incomplete_migration_leaves_no_valid_catalog() {
    // A name that is too long for a folder, after one that is written.
    let long = "p".repeat(300);
    let blob = format!("---\nschema: example.com.note\npackage: {long}\n");
    let folder = TestFolder::with(SOUND_CATALOG).file("c/note.yaml", blob);
    let (code, stderr) = run_opm(&folder, "migrate c out", io::sink());
    assert!(code == 1 && stderr.contains("mkdir out"), "{stderr}");
    let out = folder.path().join("out");
    assert!(fs::read_dir(&out).unwrap().count() > 1, "something was written");
    let refused = Catalog::load(&out, &LoadOptions::default()).unwrap_err();
    assert_eq!(&*refused.problems[0].file, ".unfinished", "{refused}");
    let (code, _) = run_opm(&TestFolder::with(SOUND_CATALOG), "migrate c out", io::sink());
    assert_eq!(code, 0);
}

#[test]
fn a_complete_migration_leaves_only_the_catalog() {
    let folder = TestFolder::with(SOUND_CATALOG);
    let (code, stderr) = run_opm(&folder, "migrate c out", io::sink());
    assert_eq!(code, 0, "{stderr}");
    let left: Vec<_> = fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["foo"]);
}
