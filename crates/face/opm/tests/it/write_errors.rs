//! Results that cannot be written, or not to their end: no run ends well then, and nothing that is
//! left behind passes for a catalog.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clitest::{SOUND_CATALOG, TestFolder, block_on};
use mainstay_clock::Clock;
use mainstay_opm::CommandIo;
use std::{
    fs,
    io::{self, Write},
};

/// A disk that is full after so many bytes, or a reader that has gone away.
struct Full(usize, io::ErrorKind);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0);
        self.0 -= fits;
        if fits == 0 && !bytes.is_empty() { Err(self.1.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn opm_into(place: &TestFolder, arguments: &str, mut stdout: impl Write) -> (u8, String) {
    let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    let mut stderr = Vec::new();
    let mut empty = io::empty();
    let mut io = CommandIo {
        stdin: &mut empty,
        stdout: &mut stdout,
        stderr: &mut stderr,
        folder: place.path().to_owned(),
        alpha: true,
        terminal: false,
        clock: Clock::system(),
        environment: &|_| None,
    };
    let code = block_on(mainstay_opm::run(&arguments, &mut io));
    (code, String::from_utf8(stderr).unwrap())
}

#[test]
fn what_does_not_fit_on_the_disk_is_no_success() {
    let place = TestFolder::with(SOUND_CATALOG);
    for command in ["render c", "render -o yaml c", "alpha list packages c", "init foo"] {
        for room in [0, 20] {
            let (code, said) = opm_into(&place, command, Full(room, io::ErrorKind::StorageFull));
            assert_eq!(code, 1, "{command}: {said}");
            assert!(said.contains("write /dev/stdout: "), "{command}: {said}");
        }
        // A reader that has enough closes the pipe.
        let (code, said) = opm_into(&place, command, Full(20, io::ErrorKind::BrokenPipe));
        assert_eq!((code, said.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn a_migration_that_ends_too_early_leaves_nothing_that_passes_for_a_catalog() {
    // A name that no folder can have, behind one that is written well.
    let long = "p".repeat(300);
    let blob = format!("---\nschema: example.com.note\npackage: {long}\n");
    let place = TestFolder::with(SOUND_CATALOG).file("c/note.yaml", blob);
    let (code, said) = opm_into(&place, "migrate c out", io::sink());
    assert!(code == 1 && said.contains("mkdir out"), "{said}");
    let out = place.path().join("out");
    assert!(fs::read_dir(&out).unwrap().count() > 1, "something was written");
    let refused = Catalog::load(&out, &LoadOptions::default()).unwrap_err();
    assert_eq!(&*refused.problems[0].file, ".unfinished", "{refused}");
    let (code, _) = opm_into(&TestFolder::with(SOUND_CATALOG), "migrate c out", io::sink());
    assert_eq!(code, 0);
}

#[test]
fn a_migration_to_its_end_leaves_the_catalog_and_nothing_else() {
    let place = TestFolder::with(SOUND_CATALOG);
    let (code, said) = opm_into(&place, "migrate c out", io::sink());
    assert_eq!(code, 0, "{said}");
    let left: Vec<_> = fs::read_dir(place.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["foo"]);
}
