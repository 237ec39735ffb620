//! Problems of a catalog, and how they are displayed.
//!
//! A problem names the place and the remedy. Where upstream's tools have a message for it, the
//! problem uses that message: scripts and search engines know it.

use crate::{
    content::BlobOrigin,
    rule::{CatalogRule, Severity},
};
use std::{borrow::Cow, fmt, sync::Arc};

/// One problem of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogProblem {
    /// The rule that is broken.
    pub rule: CatalogRule,
    /// The document with the problem, as far as it is known.
    pub blob: Option<BlobName>,
    /// The file, below the catalog's folder; the folder itself where no file can be named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: Cow<'static, str>,
}

/// Schema, package and name of a catalog document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// Its schema, such as `olm.bundle`.
    pub schema: Arc<str>,
    /// The package that it names; may be empty.
    pub package: Arc<str>,
    /// Its name; may be empty.
    pub name: Arc<str>,
}

impl fmt::Display for BlobName {
    /// The schema, the package and the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.schema)?;
        if !self.package.is_empty() && self.package != self.name {
            write!(f, " {}", self.package)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        Ok(())
    }
}

impl CatalogProblem {
    /// The severity of the rule.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    pub(crate) fn of_file(
        rule: CatalogRule,
        file: impl Into<Arc<str>>,
        message: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            rule,
            blob: None,
            file: file.into(),
            line: None,
            column: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        // One line for each problem, even if a name or a message has line breaks.
        write!(f, ": {}", self.message.replace('\n', " "))?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

/// All problems of a catalog, in the order of files and lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The problems.
    pub problems: Vec<CatalogProblem>,
    /// Upstream's message, if it has one.
    upstream: Option<String>,
}

impl LoadError {
    pub(crate) fn new(problems: Vec<CatalogProblem>, upstream: Option<String>) -> Self {
        Self { problems, upstream }
    }

    /// The message of upstream's opm for the same catalog: the error at which it stops, or the tree
    /// of its findings, with the children of each node sorted. Where upstream's answer is random,
    /// one of its answers. Where only Mainstay finds problems, [`LoadError::headline`].
    pub fn upstream(&self) -> String {
        self.upstream.clone().unwrap_or_else(|| self.headline())
    }

    /// The first problem and the number of others: one line for a status message.
    pub fn headline(&self) -> String {
        let Some(first) = self.problems.first() else {
            return String::new();
        };
        match self.problems.len() - 1 {
            0 => first.to_string(),
            1 => format!("{first}; and 1 more problem"),
            more => format!("{first}; and {more} more problems"),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// A part of a path in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathPart {
    Field(&'static str),
    Item(usize),
}

/// A problem inside a blob, before its exact line is known.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) rule: CatalogRule,
    pub(crate) blob: BlobName,
    pub(crate) origin: BlobOrigin,
    /// The bytes of the document in its file.
    pub(crate) bytes: std::ops::Range<usize>,
    /// The path in the document.
    pub(crate) path: Vec<PathPart>,
    pub(crate) message: String,
    pub(crate) remedy: Cow<'static, str>,
    /// The problem may follow from a file that could not be read.
    pub(crate) follows_from_gaps: bool,
}
