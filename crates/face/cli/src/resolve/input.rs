//! Files that are named on the command line, read up to a size limit.

use super::CommandIo;
use crate::exit::CommandFailure;
use mainstay_cause::{Cause, FileLocation};
use mainstay_gocompat::io_error_text;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest size of a file, in bytes: many times the output for a cluster with thousands of
/// operators.
const MAX_BYTES: u64 = 512 << 20;

/// Reads the text of a file; `-` is standard input.
///
/// # Errors
/// The file does not exist, is no file, is too large, or is not UTF-8.
pub(super) fn read_text(io: &mut CommandIo<'_>, argument: &str) -> Result<String, CommandFailure> {
    if argument.is_empty() {
        let cause = Cause::new("the name of a file is empty");
        return Err(CommandFailure::usage(cause.remedy("name a file that can be read, or `-`")));
    }
    let read = if argument == "-" {
        read_limited(&mut *io.stdin)
    } else {
        let path = io.folder.join(argument);
        open(&path).and_then(|mut file| read_limited(&mut file))
    };
    let bytes = read.map_err(|error| {
        refused(argument, &io_error_text(&error), "name a file that can be read")
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file has more than {} MiB", MAX_BYTES >> 20);
        return Err(refused(argument, &message, "remove objects that resolution does not need"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refused(argument, &format!("the file is not UTF-8: byte {at}"), "save it as UTF-8 text")
    })
}

fn open(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file"));
    }
    File::open(path)
}

fn read_limited(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The place of a file in messages.
pub(super) fn place_of(argument: &str) -> FileLocation {
    FileLocation::file(if argument == "-" { "<stdin>" } else { argument })
}

fn refused(argument: &str, why: &str, remedy: &str) -> CommandFailure {
    CommandFailure::usage(Cause::new(why).at(place_of(argument)).remedy(remedy))
}
