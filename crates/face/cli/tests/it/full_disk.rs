//! Output that cannot be written completely: the command must fail.

use clap::Parser;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{SOUND_CATALOG, TestFolder, block_on, no_cluster};
use mainstay_command::io::CommandIo;
use mainstay_content::catalog;
use std::io::{self, Write};

/// A writer that fails after a number of bytes, like a full disk or a closed pipe.
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

fn catalog_into(place: &TestFolder, arguments: &str, mut stdout: impl Write) -> (u8, String) {
    let words = ["mainstay", "catalog"].into_iter().chain(arguments.split(' '));
    let Command::Catalog(arguments) = Arguments::parse_from(words).command else {
        unreachable!("it was typed")
    };
    let mut stderr = Vec::new();
    let stdin = &mut io::empty();
    let mut io = CommandIo::unattended(stdin, &mut stdout, &mut stderr, place.path());
    let exit = block_on(catalog::run(arguments, &mut io, no_cluster));
    (exit as u8, String::from_utf8(stderr).unwrap())
}

#[test]
fn output_on_a_full_disk_is_a_failure() {
    let place = TestFolder::with(SOUND_CATALOG);
    for command in [
        "validate c",
        "list packages c",
        "show c foo",
        "render c",
        "render -o yaml c",
        "render -o name c",
    ] {
        for room in [0, 5] {
            let (code, said) =
                catalog_into(&place, command, LimitedWriter(room, io::ErrorKind::StorageFull));
            assert_eq!(code, 1, "{command}: {said}");
            assert!(said.contains("the output cannot be written"), "{command}: {said}");
        }
        let (code, said) =
            catalog_into(&place, command, LimitedWriter(5, io::ErrorKind::BrokenPipe));
        assert_eq!((code, said.as_str()), (0, ""), "{command}");
    }
}
