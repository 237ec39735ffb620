//! What an archive can be large in.

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

/// How large an image may be when it is unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all layers together, not compressed.
    pub bytes: u64,
    /// How many times larger than its compressed form a layer may be …
    pub ratio: u64,
    /// … once it has unpacked to this many bytes.
    pub ratio_from: u64,
    /// Entries of all layers together.
    pub entries: usize,
    /// Bytes of all names together.
    pub names: usize,
    /// Folders above each other.
    pub depth: usize,
    /// Bytes of a part of a name.
    pub component: usize,
    /// Bytes of a name.
    pub path: usize,
}

impl Default for Limits {
    /// What the largest published catalogs need ten times over.
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

/// Counts what is read.
pub(super) struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R> Counted<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, count: Rc::default() }
    }

    pub(super) fn count(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.count)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

/// A text that says what there is too much of; it travels as an I/O error through the readers.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TooMuch(String);

/// Hashes what a layer unpacks to, and stops when it is too much.
pub(super) struct Guard<R> {
    inner: R,
    consumed: Rc<Cell<u64>>,
    limits: Limits,
    before: u64,
    made: u64,
    hasher: Hasher,
}

impl<R> Guard<R> {
    /// `consumed` counts what the layer was read from, `before` is what earlier layers had.
    pub(super) fn new(
        inner: R,
        consumed: Rc<Cell<u64>>,
        limits: Limits,
        before: u64,
        algorithm: Algorithm,
    ) -> Self {
        Self { inner, consumed, limits, before, made: 0, hasher: Hasher::new(algorithm) }
    }

    /// What all layers had so far, and the hasher of this one.
    pub(super) fn finish(self) -> (u64, Hasher) {
        (self.before + self.made, self.hasher)
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.made += count as u64;
        self.hasher.update(&buffer[..count]);
        let limits = &self.limits;
        let too_much = if self.before + self.made > limits.bytes {
            format!("it unpacks to more than {} bytes", limits.bytes)
        } else if self.made > limits.ratio_from
            && self.made / limits.ratio.max(1) > self.consumed.get()
        {
            format!("it unpacks to more than {} times its size", limits.ratio)
        } else {
            return Ok(count);
        };
        Err(io::Error::other(TooMuch(too_much)))
    }
}

/// What an error of a reader means.
pub(super) fn error(layer: usize, error: io::Error) -> UnpackError {
    let inner = error.get_ref();
    if let Some(TooMuch(why)) = inner.and_then(|inner| inner.downcast_ref()) {
        return UnpackError::Bomb { layer, why: why.clone() };
    }
    let truncated = error.kind() == io::ErrorKind::UnexpectedEof;
    let source = if truncated { TarError::Truncated } else { TarError::Io(error) };
    UnpackError::Archive { layer, source }
}
