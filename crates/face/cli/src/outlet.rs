//! Where results go.

use std::io::{self, Write};

/// Standard output that remembers what went wrong with it first. A result that is cut off must not
/// look like one that is whole; whoever reads no further, as in `… | head`, has what they want.
pub(crate) struct Outlet<'o> {
    inner: &'o mut dyn Write,
    failed: Option<io::Error>,
}

impl<'o> Outlet<'o> {
    /// Writes there.
    pub(crate) fn new(inner: &'o mut dyn Write) -> Self {
        Self { inner, failed: None }
    }

    /// Why the result is not whole, if somebody waits for it.
    pub(crate) fn trouble(self) -> Option<io::Error> {
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

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.note(flushed)
    }
}
