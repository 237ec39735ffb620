//! What can be wrong with a bundle, and how it is said: in upstream's words, and in ours with the
//! place and a remedy.

use std::{borrow::Cow, fmt};

/// One thing that is wrong with a bundle, or that upstream would drop without a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleProblem {
    /// The file or folder, below the bundle's folder.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
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

    /// The same problem, with words before what upstream says.
    #[must_use]
    pub fn with_prefix(mut self, before: &str) -> Self {
        self.upstream.insert_str(0, before);
        self
    }

    /// The same problem, with what was found before it.
    #[must_use]
    pub(crate) fn with_skipped_content(mut self, found: Vec<BundleProblem>) -> Self {
        self.skipped_content = found;
        self
    }

    /// What was passed over before, such as files that cannot be decoded: it may be why something is
    /// missing.
    pub fn skipped_content(&self) -> &[BundleProblem] {
        &self.skipped_content
    }

    /// What upstream's `opm render` says, without the reference in front.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// What is wrong, where, and what to do.
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
