//! What the file system refuses, in the form in which Go says it.

use super::go;
use std::io;

/// The file system refused something of a file or a folder.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {}", go::reason(source))]
pub(crate) struct PathError {
    /// What was asked of it, such as `open`.
    operation: &'static str,
    /// The path, as it was typed.
    path: String,
    /// What it said.
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

/// There is no folder for what a command needs for a while.
#[derive(Debug, thiserror::Error)]
#[error("create tempdir: {}", go::reason(.0))]
pub(crate) struct TempDirError(#[from] io::Error);
