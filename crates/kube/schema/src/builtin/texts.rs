//! Descriptions of the types of the table, for OpenAPI documents.

use super::table::{TypeDefinition, package};

/// The descriptions of a package, decompressed while a document is built.
pub(crate) struct Texts {
    lines: Vec<(String, String)>,
}

impl Texts {
    /// Decompresses the descriptions of a definition's package.
    pub(crate) fn of(definition: &TypeDefinition) -> Self {
        let name = definition.name().rsplit_once('.').map_or("", |parts| parts.0);
        let text = package(name).map(|package| package.texts.inflate()).unwrap_or_default();
        let parts = |line: &str| {
            let (text, patch) = line.split_once('\t').unwrap_or((line, ""));
            (unescape(text), unescape(patch))
        };
        Self { lines: text.lines().map(parts).collect() }
    }

    /// The description of a type, and the patch of its schema.
    pub(crate) fn definition(&self, definition: &TypeDefinition) -> (&str, &str) {
        self.line(definition.line)
    }

    /// The description of a field and the patch of its schema, by its position in
    /// [`TypeDefinition::fields`].
    pub(crate) fn field(&self, definition: &TypeDefinition, at: usize) -> (&str, &str) {
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
