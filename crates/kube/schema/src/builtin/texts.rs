//! What documents say of the types of the table.

use super::table::{Definition, package};

/// The descriptions of a package, inflated for as long as somebody makes a document of them.
pub(crate) struct Texts {
    lines: Vec<(String, String)>,
}

impl Texts {
    /// Inflates the descriptions of the package that a definition belongs to.
    pub(crate) fn of(definition: &Definition) -> Self {
        let name = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
        let text = package(name).map(|package| package.texts.inflate()).unwrap_or_default();
        let parts = |line: &str| {
            let (text, patch) = line.split_once('\t').unwrap_or((line, ""));
            (unescape(text), unescape(patch))
        };
        Self { lines: text.lines().map(parts).collect() }
    }

    /// What the type is for, and the patch of its schema.
    pub(crate) fn definition(&self, definition: &Definition) -> (&str, &str) {
        self.line(definition.line)
    }

    /// What a field is for, by its position in [`Definition::fields`], and the patch of its schema.
    pub(crate) fn field(&self, definition: &Definition, at: usize) -> (&str, &str) {
        self.line(definition.line + 1 + at)
    }

    fn line(&self, at: usize) -> (&str, &str) {
        self.lines.get(at).map_or(("", ""), |(text, patch)| (text, patch))
    }
}

fn unescape(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}
