//! Errors of bundles: upstream's message, and our own with file, line and remedy.

use std::{borrow::Cow, fmt};

/// A problem of a bundle, or content of it that upstream drops silently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleProblem {
    /// The file or folder, below the bundle's folder.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub remedy: Cow<'static, str>,
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {} ({})", self.message, self.remedy)
    }
}

/// Why a bundle cannot be read or declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleError {
    upstream: String,
    problem: Box<BundleProblem>,
    skipped_content: Vec<BundleProblem>,
}

impl BundleError {
    pub(crate) fn new(upstream: impl Into<String>, problem: BundleProblem) -> Self {
        Self { upstream: upstream.into(), problem: Box::new(problem), skipped_content: Vec::new() }
    }

    /// The error with a prefix to upstream's message.
    #[must_use]
    pub fn with_prefix(mut self, before: &str) -> Self {
        self.upstream.insert_str(0, before);
        self
    }

    /// The error with the content that was skipped before it.
    #[must_use]
    pub(crate) fn with_skipped_content(mut self, found: Vec<BundleProblem>) -> Self {
        self.skipped_content = found;
        self
    }

    /// Content that was skipped before the error, such as files that cannot be decoded. It may be
    /// the cause of a missing object.
    pub fn skipped_content(&self) -> &[BundleProblem] {
        &self.skipped_content
    }

    /// The message of `opm render`, without the reference in front.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// The problem with its location and remedy.
    pub fn problem(&self) -> &BundleProblem {
        &self.problem
    }
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for BundleError {}
