//! File system errors in Go's form.

use std::io;

/// An operation on a file or a folder failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {}", mainstay_gocompat::io_error_text(source))]
pub(crate) struct PathError {
    /// The operation, such as `open`.
    operation: &'static str,
    /// The path, as it was typed.
    path: String,
    /// The error of the system.
    source: io::Error,
}

impl PathError {
    /// The error of an operation on a path.
    pub(crate) fn of(
        operation: &'static str,
        path: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { operation, path, source }
    }
}

/// A temporary folder cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("create tempdir: {}", mainstay_gocompat::io_error_text(.0))]
pub(crate) struct TempDirError(#[from] io::Error);
