//! Source text of an expression, positions in it, and errors with positions.

use std::fmt;
use std::sync::Arc;

/// The text of an expression.
///
/// Positions are counted in Unicode code points from the start, as everywhere in CEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionSource {
    text: Arc<str>,
    /// The position after each line feed, as code point and as byte.
    lines: Arc<[(u32, usize)]>,
}

/// A line and a column. Lines count from one, columns from zero, in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The line, from one.
    pub line: u32,
    /// Code points before it in its line; −1 for no position.
    pub column: i32,
}

/// The position of nodes for text that could not be parsed. Messages show it before the first
/// column.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl ExpressionSource {
    /// A source with its line index.
    pub fn new(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut at = 0_u32;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let before = lines.last().map_or(0, |(_, byte)| *byte);
            // The parser rejects texts of 2^32 code points and more.
            at = at.saturating_add(u32::try_from(line.chars().count()).unwrap_or(u32::MAX));
            lines.push((at, before + line.len()));
        }
        Self { text: text.into(), lines: lines.into() }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a code point.
    pub fn location(&self, at: u32) -> SourceLocation {
        if at == NOWHERE || self.text.is_empty() {
            return SourceLocation { line: 1, column: -1 };
        }
        let line = self.lines.partition_point(|(start, _)| *start <= at);
        let start = if line == 0 { 0 } else { self.lines[line - 1].0 };
        SourceLocation {
            line: u32::try_from(line + 1).unwrap_or(u32::MAX),
            column: i32::try_from(at - start).unwrap_or(i32::MAX),
        }
    }

    /// The text of a line, counted from one, without its line feed.
    pub fn line(&self, line: u32) -> Option<&str> {
        let index = line.checked_sub(1)? as usize;
        let start = if index == 0 { 0 } else { self.lines.get(index - 1)?.1 };
        let end = self.lines.get(index).map_or(self.text.len(), |(_, next)| next - 1);
        self.text.get(start..end)
    }
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileIssue {
    /// The position; none for the whole expression (`-1:0` in messages).
    pub at: Option<SourceLocation>,
    /// The message.
    pub message: String,
}

/// All errors in an expression, in the order of their positions.
///
/// Displayed as by Kubernetes: each with its line and a mark below the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: ExpressionSource,
    found: Vec<CompileIssue>,
    /// The number of further errors.
    more: usize,
}

/// The number of errors that are displayed; further ones are counted (cel-go's limit).
const MAX_ISSUES: usize = 100;

/// The longest line that is displayed, in bytes (cel-go's limit).
const MAX_LINE_BYTES: usize = 16_384;

impl Issues {
    /// Sorts errors by position. Errors at one position keep the order in which they were found.
    pub fn new(source: ExpressionSource, mut issues: Vec<CompileIssue>) -> Self {
        let more = issues.len().saturating_sub(MAX_ISSUES);
        issues.truncate(MAX_ISSUES);
        issues.sort_by_key(|issue| issue.at);
        Self { source, found: issues, more }
    }

    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &CompileIssue> {
        self.found.iter()
    }
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.found.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let Some(at) = issue.at else {
                write!(f, "ERROR: <input>:-1:0: {}", issue.message)?;
                continue;
            };
            // Messages count columns from one.
            write!(f, "ERROR: <input>:{}:{}: {}", at.line, at.column + 1, issue.message)?;
            let Some(line) = self.source.line(at.line) else { continue };
            if self.source.text.is_empty() || line.len() > MAX_LINE_BYTES {
                continue;
            }
            let line = line.replace('\t', " ");
            write!(f, "\n | {line}\n | ")?;
            let column = usize::try_from(at.column).unwrap_or(0);
            for character in line.chars().take(column) {
                f.write_str(if character.len_utf8() > 1 { "．" } else { "." })?;
            }
            f.write_str(match line.chars().nth(column) {
                Some(character) if character.len_utf8() > 1 => "＾",
                _ => "^",
            })?;
        }
        if self.more > 0 {
            write!(f, "\n{} more errors were truncated", self.more)?;
        }
        Ok(())
    }
}
