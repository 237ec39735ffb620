//! Limits on the size of archives.

use super::UnpackError;
use crate::{
    digest::{Algorithm, Hasher},
    tar::TarError,
};
use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// The limits of an unpacked image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all uncompressed layers together.
    pub bytes: u64,
    /// How many times larger than its compressed form a layer may be,
    pub ratio: u64,
    /// once it has more than this number of uncompressed bytes.
    pub ratio_from: u64,
    /// Entries of all layers together.
    pub entries: usize,
    /// Bytes of all names together.
    pub names: usize,
    /// The nesting of folders.
    pub depth: usize,
    /// Bytes of a component of a name.
    pub component: usize,
    /// Bytes of a name.
    pub path: usize,
}

impl Default for Limits {
    /// Ten times what the largest published catalogs need.
    fn default() -> Self {
        Self {
            bytes: 8 << 30,
            ratio: 200,
            ratio_from: 16 << 20,
            entries: 500_000,
            names: 64 << 20,
            depth: 64,
            component: 255,
            path: 3072,
        }
    }
}

/// Counts the bytes that are read.
pub(super) struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R> CountingReader<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, count: Rc::default() }
    }

    pub(super) fn count(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.count)
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

/// The exceeded limit, as an I/O error that passes through the readers.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct LimitError(String);

/// Hashes the content of a layer, and stops at a limit.
pub(super) struct LimitedReader<R> {
    inner: R,
    consumed: Rc<Cell<u64>>,
    limits: Limits,
    before: u64,
    decompressed: u64,
    hasher: Hasher,
}

impl<R> LimitedReader<R> {
    /// `consumed` counts the compressed bytes of the layer, `before` is the size of earlier layers.
    pub(super) fn new(
        inner: R,
        consumed: Rc<Cell<u64>>,
        limits: Limits,
        before: u64,
        algorithm: Algorithm,
    ) -> Self {
        Self { inner, consumed, limits, before, decompressed: 0, hasher: Hasher::new(algorithm) }
    }

    /// The size of all layers so far, and the hasher of this one.
    pub(super) fn finish(self) -> (u64, Hasher) {
        (self.before + self.decompressed, self.hasher)
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.decompressed += count as u64;
        self.hasher.update(&buffer[..count]);
        let limits = &self.limits;
        let exceeded = if self.before + self.decompressed > limits.bytes {
            format!("it unpacks to more than {} bytes", limits.bytes)
        } else if self.decompressed > limits.ratio_from
            && self.decompressed / limits.ratio.max(1) > self.consumed.get()
        {
            format!("it unpacks to more than {} times its size", limits.ratio)
        } else {
            return Ok(count);
        };
        Err(io::Error::other(LimitError(exceeded)))
    }
}

/// The meaning of a reader's error.
pub(super) fn error(layer: usize, error: io::Error) -> UnpackError {
    let inner = error.get_ref();
    if let Some(LimitError(why)) = inner.and_then(|inner| inner.downcast_ref()) {
        return UnpackError::LimitExceeded { layer, why: why.clone() };
    }
    let truncated = error.kind() == io::ErrorKind::UnexpectedEof;
    let source = if truncated { TarError::Truncated } else { TarError::Io(error) };
    UnpackError::Archive { layer, source }
}
