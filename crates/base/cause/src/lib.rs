//! Why something is refused, or what it waits for.
//!
//! A [`Cause`] is a small tree: *what was wanted*, below it *what stood in the way*, and at any
//! node the *place* (file, line, column) and the *remedies*. One tree feeds what people read in a
//! line (its `Display`), such as the message of a failed resolution, and the diagnostic in a
//! terminal ([`Cause::render`], indented). Because both are functions of the tree alone, the same
//! world gives the same bytes.
//!
//! What this does not do: decide what is API. Where other software reads a message, the code that
//! writes the condition keeps upstream's prefix and puts the tree behind it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A position in a file; lines and columns count from one, zero means unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Line, from one; zero if only the file is known.
    pub line: usize,
    /// Column in characters, from one; zero if only the line is known.
    pub column: usize,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// A position in a file.
    pub fn at(file: impl Into<PathBuf>, line: usize, column: usize) -> Self {
        Self { file: file.into(), line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

impl From<&Path> for Place {
    fn from(file: &Path) -> Self {
        Self::file(file)
    }
}

/// A node of the tree. Texts have no final full stop, so that they can stand inside a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    what: String,
    place: Option<Place>,
    remedies: Vec<String>,
    because: Vec<Self>,
}

impl Cause {
    /// Something that was wanted, or that stands in the way.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: None, remedies: Vec::new(), because: Vec::new() }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Says what would mend it, as an instruction; of several each one alone is enough, the nearest
    /// comes first.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedies.push(remedy.into());
        self
    }

    /// Adds something that stood in the way of this.
    #[must_use]
    pub fn because(mut self, cause: Self) -> Self {
        self.because.push(cause);
        self
    }

    /// Adds everything that stood in the way of this, in the order given.
    #[must_use]
    pub fn because_all(mut self, causes: impl IntoIterator<Item = Self>) -> Self {
        self.because.extend(causes);
        self
    }

    /// The text of this node alone.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where, if known.
    pub const fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// What would mend it, as far as known; each one alone is enough.
    pub fn remedies(&self) -> &[String] {
        &self.remedies
    }

    /// What stood in the way.
    pub fn children(&self) -> &[Self] {
        &self.because
    }

    /// The tree for a terminal: a node a line, children indented below it with `because`, the
    /// remedies behind arrows. Ends with a newline.
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.render_into(&mut out, 0);
        out
    }

    fn render_into(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        out.push_str(&indent);
        if depth > 0 {
            out.push_str("because ");
        }
        if let Some(place) = &self.place {
            out.push_str(&place.to_string());
            out.push_str(": ");
        }
        // A text of several lines keeps its shape below its own indent.
        let mut lines = self.what.lines();
        out.push_str(lines.next().unwrap_or_default());
        out.push('\n');
        for line in lines {
            out.push_str(&indent);
            out.push_str("    ");
            out.push_str(line);
            out.push('\n');
        }
        for cause in &self.because {
            cause.render_into(out, depth + 1);
        }
        for remedy in &self.remedies {
            out.push_str(&indent);
            out.push_str("  → ");
            out.push_str(remedy);
            out.push('\n');
        }
    }
}

impl fmt::Display for Cause {
    /// The tree in one line: `place: what: first; second (remedy, or another)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        for (at, line) in self.what.lines().enumerate() {
            write!(f, "{}{line}", if at == 0 { "" } else { " " })?;
        }
        for (at, cause) in self.because.iter().enumerate() {
            f.write_str(if at == 0 { ": " } else { "; " })?;
            write!(f, "{cause}")?;
        }
        if !self.remedies.is_empty() {
            write!(f, " ({})", self.remedies.join(", or "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Cause {}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Cause {
        Cause::new("catalog `community` cannot be read")
            .because(
                Cause::new("channel `stable` has two heads: `a.v2` and `a.v3`")
                    .at(Place::at("packages/a.yaml", 14, 3))
                    .remedy("let one of them replace or skip the other"),
            )
            .because(
                Cause::new("the file is not UTF-8\nbyte 0xff at offset 12")
                    .at(Place::file("b.bin"))
                    .remedy("write it as UTF-8")
                    .remedy("name it in `.indexignore`"),
            )
    }

    #[test]
    fn one_line_for_conditions() {
        insta::assert_snapshot!(tree(), @"catalog `community` cannot be read: packages/a.yaml:14:3: channel `stable` has two heads: `a.v2` and `a.v3` (let one of them replace or skip the other); b.bin: the file is not UTF-8 byte 0xff at offset 12 (write it as UTF-8, or name it in `.indexignore`)");
    }

    #[test]
    fn a_tree_for_terminals() {
        insta::assert_snapshot!(tree().render(), @"
        catalog `community` cannot be read
          because packages/a.yaml:14:3: channel `stable` has two heads: `a.v2` and `a.v3`
            → let one of them replace or skip the other
          because b.bin: the file is not UTF-8
              byte 0xff at offset 12
            → write it as UTF-8
            → name it in `.indexignore`
        ");
    }
}
