//! What can be wrong with a catalog, and how it is said.
//!
//! A problem names the place a person has to look at and what to do there. Where upstream's tools
//! have words for it, the message is theirs: scripts and search engines know them.

use crate::{
    content::Origin,
    rule::{Rule, Severity},
};
use std::{borrow::Cow, fmt, sync::Arc};

/// One thing that is wrong with a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is.
    pub rule: Rule,
    /// The document it is about, as far as it is known.
    pub blob: Option<BlobName>,
    /// The file, below the catalog's folder; the folder itself where no file can be named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: Cow<'static, str>,
}

/// What a document of a catalog is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// Its schema, such as `olm.bundle`.
    pub schema: Arc<str>,
    /// The package it says it belongs to; may be empty.
    pub package: Arc<str>,
    /// Its name; may be empty.
    pub name: Arc<str>,
}

impl fmt::Display for BlobName {
    /// The schema, and what tells it from others of its schema.
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

impl Problem {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    pub(crate) fn of_file(
        rule: Rule,
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        // One line per problem, whatever a name or a message carries.
        write!(f, ": {}", self.message.replace('\n', " "))?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a catalog, in the order of files and lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The problems.
    pub problems: Vec<Problem>,
    /// What upstream says, if it says anything.
    upstream: Option<String>,
}

impl LoadError {
    pub(crate) fn new(problems: Vec<Problem>, upstream: Option<String>) -> Self {
        Self { problems, upstream }
    }

    /// What upstream's opm says to the same catalog: the one thing that stops it, or the tree of
    /// what is wrong, the children of each node sorted. Where it answers at random, one of its
    /// answers; where it finds nothing wrong and we do, [`LoadError::headline`].
    pub fn upstream(&self) -> String {
        self.upstream.clone().unwrap_or_else(|| self.headline())
    }

    /// The first problem and how many more there are: one line for a status message.
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

/// A part of a document, for finding its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Field(&'static str),
    Item(usize),
}

/// A problem inside a blob, before its exact line is known.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) rule: Rule,
    pub(crate) blob: BlobName,
    pub(crate) origin: Origin,
    /// The bytes of the document in its file.
    pub(crate) bytes: std::ops::Range<usize>,
    /// Where in the document.
    pub(crate) path: Vec<Part>,
    pub(crate) message: String,
    pub(crate) remedy: Cow<'static, str>,
    /// The problem may only be the shadow of a file that could not be read.
    pub(crate) follows_from_gaps: bool,
}
