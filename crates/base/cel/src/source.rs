//! The text of an expression, places in it, and what is wrong at them.

use std::fmt;
use std::sync::Arc;

/// The text of an expression.
///
/// Places are counted in Unicode code points from its start, as everywhere in the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    text: Arc<str>,
    /// The code point after each line feed.
    lines: Arc<[u32]>,
}

/// A line and a column. Lines count from one, columns from zero, in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, from one.
    pub line: u32,
    /// Code points before it in its line.
    pub column: u32,
}

impl Source {
    /// Takes a text.
    pub fn new(text: &str) -> Self {
        let lines = text
            .chars()
            .enumerate()
            .filter(|(_, character)| *character == '\n')
            // A text has fewer than 2^32 code points or is refused by the parser before.
            .filter_map(|(at, _)| u32::try_from(at + 1).ok())
            .collect();
        Self { text: text.into(), lines }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a code point.
    pub fn location(&self, at: u32) -> Location {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = if line == 0 { 0 } else { self.lines[line - 1] };
        Location { line: u32::try_from(line + 1).unwrap_or(u32::MAX), column: at - start }
    }

    /// The text of a line, counted from one, without its line feed.
    pub fn line(&self, line: u32) -> Option<&str> {
        self.text.split('\n').nth(line.checked_sub(1)? as usize)
    }
}

/// Something that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Where; none where no place can be named (`-1:0` in texts).
    pub at: Option<Location>,
    /// What.
    pub message: String,
}

/// All that is wrong with an expression, in the order of its places.
///
/// Shown as Kubernetes shows it: each with the line it is in and a mark below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: Source,
    issues: Vec<Issue>,
    /// How many there are beyond these.
    more: usize,
}

/// Those beyond the first that were found are counted, not shown (cel-go's limit).
const SHOWN: usize = 100;

impl Issues {
    /// Collects what is wrong with a text, in the order in which it was found; of those at one
    /// place, this order stays.
    pub fn new(source: Source, mut issues: Vec<Issue>) -> Self {
        let more = issues.len().saturating_sub(SHOWN);
        issues.truncate(SHOWN);
        issues.sort_by_key(|issue| issue.at.map_or((-1, 0), |at| (i64::from(at.line), at.column)));
        Self { source, issues, more }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let Some(at) = issue.at else {
                write!(f, "ERROR: <input>:-1:0: {}", issue.message)?;
                continue;
            };
            write!(f, "ERROR: <input>:{}:{}: {}", at.line, at.column + 1, issue.message)?;
            let Some(line) = self.source.line(at.line) else { continue };
            let line = line.replace('\t', " ");
            write!(f, "\n | {line}\n | ")?;
            for character in line.chars().take(at.column as usize) {
                f.write_str(if character.len_utf8() > 1 { "．" } else { "." })?;
            }
            f.write_str(match line.chars().nth(at.column as usize) {
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
