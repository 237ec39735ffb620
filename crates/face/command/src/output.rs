//! Output sinks: standard output that remembers its first error.

use std::io::{self, Write};

/// A sink that remembers the first error of its writer. A result that is cut off must not look like a
/// whole one. A reader that closes the pipe, as in `… | head`, is not an error.
pub struct OutputSink<'o> {
    inner: &'o mut dyn Write,
    failed: Option<io::Error>,
}

impl<'o> OutputSink<'o> {
    /// A sink that writes to `inner`.
    pub fn new(inner: &'o mut dyn Write) -> Self {
        Self { inner, failed: None }
    }

    /// The first error, unless the reader closed the pipe.
    pub fn error(self) -> Option<io::Error> {
        self.failed.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = error
                .raw_os_error()
                .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            self.failed.get_or_insert(error);
            copy
        })
    }
}

impl Write for OutputSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.note(flushed)
    }
}
