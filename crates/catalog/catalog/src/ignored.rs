//! `.indexignore`: which files are no part of the catalog.
//!
//! Patterns are gitignore's, but they are used differently than git uses them: patterns of the
//! whole tree are collected first, folders are not pruned, and for each file the last pattern
//! that says anything decides. A deeper `!pattern` can therefore bring back a file below an
//! ignored folder.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The name of the files with patterns; they are never read as content.
pub(crate) const FILE: &str = ".indexignore";

/// All patterns of a tree.
#[derive(Default)]
pub(crate) struct Ignored {
    /// The folder a pattern is for, and a matcher of that one pattern.
    patterns: Vec<(String, Gitignore)>,
}

impl Ignored {
    /// Adds the patterns of one file. Files must be added in the order of their paths, outer
    /// ones before inner ones. Lines that are no pattern are left out, as git does.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let folder = path.strip_suffix(FILE).unwrap_or_default();
        for line in text.lines() {
            // Git finds nothing by this name; the matcher would find everything.
            if line.trim_end() == "/" {
                continue;
            }
            let mut builder = GitignoreBuilder::new("");
            if builder.add_line(None, line).is_err() {
                continue;
            }
            if let Ok(matcher) = builder.build()
                && !matcher.is_empty()
            {
                self.patterns.push((folder.to_owned(), matcher));
            }
        }
    }

    /// Whether the file at `path` is left out.
    pub(crate) fn ignores(&self, path: &str) -> bool {
        self.patterns
            .iter()
            .rev()
            .find_map(|(folder, matcher)| {
                let below = path.strip_prefix(folder.as_str())?;
                let matched = matcher.matched_path_or_any_parents(below, false);
                (!matched.is_none()).then(|| matched.is_ignore())
            })
            .unwrap_or(false)
    }
}
