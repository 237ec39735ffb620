//! Diagnostics: trees of causes that explain a failure or a wait.
//!
//! A [`Cause`] is a small tree: the failed goal, below it the obstacles, and at any node the location
//! (file, line, column) and the remedies. One tree gives the message in one line (its `Display`), such
//! as that of a failed resolution, and the indented diagnostic in a terminal ([`Cause::render`]). Both
//! are functions of the tree alone, so the same input gives the same bytes.
//!
//! The tree does not decide which texts are API. Where other software reads a message, the code that
//! writes the condition keeps upstream's prefix and puts the tree behind it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A location in a file; lines and columns count from one, zero means unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLocation {
    /// The file.
    pub file: PathBuf,
    /// The line, from one; zero if only the file is known.
    pub line: usize,
    /// The column in characters, from one; zero if only the line is known.
    pub column: usize,
}

impl FileLocation {
    /// A whole file.
    pub fn file(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// A position in a file.
    pub fn at(file: impl Into<PathBuf>, line: usize, column: usize) -> Self {
        Self { file: file.into(), line, column }
    }
}

impl fmt::Display for FileLocation {
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

impl From<&Path> for FileLocation {
    fn from(file: &Path) -> Self {
        Self::file(file)
    }
}

/// A text as a word of a command line, in quotes where a shell needs them: for remedies to copy.
pub fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A node of the tree. Texts have no full stop at the end, so that they can stand inside a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    what: String,
    location: Option<FileLocation>,
    remedies: Vec<String>,
    because: Vec<Self>,
}

impl Cause {
    /// A cause with a text: a failed goal or an obstacle.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), location: None, remedies: Vec::new(), because: Vec::new() }
    }

    /// Sets the location.
    #[must_use]
    pub fn at(mut self, location: impl Into<FileLocation>) -> Self {
        self.location = Some(location.into());
        self
    }

    /// Adds a remedy, as an instruction. Each of several remedies is enough alone; the most likely one
    /// comes first.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedies.push(remedy.into());
        self
    }

    /// Adds an obstacle as a child.
    #[must_use]
    pub fn because(mut self, cause: Self) -> Self {
        self.because.push(cause);
        self
    }

    /// Adds obstacles as children, in the order given.
    #[must_use]
    pub fn because_all(mut self, causes: impl IntoIterator<Item = Self>) -> Self {
        self.because.extend(causes);
        self
    }

    /// The text of this node alone.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The location, if known.
    pub const fn location(&self) -> Option<&FileLocation> {
        self.location.as_ref()
    }

    /// The known remedies; each one alone is enough.
    pub fn remedies(&self) -> &[String] {
        &self.remedies
    }

    /// The obstacles.
    pub fn children(&self) -> &[Self] {
        &self.because
    }

    /// The tree for a terminal: one node per line, children indented below it with `because`, remedies
    /// behind arrows. Ends with a newline.
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
        if let Some(location) = &self.location {
            out.push_str(&location.to_string());
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
    /// The tree in one line: `location: what: first; second (remedy, or another)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
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
                    .at(FileLocation::at("packages/a.yaml", 14, 3))
                    .remedy("let one of them replace or skip the other"),
            )
            .because(
                Cause::new("the file is not UTF-8\nbyte 0xff at offset 12")
                    .at(FileLocation::file("b.bin"))
                    .remedy("write it as UTF-8")
                    .remedy("name it in `.indexignore`"),
            )
    }

    #[test]
    fn word_of_a_shell_is_quoted_where_it_has_to_be() {
        for (text, expected) in [
            ("cert-manager", "cert-manager"),
            ("", "''"),
            (">=1.0.0 <2.0.0", "'>=1.0.0 <2.0.0'"),
            ("it's;x", r"'it'\''s;x'"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }

    #[test]
    fn display_writes_the_tree_in_one_line() {
        insta::assert_snapshot!(tree(), @"catalog `community` cannot be read: packages/a.yaml:14:3: channel `stable` has two heads: `a.v2` and `a.v3` (let one of them replace or skip the other); b.bin: the file is not UTF-8 byte 0xff at offset 12 (write it as UTF-8, or name it in `.indexignore`)");
    }

    #[test]
    fn render_indents_the_tree() {
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
