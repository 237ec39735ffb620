//! Patterns of strings: regular expressions as Go writes and reads them.

use super::work::Work;
use mainstay_formats::regexp::{self, RegexpError, Size};
use regex::Regex;
use std::sync::OnceLock;

/// How much of matching is one piece of work: instructions that look at a byte.
const INSTRUCTIONS: usize = 32;
/// How much of compiling is: bytes.
const COMPILED: usize = 20;

/// A pattern, compiled when a value is first held against it: most schemas have many patterns and
/// most objects meet few of them.
#[derive(Debug)]
pub(super) struct Pattern {
    /// As the schema has it, and messages quote it.
    pub(super) text: Box<str>,
    size: Result<Size, RegexpError>,
    compiled: OnceLock<Option<Regex>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), size: regexp::measure(text), compiled: OnceLock::new() }
    }

    /// Whether a text matches, or there is no work left to find out. A pattern that is no regular
    /// expression, or takes too much memory, matches nothing.
    pub(super) fn matches(&self, text: &str, work: &Work) -> bool {
        let Ok(size) = self.size else { return false };
        if self.compiled.get().is_none() {
            work.charge(size.bytes / COMPILED);
        }
        // An engine whose states a text drives out of memory goes through all instructions.
        work.charge(size.instructions.saturating_mul(text.len() + 1) / INSTRUCTIONS);
        if work.is_spent() {
            return true;
        }
        let compiled = self.compiled.get_or_init(|| regexp::compile(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Why the pattern is no regular expression, in Go's words.
    pub(super) fn error(&self) -> Option<&RegexpError> {
        self.size.as_ref().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_syntax_means_what_go_means() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a.b-c_9", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[\S]+$", "ab", true),
            (r"^{foo}$", "{foo}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^[[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[[:alpha:]]+x$", "abx", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^(?i)abc$", "ABC", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c", true),
            (r"^\/a\-b$", "/a-b", true),
            (r"^(\d+(\.\d+)?(ms|s|m|h))+$", "1h30m", true),
            (r"^(?P<n>a)(?P<n>b)(?<o>c)$", "abc", true),
            (r"^\07$", "\u{7}", true),
            (r"^[\d-z]$", "-", true),
            (r"^a??$", "a", true),
            (r"^a{,3}$", "a{,3}", true),
            (r"^(?i)a(?-i)b$", "Ab", true),
            (r"^(?i)a(?-i)b$", "AB", false),
            (r"^\pL+$", "aé", true),
            (r"^[^\x{41}-\x{43}]$", "B", false),
            (r"^(?)a*?$", "aa", true),
            (r"^[\x{d800}-\x{e001}]$", "\u{e001}", true),
        ] {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.error(), None, "{pattern}");
            assert_eq!(compiled.matches(text, &Work::default()), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn nothing_is_compiled_for_which_no_work_is_left() {
        let large = Pattern::new(r"^\pL{200}$");
        let work = Work::default();
        work.charge(15_900_000);
        assert!(!work.is_spent());
        assert!(large.matches("é", &work) && work.is_spent());
        assert!(large.compiled.get().is_none());
    }

    #[test]
    fn a_pattern_that_is_none_matches_nothing() {
        assert!(!Pattern::new("(a").matches("a", &Work::default()));
    }
}
