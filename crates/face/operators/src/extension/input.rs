//! Standard input of the command: files named `-`, and the answers of a person.

use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::{CommandIo, place_of};
use mainstay_gocompat::io_error_text;
use std::fs::File;
use std::io::{self, Read};

/// The largest size of a file, in bytes: more than an object of a cluster can have.
const MAX_BYTES: u64 = 4 << 20;

/// Asks a question on standard error; true for `y` and `yes`.
pub(super) fn confirm(io: &mut CommandIo<'_>, question: &str) -> bool {
    let _ = io.stdout.flush();
    let _ = write!(io.stderr, "{question} [y/N] ");
    let _ = io.stderr.flush();
    let mut line = Vec::new();
    let mut byte = [0];
    while matches!(io.stdin.read(&mut byte), Ok(1)) && byte != *b"\n" && line.len() < 100 {
        line.push(byte[0]);
    }
    matches!(line.trim_ascii().to_ascii_lowercase().as_slice(), b"y" | b"yes")
}

/// Reads a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is too large.
pub(super) fn read_file(io: &mut CommandIo<'_>, file: &str) -> Result<Vec<u8>, CommandFailure> {
    let read = match file {
        "-" => read_limited(&mut *io.stdin),
        file => File::open(io.folder.join(file)).and_then(|mut file| read_limited(&mut file)),
    };
    read.map_err(|error| {
        let cause = Cause::new(io_error_text(&error)).at(place_of(file));
        CommandFailure::usage(cause.remedy("name a file with YAML or JSON, or `-`"))
    })
}

fn read_limited(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("the file has more than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}
