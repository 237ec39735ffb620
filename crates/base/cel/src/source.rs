//! The text of an expression, places in it, and what is wrong at them.

use std::fmt;
use std::sync::Arc;

/// The text of an expression.
///
/// Places are counted in Unicode code points from its start, as everywhere in the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionSource {
    text: Arc<str>,
    /// What follows each line feed: the code point, and the byte.
    lines: Arc<[(u32, usize)]>,
}

/// A line and a column. Lines count from one, columns from zero, in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The line, from one.
    pub line: u32,
    /// Code points before it in its line; −1 for what stands nowhere.
    pub column: i32,
}

/// The place of nodes that stand for what could not be read. It is shown before the first column.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl ExpressionSource {
    /// Takes a text.
    pub fn new(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut at = 0_u32;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let before = lines.last().map_or(0, |(_, byte)| *byte);
            // A text has fewer than 2^32 code points or is refused by the parser before.
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

/// Something that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileIssue {
    /// Where; none where no place can be named (`-1:0` in texts).
    pub at: Option<SourceLocation>,
    /// What.
    pub message: String,
}

/// All that is wrong with an expression, in the order of its places.
///
/// Shown as Kubernetes shows it: each with the line it is in and a mark below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: ExpressionSource,
    found: Vec<CompileIssue>,
    /// How many there are beyond these.
    more: usize,
}

/// Those beyond the first that were found are counted, not shown (cel-go's limit).
const SHOWN: usize = 100;

/// Longer lines (in bytes) are not shown (cel-go's limit).
const SHOWN_LINE: usize = 16_384;

impl Issues {
    /// Collects what is wrong with a text, in the order in which it was found; of those at one
    /// place, this order stays.
    pub fn new(source: ExpressionSource, mut issues: Vec<CompileIssue>) -> Self {
        let more = issues.len().saturating_sub(SHOWN);
        issues.truncate(SHOWN);
        issues.sort_by_key(|issue| issue.at);
        Self { source, found: issues, more }
    }

    /// Each of them.
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
            // Columns are shown from one.
            write!(f, "ERROR: <input>:{}:{}: {}", at.line, at.column + 1, issue.message)?;
            let Some(line) = self.source.line(at.line) else { continue };
            if self.source.text.is_empty() || line.len() > SHOWN_LINE {
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
