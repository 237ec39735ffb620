//! Sections of a YAML stream: it is split at its document separators, without parsing.
//!
//! Upstream's tools split by lines before they parse: a line that begins with `---` ends the
//! section before it. Only blanks and a comment may follow on that line. Anchors are valid in their
//! section only. Mainstay splits in the same way to get the same errors. Sections are independent
//! of each other, so each is parsed alone.

use crate::{YamlError, YamlFault};
use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;

/// A part of a YAML stream between separators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its range in the text.
    pub bytes: Range<usize>,
    /// The line (from 1) of its first byte.
    pub line: usize,
}

/// The sections of a YAML text. Empty sections are skipped. A separator at the very beginning, or
/// directly after another one, belongs to the section that it opens.
pub fn sections(text: &str) -> impl Iterator<Item = Result<Section, YamlError>> {
    Sections::new(text, 0, 1)
}

pub(crate) struct Sections<'a> {
    text: &'a str,
    /// The offset of `text`, which all ranges include.
    base: usize,
    at: usize,
    line: usize,
}

impl<'a> Sections<'a> {
    pub(crate) fn new(text: &'a str, base: usize, line: usize) -> Self {
        Self { text, base, at: 0, line }
    }
}

impl Iterator for Sections<'_> {
    type Item = Result<Section, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, first) = (self.at, self.line);
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            // The next line that may be a separator is this one or one after a line break.
            let from = self.at;
            if !bytes[from..].starts_with(b"---") {
                let found = memmem::find(&bytes[from..], b"\n---");
                self.at = found.map_or(bytes.len(), |found| from + found + 1);
                self.line += memchr_iter(b'\n', &bytes[from..self.at]).count();
                if found.is_none() {
                    break;
                }
            }
            let rest = &self.text[self.at..];
            let length = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |newline| newline + 1);
            let tail = rest[3..length].trim();
            if !tail.is_empty() && !tail.starts_with('#') {
                let line = self.line;
                self.at = bytes.len();
                let fault = YamlFault::Separator { rest: tail.to_owned() };
                return Some(Err(YamlError { line, column: 4, fault }));
            }
            let end = self.at;
            self.at += length;
            self.line += 1;
            if end > start {
                let bytes = self.base + start..self.base + end;
                return Some(Ok(Section { bytes, line: first }));
            }
        }
        let bytes = self.base + start..self.base + self.at;
        (!bytes.is_empty()).then_some(Ok(Section { bytes, line: first }))
    }
}
