//! Patterns of strings: regular expressions with Go's syntax.

use super::budget::CheckBudget;
use mainstay_formats::regexp::{self, RegexpError, Size};
use regex::Regex;
use std::sync::OnceLock;

/// Regex instructions per byte that cost one step.
const INSTRUCTIONS_PER_STEP: usize = 32;
/// Bytes of a compiled pattern that cost one step.
const BYTES_PER_STEP: usize = 20;

/// A pattern, compiled at the first match: most schemas have many patterns and most objects use few of
/// them.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The text in the schema, which messages quote.
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

    /// Whether a text matches, or the budget is exhausted. A pattern that is no regular expression, or
    /// needs too much memory, matches nothing.
    pub(super) fn matches(&self, text: &str, budget: &CheckBudget) -> bool {
        let Ok(size) = self.size else { return false };
        if self.compiled.get().is_none() {
            budget.charge(size.bytes / BYTES_PER_STEP);
        }
        // The worst case: an engine that runs out of states executes all instructions for each byte.
        budget.charge(size.instructions.saturating_mul(text.len() + 1) / INSTRUCTIONS_PER_STEP);
        if budget.is_exhausted() {
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
    fn go_syntax_matches_as_in_go() {
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
            assert_eq!(
                compiled.matches(text, &CheckBudget::default()),
                matches,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn a_pattern_is_not_compiled_beyond_the_budget() {
        let large = Pattern::new(r"^\pL{200}$");
        let budget = CheckBudget::default();
        budget.charge(15_900_000);
        assert!(!budget.is_exhausted());
        assert!(large.matches("é", &budget) && budget.is_exhausted());
        assert!(large.compiled.get().is_none());
    }

    #[test]
    fn an_invalid_pattern_matches_nothing() {
        assert!(!Pattern::new("(a").matches("a", &CheckBudget::default()));
    }
}
